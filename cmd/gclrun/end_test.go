//go:build unix

package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestFirstFailure: the first replica that fails is blamed; the others end by themselves within the grace.
func TestFirstFailure(t *testing.T) {
	for order, c := range map[string]struct {
		code int
		how  string
	}{
		"exit 3":   {3, "ended with exit code 3"},
		"exit 2":   {2, "ended with exit code 2"},
		"raise 9":  {137, "was ended by signal 9 (killed)"},
		"raise 15": {143, "was ended by signal 15 (terminated)"},
	} {
		t.Run(order, func(t *testing.T) {
			s := prepare(t, "-n", "4").raise(4)
			s.puppets[3].tell("exit 0")
			s.puppets[3].gone()
			s.puppets[1].tell("%s", order)
			want := fmt.Sprintf("gclrun: replica 1 (pid %d) %s\n", s.puppets[1].pid, c.how)
			if got := line(t, s.stderr); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			s.puppets[0].do(`out "I go too\n"`) // and has not been ended
			s.puppets[0].tell("exit 5")
			s.puppets[2].tell("exit 0")
			s.ends(c.code, "I go too\n", "")
		})
	}
}

// TestGrace: the rest gets SIGTERM after a grace, and is killed after another. What replicas have started is ended with
// them.
func TestGrace(t *testing.T) {
	s := prepare(t, "-n", "3", "-grace", "7s").raise(3)
	started := s.child(s.puppets[0], spawned{})
	orphan := s.child(s.puppets[1], spawned{})
	s.puppets[2].do("catch")
	orphan.do("catch")
	s.puppets[1].tell("exit 3")
	if d := s.tick(); d != 7*time.Second {
		t.Errorf("grace %v", d)
	}
	s.puppets[0].gone()
	started.gone()
	for _, p := range []*puppet{s.puppets[2], orphan} {
		if got := p.hear(); got != syscall.SIGTERM.String() {
			t.Errorf("puppet %s: %q", p.rank, got)
		}
	}
	s.tick()
	orphan.gone()
	s.ends(3, "", fmt.Sprintf("gclrun: replica 1 (pid %d) ended with exit code 3\n", s.puppets[1].pid))
}

// TestLeftBehind: a process that outlives its replica may write for a while, and is ended with the job.
func TestLeftBehind(t *testing.T) {
	t.Run("with output", func(t *testing.T) {
		s := prepare(t, "-n", "1").raise(1)
		left := s.child(s.puppets[0], spawned{Inputs: true})
		left.do("catch")
		s.puppets[0].tell("exit 0")
		s.puppets[0].gone()
		left.do(`out "late\n"`)
		s.tick()
		if got := left.hear(); got != syscall.SIGTERM.String() {
			t.Errorf("%q", got)
		}
		s.tick()
		left.gone()
		s.ends(0, "late\n", "")
	})
	t.Run("without", func(t *testing.T) {
		s := prepare(t, "-n", "1").raise(1)
		left := s.child(s.puppets[0], spawned{})
		s.puppets[0].tell("exit 0")
		s.ends(0, "", "")
		left.gone()
	})
	t.Run("outside of the group", func(t *testing.T) {
		s := prepare(t, "-n", "1").raise(1)
		left := s.child(s.puppets[0], spawned{Inputs: true, Attr: syscall.SysProcAttr{Setsid: true}})
		s.puppets[0].do(`out "in time"`)
		s.puppets[0].tell("exit 0")
		s.tick()
		s.tick()
		s.ends(0, "in time", "")
		left.do("close") // it is not gclrun's to end
		left.tell("exit 0")
		left.gone()
	})
}
