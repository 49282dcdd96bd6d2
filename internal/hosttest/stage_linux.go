package hosttest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// isStage is the environment variable that makes the test binary the stage.
const isStage = "GOGCL_HOSTTEST_STAGE"

// Stage is where the hosts are.
type Stage struct {
	hosts []*exec.Cmd
}

// Run runs body on the stage. It starts the test t again in another process, the stage, where the second call of Run
// makes the hosts and calls body. t is no subtest. names has the numbers of hosts by the names that /etc/hosts of the
// stage gives them.
func Run(t *testing.T, hosts int, names map[string]int, body func(t *testing.T, s *Stage)) {
	if os.Getenv(isStage) != "" {
		body(t, newStage(t, hosts, names))
		return
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("needs ip (iproute2): %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=4m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	stage := exec.Command(self, args...)
	stage.Env = append(os.Environ(), isStage+"=1")
	stage.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	if os.Geteuid() != 0 {
		stage.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		stage.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		stage.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	var out strings.Builder
	stage.Stdout, stage.Stderr = &out, &out
	runtime.LockOSThread() // Pdeathsig is about the thread
	defer runtime.UnlockOSThread()
	if err := stage.Start(); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC) ||
			errors.Is(err, unix.EINVAL) {
			t.Skipf("this process may not make network namespaces: %v", err)
		}
		t.Fatal(err)
	}
	err = stage.Wait()
	if why, ok := strings.CutPrefix(firstLine(out.String(), "NOT PERMITTED: "), "NOT PERMITTED: "); ok {
		t.Skipf("network namespaces are not permitted here: %s", why)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out.String())
	} else if !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
		t.Errorf("the stage has not run:\n%s", out.String())
	}
	t.Log(out.String())
}

// firstLine is the first line of a text that begins like that, from there on.
func firstLine(text, begin string) string {
	_, rest, ok := strings.Cut(text, begin)
	if !ok {
		return ""
	}
	line, _, _ := strings.Cut(rest, "\n")
	return begin + line
}

// newStage makes hosts, or ends the stage where that is not permitted.
func newStage(t *testing.T, hosts int, resolved map[string]int) *Stage {
	s := &Stage{}
	refuse := func(what string, err error) {
		fmt.Printf("\nNOT PERMITTED: %s: %v\n", what, err)
		t.SkipNow()
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		refuse("a mount namespace", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		refuse("/proc of a process namespace", err)
	}
	names := filepath.Join(t.TempDir(), "hosts")
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n")
	for name, host := range resolved {
		fmt.Fprintf(&text, "10.77.0.%d %s\n", host+1, name)
	}
	if err := os.WriteFile(names, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(names, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		refuse("a mount over /etc/hosts", err)
	}
	for _, line := range []string{"link set lo up", "link add gcl0 type bridge", "link set gcl0 up"} {
		if err := ip(0, line); err != nil {
			refuse("ip "+line, err)
		}
	}
	for k := range hosts {
		host := exec.Command("sleep", "infinity")
		host.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
		if err := host.Start(); err != nil {
			refuse("a network namespace", err)
		}
		s.hosts = append(s.hosts, host)
		t.Cleanup(func() {
			host.Process.Kill()
			host.Wait()
		})
		pid := host.Process.Pid
		for _, step := range []struct {
			in   int
			line string
		}{
			{0, fmt.Sprintf("link add veth%d type veth peer name eth0 netns %d", k, pid)},
			{0, fmt.Sprintf("link set veth%d master gcl0 up", k)},
			{pid, "link set lo up"},
			{pid, "link set eth0 up"},
			{pid, fmt.Sprintf("addr add 10.77.0.%d/24 dev eth0", k+1)},
			{pid, fmt.Sprintf("-6 addr add fd00:77::%d/64 dev eth0 nodad", k+1)},
			{pid, "link add decoy0 type dummy"},
			{pid, fmt.Sprintf("addr add 10.99.0.%d/24 dev decoy0", k+1)},
			{pid, "link set decoy0 up"},
		} {
			if err := ip(step.in, step.line); err != nil && !strings.Contains(step.line, "decoy0") {
				refuse("ip "+step.line, err)
			}
		}
	}
	return s
}

// IP runs the command ip on a host.
func (s *Stage) IP(host int, line string) error { return ip(s.hosts[host].Process.Pid, line) }

// Start starts a command on a host.
func (s *Stage) Start(host int, command *exec.Cmd) error {
	return startIn(s.hosts[host].Process.Pid, command)
}

// Network is the file of a host's network namespace, as nsenter --net takes it.
func (s *Stage) Network(host int) string {
	return fmt.Sprintf("/proc/%d/ns/net", s.hosts[host].Process.Pid)
}

// ip runs the command of that name, in the network namespace of a process, or in this one's if pid is 0.
func ip(pid int, line string) error {
	command := exec.Command("ip", strings.Fields(line)...)
	if pid == 0 {
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	var out strings.Builder
	command.Stdout, command.Stderr = &out, &out
	err := startIn(pid, command)
	if err == nil {
		err = command.Wait()
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, out.String())
	}
	return nil
}

// startIn starts a command in the network namespace of a process.
func startIn(pid int, command *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread is of the other namespace, and ends with the goroutine
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			unix.Close(fd)
		}
		if err == nil {
			err = command.Start()
		}
		started <- err
	}()
	return <-started
}
