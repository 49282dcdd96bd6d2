//go:build unix

package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// catching raises a stage whose puppets report signals.
func catching(s *stage, n int) *stage {
	s.raise(n)
	for _, p := range s.puppets {
		p.do("catch")
	}
	return s
}

// caught wants every puppet's next line to be a signal.
func (s *stage) caught(want os.Signal) {
	s.t.Helper()
	for _, p := range s.puppets {
		if got := p.hear(); got != want.String() {
			s.t.Fatalf("puppet %s: %q, want %v", p.rank, got, want)
		}
	}
}

// TestPassedOn: each replica gets each signal, once: the next line that it says is about the next signal.
func TestPassedOn(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("the tests run under nohup, which gclrun takes for its own")
	}
	s := catching(prepare(t, "-n", "2"), 2)
	for _, want := range passedOn {
		must(t, s.gclrun.Process.Signal(want))
		s.caught(want)
	}
	s.all("exit 0")
	for _, p := range s.puppets {
		p.gone() // and says nothing more
	}
	s.ends(0, "", "")
}

// TestSecondInterrupt kills replicas that do not care for the first.
func TestSecondInterrupt(t *testing.T) {
	s := catching(prepare(t, "-n", "2"), 2)
	must(t, s.gclrun.Process.Signal(os.Interrupt))
	s.caught(os.Interrupt)
	must(t, s.gclrun.Process.Signal(os.Interrupt))
	for _, p := range s.puppets {
		p.gone()
	}
	want := map[string]bool{}
	for _, p := range s.puppets {
		want[blamed(p, "was ended by signal 9 (killed) from gclrun")] = true
	}
	if got := line(t, s.stderr); !want[got] {
		t.Errorf("%q", got)
	}
	s.ends(128+9, "", "")
}

// TestIgnored: what nohup ignores stays ignored, in gclrun and in replicas.
func TestIgnored(t *testing.T) {
	s := prepare(t, "-n", "1")
	s.gclrun.Env = append(s.gclrun.Env, asGclrunNoHup+"=1")
	s.raise(1)
	must(t, s.gclrun.Process.Signal(syscall.SIGHUP))
	must(t, syscall.Kill(s.puppets[0].pid, syscall.SIGHUP))
	must(t, s.gclrun.Process.Signal(syscall.SIGTERM)) // of the two signals, this is the one that ends the replica
	s.ends(128+15, "", blamed(s.puppets[0], "was ended by signal 15 (terminated) from gclrun"))
}

// TestUnreadOutput: all replicas have ended, and nobody reads what they have written.
func TestUnreadOutput(t *testing.T) {
	for end, code := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		t.Run(end.String(), func(t *testing.T) { unreadOutput(t, end, code) })
	}
}

// unreadOutput has a signal end gclrun with the exit code.
func unreadOutput(t *testing.T, end os.Signal, code int) {
	s := prepare(t, "-n", "1").raise(1)
	const size = 100_000 // more than a pipe holds, less than gclrun's buffer and two pipes do
	s.puppets[0].do("out %q", fmt.Sprintf("%0*d\n", size, 0))
	s.puppets[0].tell("exit 0")
	s.puppets[0].gone()
	s.tick() // gclrun has noticed
	must(t, s.gclrun.Process.Signal(end))
	_ = s.gclrun.Wait() // its exit code says it
	if got := s.gclrun.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
}
