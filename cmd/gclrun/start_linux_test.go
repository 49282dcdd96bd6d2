package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStartHalfWay: not all replicas can be started.
func TestStartHalfWay(t *testing.T) {
	s := prepare(t, "-n", "64")
	s.gclrun.Env = append(s.gclrun.Env, asGclrunFiles+"=40")
	s.start()
	if got := line(t, s.stderr); !strings.Contains(got, "too many open files") {
		t.Errorf("%q", got)
	}
	_ = s.gclrun.Wait() // its exit code says it
	if got := s.gclrun.ProcessState.ExitCode(); got != 1 && got != exitCannotStart {
		t.Errorf("exit code %d", got)
	}
}

// TestAbandoned: after an error of start, this process has no child. The second replica is to have a core that is not
// there.
func TestAbandoned(t *testing.T) {
	s := prepare(t)
	half := &settings{n: 2, bind: true, program: s.gclrun.Args}
	if replicas, err := half.start([]int{cores(t)[0], 1023}); err == nil || len(replicas) > 0 {
		t.Fatalf("%d replicas, error %v", len(replicas), err)
	}
	if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
		t.Errorf("process %d, error %v", pid, err)
	}
}

// TestKilled: the kernel ends the replicas of a gclrun that is killed.
func TestKilled(t *testing.T) {
	s := prepare(t, "-n", "3").raise(3)
	must(t, s.gclrun.Process.Signal(os.Kill))
	for _, p := range s.puppets {
		p.gone()
	}
}

// cores lists those that this process may use.
func cores(t *testing.T) (list []int) {
	t.Helper()
	var set unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &set))
	for core := 0; len(list) < set.Count(); core++ {
		if set.IsSet(core) {
			list = append(list, core)
		}
	}
	return list
}

// TestBind: replicas have one core each, in the order of spread, and gclrun keeps all.
func TestBind(t *testing.T) {
	list := cores(t)
	n := min(len(list), 4)
	s := prepare(t, "-n", fmt.Sprint(n), "-bind").raise(n)
	for i, core := range spread(list, siblings)[:n] {
		if got := s.puppets[i].ask("affinity"); got != fmt.Sprint(core) {
			t.Errorf("replica %d has cores %s, want %d", i, got, core)
		}
	}
	s.puppets[n-1].do(`out "gclrun is past starting\n"`)
	line(t, s.stdout)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.gclrun.Process.Pid))
	must(t, err)
	if len(tasks) == 0 {
		t.Error("no threads")
	}
	for _, name := range tasks {
		if text, err := os.ReadFile(name); err == nil && allowed(string(text)) != affinity() {
			t.Errorf("%s: cores %s, want %s", name, allowed(string(text)), affinity())
		}
	}
	s.all("exit 0")
	s.ends(0, "", "")
}

// TestBindRestart: who comes in the place of another has its core.
func TestBindRestart(t *testing.T) {
	list := cores(t)
	if len(list) < 2 {
		t.Skip("one core")
	}
	s := prepare(t, "-n", "2", "-bind", "-survive", "-max-restarts", "1").raise(2)
	s.puppets[1].tell("exit 3")
	next := s.replaced(s.puppets[1], "ended with exit code 3")
	if got, want := next.ask("affinity"), fmt.Sprint(spread(list, siblings)[1]); got != want {
		t.Errorf("replica 1 has cores %s, want %s", got, want)
	}
	next.tell("exit 0")
	s.puppets[0].tell("exit 0")
	s.ends(0, "", "gclrun: 2 of 3 processes ended well; restarts: 1 of 1\n")
}

// TestUnbound: without -bind nothing is bound.
func TestUnbound(t *testing.T) {
	s := prepare(t, "-n", "1").raise(1)
	if got := s.puppets[0].ask("affinity"); got != affinity() {
		t.Errorf("cores %s, want %s", got, affinity())
	}
	s.all("exit 0")
	s.ends(0, "", "")
}

// TestBindTooMany: the cores are those of gclrun's mask, not those of the machine.
func TestBindTooMany(t *testing.T) {
	list := cores(t)
	s := prepare(t, "-n", "2", "-bind")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, onCore(list[len(list)-1], func() error {
		s.start()
		return nil
	}))
	s.ends(2, "", "gclrun: -bind: 2 replicas, but gclrun may use 1 cores only (-h lists the flags)\n")
}

func TestSpread(t *testing.T) {
	for name, c := range map[string]struct {
		siblings func(int) string
		want     []int
	}{
		"alone":  {func(core int) string { return fmt.Sprint(core) }, []int{1, 2, 3, 4, 5, 7}},
		"pairs":  {func(core int) string { return fmt.Sprint(core / 2) }, []int{1, 2, 4, 7, 3, 5}},
		"halves": {func(core int) string { return fmt.Sprint(core % 4) }, []int{1, 2, 3, 4, 5, 7}},
		"one":    {func(int) string { return "" }, []int{1, 2, 3, 4, 5, 7}},
	} {
		if got := spread([]int{1, 2, 3, 4, 5, 7}, c.siblings); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// terminal is the test's end of a new pseudo-terminal, and its other end.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals: ", err)
	}
	t.Cleanup(func() { ours.Close() })
	must(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	must(t, err)
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// TestTerminal: Ctrl-C reaches each replica once, and replica 0 reads what is typed, though replicas are in groups of
// their own.
func TestTerminal(t *testing.T) {
	ours, theirs := terminal(t)
	s := prepare(t, "-n", "2")
	s.gclrun.Stdin = theirs
	s.gclrun.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	catching(s, 2)
	_, err := ours.WriteString("typed\n")
	must(t, err)
	if got := s.puppets[0].ask("read"); got != `"typed\n" <nil>` {
		t.Errorf("replica 0 reads %s", got)
	}
	_, err = ours.WriteString("\x03")
	must(t, err)
	s.caught(os.Interrupt)
	must(t, s.gclrun.Process.Signal(syscall.SIGUSR1))
	s.caught(syscall.SIGUSR1) // and no second interrupt before
	s.all("exit 0")
	s.ends(0, "", "")
}

// TestBackground: a gclrun in the background of a terminal runs on, with an empty input.
func TestBackground(t *testing.T) {
	_, theirs := terminal(t)
	shell := prepare(t, "-n", "1") // its puppet plays the shell
	shell.gclrun.Args = []string{shell.gclrun.Path, asPuppet, shell.doors.Addr().String(), "0"}
	shell.gclrun.Stdin = theirs
	shell.gclrun.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	shell.raise(1)
	s := prepare(t, "-n", "1")
	shell.puppets[0].spawn(spawned{Args: s.gclrun.Args, Env: []string{asGclrun + "="}, Inputs: true,
		Attr: syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}}) // not left when the test fails
	s.meet(1)
	if got := s.puppets[0].ask("read"); got != `"" EOF` {
		t.Errorf("replica 0 reads %s", got)
	}
	s.puppets[0].tell("exit 0")
	s.puppets[0].gone()
	shell.puppets[0].tell("exit 0")
	shell.ends(0, "", "")
}
