//go:build unix

package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// blamed is the line about the end of a puppet.
func blamed(p *puppet, how string) string {
	return fmt.Sprintf("gclrun: replica %s (pid %d on %s) %s\n", p.rank, p.pid, hostname(), how)
}

// TestFirstFailure: the first replica that fails is blamed, in the last line; the others end by themselves within the
// grace.
func TestFirstFailure(t *testing.T) {
	for order, c := range map[string]struct {
		code int
		how  string
	}{
		"exit 3":   {3, "ended with exit code 3, one of 2 that failed"},
		"exit 2":   {2, "ended with exit code 2, one of 2 that failed"},
		"raise 9":  {137, "was ended by signal 9 (killed)"},
		"raise 15": {143, "was ended by signal 15 (terminated)"},
	} {
		t.Run(order, func(t *testing.T) {
			s := prepare(t, "-n", "4").raise(4)
			s.puppets[3].tell("exit 0")
			s.puppets[3].gone()
			s.puppets[1].tell("%s", order)
			s.clocked(5 * time.Second)          // gclrun has noticed
			s.puppets[0].do(`out "I go too\n"`) // and has not been ended
			s.puppets[0].do(`err "I go too\n"`)
			s.puppets[0].tell("exit 5")
			s.puppets[2].tell("exit 0")
			s.ends(c.code, "I go too\n", "I go too\n"+blamed(s.puppets[1], c.how))
		})
	}
}

// TestSurvive: with -survive replicas that fail are named, and the others go on until fewer than -min are left.
func TestSurvive(t *testing.T) {
	t.Run("enough", func(t *testing.T) {
		s := prepare(t, "-n", "4", "-survive", "-min", "2").raise(4)
		s.puppets[1].tell("raise 9")
		killed := blamed(s.puppets[1], "was ended by signal 9 (killed); the others go on")
		if got := line(t, s.stderr); got != killed {
			t.Errorf("%q, want %q", got, killed)
		}
		s.puppets[0].tell("exit 3")
		failed := blamed(s.puppets[0], "ended with exit code 3; the others go on")
		if got := line(t, s.stderr); got != failed {
			t.Errorf("%q, want %q", got, failed)
		}
		s.puppets[2].do(`out "I go on\n"`)
		s.puppets[2].tell("exit 0")
		s.puppets[3].tell("exit 0")
		s.ends(0, "I go on\n", "gclrun: 2 of 4 processes ended well\n")
	})
	t.Run("too few", func(t *testing.T) {
		s := prepare(t, "-n", "3", "-survive", "-min", "2").raise(3)
		s.puppets[0].tell("exit 0")
		s.puppets[0].gone()
		s.puppets[1].tell("exit 3")
		failed := blamed(s.puppets[1], "ended with exit code 3; the others go on")
		if got := line(t, s.stderr); got != failed {
			t.Errorf("%q, want %q", got, failed)
		}
		s.puppets[2].tell("exit 4")
		s.ends(3, "", "gclrun: 1 of 3 processes ended well\n"+
			blamed(s.puppets[1], "ended with exit code 3, one of 2 that failed"))
	})
	t.Run("the rest is ended", func(t *testing.T) {
		s := prepare(t, "-n", "2", "-survive", "-min", "2", "-grace", "7s").raise(2)
		s.puppets[1].tell("exit 3")
		if d := s.tick(); d != 7*time.Second {
			t.Errorf("grace %v", d)
		}
		s.puppets[0].gone()
		s.ends(3, "", "gclrun: 0 of 2 processes ended well\n"+blamed(s.puppets[1], "ended with exit code 3"))
	})
	t.Run("all are well", func(t *testing.T) {
		s := prepare(t, "-n", "2", "-survive").raise(2)
		s.all("exit 0")
		s.ends(0, "", "")
	})
}

// TestNoGrace: nobody is ended before the moment is over in which the cause of the end may come.
func TestNoGrace(t *testing.T) {
	s := prepare(t, "-n", "2", "-grace", "0s").raise(2)
	s.puppets[0].tell("exit 3")
	s.clocked(moment)
	s.puppets[1].tell("exit 0")
	s.ends(3, "", blamed(s.puppets[0], "ended with exit code 3"))
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
	s.ends(3, "", blamed(s.puppets[1], "ended with exit code 3"))
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
