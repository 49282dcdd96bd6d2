//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience bounds what would otherwise wait for ever when a test fails.
const patience = time.Minute

// stage is a gclrun with puppets as replicas.
type stage struct {
	t       *testing.T
	gclrun  *exec.Cmd
	puppets []*puppet // by rank
	stdin   *os.File  // to gclrun
	stdout  *bufio.Reader
	stderr  *bufio.Reader
	out     *os.File // below stdout
	doors   *net.UnixListener
	clock   *net.UnixListener
}

// puppet is the test's end of a replica.
type puppet struct {
	t    *testing.T
	rank string
	pid  int
	conn net.Conn
	from *bufio.Reader
}

// prepare makes a stage for gclrun with flags; it starts nothing. Change gclrun before raise.
func prepare(t *testing.T, flags ...string) *stage {
	t.Helper()
	s := &stage{t: t}
	// Not t.TempDir: the name of a socket has 107 bytes at most.
	dir, err := os.MkdirTemp("", "gclrun")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s.doors, s.clock = listenAt(t, filepath.Join(dir, "doors")), listenAt(t, filepath.Join(dir, "clock"))
	self, err := os.Executable()
	must(t, err)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	t.Cleanup(stop)
	s.gclrun = exec.CommandContext(ctx, self, append(flags, "--", self, asPuppet, s.doors.Addr().String())...)
	s.gclrun.Env = append(os.Environ(), asGclrun+"="+s.clock.Addr().String(),
		"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE")) // or each process sleeps for a second under -race
	return s
}

func listenAt(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	must(t, l.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { l.Close() })
	return l
}

// raise starts gclrun, and waits for its n puppets.
func (s *stage) raise(n int) *stage {
	s.t.Helper()
	s.start()
	s.meet(n)
	return s
}

// start starts gclrun, with pipes where the test has set no files.
func (s *stage) start() {
	s.t.Helper()
	pipe := func(reads bool) (theirs, ours *os.File) {
		r, w, err := os.Pipe()
		must(s.t, err)
		if !reads {
			r, w = w, r
		}
		must(s.t, w.SetDeadline(time.Now().Add(patience)))
		s.t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	var in, out, errs, ours *os.File
	if s.gclrun.Stdin == nil {
		in, s.stdin = pipe(true)
		s.gclrun.Stdin = in
	}
	if s.gclrun.Stdout == nil {
		out, s.out = pipe(false)
		s.gclrun.Stdout, s.stdout = out, bufio.NewReader(s.out)
	}
	if s.gclrun.Stderr == nil {
		errs, ours = pipe(false)
		s.gclrun.Stderr, s.stderr = errs, bufio.NewReader(ours)
	}
	must(s.t, s.gclrun.Start())
	s.t.Cleanup(func() {
		_ = s.gclrun.Process.Kill()
		_ = s.gclrun.Wait() // an error when it has ended before
	})
	for _, f := range []*os.File{in, out, errs} {
		f.Close() // nil: an error
	}
}

// meet waits for puppets 0 to n-1.
func (s *stage) meet(n int) {
	s.t.Helper()
	s.puppets = make([]*puppet, n)
	for range n {
		p := s.enter()
		rank, err := strconv.Atoi(p.rank)
		if err != nil || rank >= n || s.puppets[rank] != nil {
			s.t.Fatalf("replica with rank %q of %d", p.rank, n)
		}
		s.puppets[rank] = p
	}
}

// enter waits for one puppet.
func (s *stage) enter() *puppet {
	s.t.Helper()
	conn, err := s.doors.Accept()
	must(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	must(s.t, conn.SetDeadline(time.Now().Add(patience)))
	p := &puppet{t: s.t, conn: conn, from: bufio.NewReader(conn)}
	if _, err := fmt.Sscan(p.hear(), &p.rank, &p.pid); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// hear is the puppet's next line.
func (p *puppet) hear() string {
	p.t.Helper()
	line, err := p.from.ReadString('\n')
	if err != nil {
		p.t.Fatalf("puppet %s: %v", p.rank, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// tell gives an order, and does not wait.
func (p *puppet) tell(order string, args ...any) {
	p.t.Helper()
	_, err := fmt.Fprintf(p.conn, order+"\n", args...)
	must(p.t, err)
}

// ask gives an order and returns the answer.
func (p *puppet) ask(order string, args ...any) string {
	p.t.Helper()
	p.tell(order, args...)
	return p.hear()
}

// do gives an order that must succeed.
func (p *puppet) do(order string, args ...any) {
	p.t.Helper()
	if got := p.ask(order, args...); got != "done" {
		p.t.Fatalf("puppet %s: %s: %s", p.rank, order, got)
	}
}

// spawn lets the puppet start a process.
func (p *puppet) spawn(s spawned) {
	p.t.Helper()
	text, err := json.Marshal(s)
	must(p.t, err)
	p.do("spawn %s", text)
}

// child lets the puppet start another puppet.
func (s *stage) child(p *puppet, how spawned) *puppet {
	s.t.Helper()
	how.Args = []string{s.gclrun.Path, asPuppet, s.doors.Addr().String(), p.rank + "'s"}
	p.spawn(how)
	return s.enter()
}

// gone waits until the puppet's process has ended.
func (p *puppet) gone() {
	p.t.Helper()
	if rest, err := io.ReadAll(p.from); len(rest) > 0 || os.IsTimeout(err) {
		p.t.Fatalf("puppet %s is not gone: %q, %v", p.rank, rest, err)
	}
}

// ends waits for gclrun's end and for that of all puppets, and wants its exit code and the rest of its output.
func (s *stage) ends(code int, stdout, stderr string) {
	s.t.Helper()
	read := func(from *bufio.Reader) string {
		if from == nil {
			return ""
		}
		rest, err := io.ReadAll(from)
		if err != nil {
			s.t.Error(err)
		}
		return string(rest)
	}
	// What is read in turn is shorter than what a pipe holds.
	out, errs := read(s.stdout), read(s.stderr)
	err := s.gclrun.Wait()
	if got := s.gclrun.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d (%v), want %d", got, err, code)
	}
	if out != stdout || errs != stderr {
		s.t.Errorf("standard output\n%q, want\n%q\nstandard error\n%q, want\n%q", out, stdout, errs, stderr)
	}
	for _, p := range s.puppets {
		p.gone()
	}
}

// all tells every puppet the same.
func (s *stage) all(order string) {
	s.t.Helper()
	for _, p := range s.puppets {
		p.tell("%s", order)
	}
}

// line is the next line of an output.
func line(t *testing.T, from *bufio.Reader) string {
	t.Helper()
	got, err := from.ReadString('\n')
	must(t, err)
	return got
}

// tick waits until gclrun waits for a time, and lets it pass.
func (s *stage) tick() time.Duration {
	s.t.Helper()
	conn, err := s.clock.Accept()
	must(s.t, err)
	defer conn.Close()
	var d time.Duration
	_, err = fmt.Fscanln(conn, &d)
	must(s.t, err)
	return d
}

// clocked waits until gclrun waits for a time, which does not pass.
func (s *stage) clocked(want time.Duration) {
	s.t.Helper()
	conn, err := s.clock.Accept()
	must(s.t, err)
	s.t.Cleanup(func() { conn.Close() })
	var d time.Duration
	if _, err = fmt.Fscanln(conn, &d); err != nil || d != want {
		s.t.Fatalf("gclrun waits for %v (%v), want %v", d, err, want)
	}
}

// remoteClock is time.After, where time passes when the test at the socket says so.
func remoteClock(socket string) func(time.Duration) <-chan time.Time {
	return func(d time.Duration) <-chan time.Time {
		passed := make(chan time.Time, 1)
		go func() {
			conn, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			fmt.Fprintln(conn, int64(d))
			_, _ = io.Copy(io.Discard, conn) // until the test closes it
			passed <- time.Now()
		}()
		return passed
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
