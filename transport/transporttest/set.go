package transporttest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// processPatience is how long a set of processes may take before it is said to hang.
	processPatience = 3 * time.Minute

	// dumpTime is how long a process that hangs has to write its stacks, and a launcher to end after its processes.
	dumpTime = 5 * time.Second

	// lookTime is how long a process that ended before it came goes unseen.
	lookTime = 50 * time.Millisecond
)

// set is n processes that go through the suite together, as the calling test sees them.
//
//	calling test ──▶ launcher, such as mpirun ──▶ n shells (wrapper) ──▶ n processes
//	     ▲                                                                   ▲
//	     └──────────────── one connection each, by dir/board ────────────────┘
type set struct {
	n        int
	dir      string // of the socket, the files of the processes and the directories of the cases
	children []*child
	wrong    []error // of processes that are none of the set

	launcher    *exec.Cmd
	launcherSay bytes.Buffer  // to be read when ended is closed
	ended       chan struct{} // closed when the launcher has ended
	err         error         // of the launcher's Wait, when ended is closed
	late        chan bool     // guard's only value: the set has hung
}

// child is a process that came: it has connected and said its rank.
type child struct {
	rank  int
	files processFiles
	conn  *net.UnixConn
	lines *bufio.Reader // of conn
	begun string        // the name of the last case that it has begun
	left  bool          // it has said that it is through

	mu   sync.Mutex // guards deaf
	deaf bool       // it hears no more
}

// runSet runs the suite in n processes.
func runSet(t *testing.T, name string, n int, by Launcher) {
	dir, err := os.MkdirTemp("", "replicas") // t.TempDir may be too long for a socket's address
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: socketPath(dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // meet does so earlier
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &set{n: n, dir: dir, ended: make(chan struct{}), late: make(chan bool, 1)}
	s.launcher = by.Command(n, append([]string{"/bin/sh", "-c", wrapper, "replica", self}, replicaArgs(name)...))
	s.launcher.Env = append(s.launcher.Environ(), "GOTRACEBACK=all", envTest+"="+name, envDir+"="+dir,
		fmt.Sprintf("%s=%d", envSize, n))
	s.launcher.Stdout, s.launcher.Stderr = &s.launcherSay, &s.launcherSay
	s.launcher.WaitDelay = dumpTime
	limit := processPatience
	if deadline, ok := t.Deadline(); ok {
		limit = min(limit, time.Until(deadline)-3*dumpTime)
	}
	if err := s.launcher.Start(); err != nil {
		t.Fatal(err)
	}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		s.err = s.launcher.Wait()
		close(s.ended)
	})
	tasks.Go(func() { s.guard(limit) })
	s.meet(l)
	if len(s.children) < n { // told before a process hears that another one fails for this
		s.tell(nil, message(0, lost, fmt.Sprintf("%d of %d processes have come", len(s.children), n)))
	}
	for _, c := range s.children {
		tasks.Go(func() { s.relay(c) })
	}
	<-s.ended
	for _, c := range s.children {
		c.conn.SetReadDeadline(time.Now().Add(dumpTime)) // the launcher may have left the process behind
	}
	tasks.Wait()
	s.report(t, <-s.late)
}

// guard ends a set that runs for longer than it may: its processes write their stacks, then they are killed.
func (s *set) guard(limit time.Duration) {
	late := false
	for _, step := range []struct {
		wait time.Duration
		do   func()
	}{
		{limit, func() { s.signal(syscall.SIGQUIT) }},
		{dumpTime, func() { s.signal(syscall.SIGKILL); s.launcher.Process.Signal(syscall.SIGTERM) }},
		{dumpTime, func() { s.launcher.Process.Kill() }},
	} {
		timer := time.NewTimer(step.wait)
		select {
		case <-s.ended:
			timer.Stop()
			s.late <- late
			return
		case <-timer.C:
			late = true
			step.do()
		}
	}
	s.late <- late
}

// signal sends a signal to all processes that run.
func (s *set) signal(signal os.Signal) {
	for _, f := range launched(s.dir) {
		f.signal(signal)
	}
}

// meet waits until each of the n processes has come or ended, or the launcher has ended. It closes the listener: a
// process that is late then finds nobody.
func (s *set) meet(l *net.UnixListener) {
	defer l.Close()
	for len(s.children) < s.n {
		over := s.over() // before Accept: a process that has ended since may have come
		l.SetDeadline(time.Now().Add(lookTime))
		conn, err := l.AcceptUnix()
		if err != nil {
			if over || !errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
			continue
		}
		if err := s.welcome(conn); err != nil {
			s.wrong = append(s.wrong, err)
			conn.Close() // the process ends
		}
	}
}

// over reports whether no more processes will come.
func (s *set) over() bool {
	select {
	case <-s.ended:
		return true
	default:
	}
	known := len(s.children)
	for _, f := range launched(s.dir) {
		if _, ended := f.status(); ended && s.child(f) == nil {
			known++
		}
	}
	return known >= s.n
}

// child returns the child whose files are given, or nil.
func (s *set) child(f processFiles) *child {
	for _, c := range s.children {
		if c.files == f {
			return c
		}
	}
	return nil
}

// welcome reads the first message of a process.
func (s *set) welcome(conn *net.UnixConn) error {
	c := &child{conn: conn, lines: bufio.NewReader(conn), files: processFiles{dir: s.dir}}
	conn.SetReadDeadline(time.Now().Add(dumpTime))
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return fmt.Errorf("a process that connects does not say its rank: %w", err)
	}
	conn.SetReadDeadline(time.Time{})
	_, key, value, err := parseMessage(line)
	if err == nil && key == came {
		_, err = fmt.Sscanf(value, "%d %s", &c.rank, &c.files.name)
	}
	if err != nil || key != came {
		return fmt.Errorf("the first message of a process is %q: %v", line, err)
	}
	if c.rank < 0 || c.rank >= s.n {
		return fmt.Errorf("a process says that it is replica %d of %d", c.rank, s.n)
	}
	for _, other := range s.children {
		if other.rank == c.rank {
			return fmt.Errorf("two processes say that they are replica %d", c.rank)
		}
	}
	s.children = append(s.children, c)
	return nil
}

// relay has all others hear the posts of a process, until it ends.
func (s *set) relay(c *child) {
	defer c.conn.Close()
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			break
		}
		if line == message(0, leaving, "") {
			c.left = true
			c.deafen()
			continue
		}
		if _, k, value, _ := parseMessage(line); k == key(begin, c.rank) {
			c.begun = value
		}
		s.tell(c, line)
	}
	c.deafen()
	if !c.left {
		s.tell(c, message(0, lost, fmt.Sprintf("the process of replica %d has ended", c.rank)))
	}
}

// tell has all processes but one hear a line.
func (s *set) tell(but *child, line string) {
	for _, c := range s.children {
		if c != but {
			c.hear(line)
		}
	}
}

// hear has a process hear a line.
func (c *child) hear(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.deaf {
		c.conn.Write([]byte(line)) // an error is that of a process that has ended
	}
}

// deafen ends the stream that a process hears.
func (c *child) deafen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.deaf {
		c.deaf = true
		c.conn.CloseWrite()
	}
}

// report says how the launcher and the processes have ended, and shows their output.
func (s *set) report(t *testing.T, late bool) {
	t.Helper()
	for _, err := range s.wrong {
		t.Error(err)
	}
	shown := map[processFiles]bool{}
	for rank := range s.n {
		var c *child
		for _, other := range s.children {
			if other.rank == rank {
				c = other
			}
		}
		if c == nil {
			t.Errorf("no process has come to RunProcesses or RunLaunched as replica %d", rank)
			continue
		}
		shown[c.files] = true
		fault := c.files.fault(late)
		if !c.left {
			if fault == "" {
				fault = "ended before its time"
			}
			if c.begun != "" {
				fault += ", last in " + c.begun
			}
		}
		show(t, fmt.Sprintf("replica %d", rank), fault, c.files.output(fmt.Sprintf("replica %d | ", rank)))
	}
	for _, f := range launched(s.dir) {
		if !shown[f] {
			fault := f.fault(late)
			if fault == "" {
				fault = "ended before it came"
			}
			show(t, "a process without a rank", fault, f.output("no rank | "))
		}
	}
	said := strings.TrimSpace(s.launcherSay.String())
	fault := ""
	if s.err != nil {
		fault = s.err.Error()
	}
	if fault != "" || said != "" {
		show(t, "launcher "+s.launcher.Path, fault, prefixed("launcher | ", said))
	}
}

// fault says how a process has failed, if it has.
func (f processFiles) fault(late bool) string {
	status, ok := f.status()
	fault := ""
	switch {
	case !ok:
		fault = "was killed together with its shell"
	case status > 128:
		fault = "signal: " + syscall.Signal(status-128).String()
	case status != 0:
		fault = fmt.Sprintf("exit status %d", status)
	}
	if late && fault != "" {
		fault = "hangs: " + fault
	}
	return fault
}

// show fails the test by a fault, if there is one. Otherwise the output is for -v alone.
func show(t *testing.T, who, fault, output string) {
	t.Helper()
	switch {
	case fault != "":
		t.Errorf("%s: %s\n%s", who, fault, output)
	case testing.Verbose():
		t.Logf("%s\n%s", who, output)
	}
}

// socketPath is where the processes of a set connect with the calling test.
func socketPath(dir string) string { return filepath.Join(dir, "board") }
