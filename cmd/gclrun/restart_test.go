//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/spawn"
)

// replaced wants lines about the end of a puppet, by its last order, and about the one in its place, and returns that
// one.
func (s *stage) replaced(p *puppet, how string) *puppet {
	s.t.Helper()
	if got, want := line(s.t, s.stderr), blamed(p, how+"; the others go on"); got != want {
		s.t.Fatalf("%q, want %q", got, want)
	}
	next := s.enter()
	want := fmt.Sprintf("gclrun: replica %s (pid %d) is started in its place\n", next.rank, next.pid)
	if got := line(s.t, s.stderr); got != want || next.rank != p.rank {
		s.t.Fatalf("%q, want %q in place of replica %s", got, want, p.rank)
	}
	return next
}

// environ is the environment of a puppet.
func (p *puppet) environ() map[string]string {
	p.t.Helper()
	var entries []string
	must(p.t, json.Unmarshal([]byte(p.ask("environ")), &entries))
	env := map[string]string{}
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env
}

// TestRestart: a process is started in the place of a replica that fails, and again when that one fails, as often as
// -max-restarts allows. It has the environment of the one before, but that it is a newcomer, no input, and the prefix.
func TestRestart(t *testing.T) {
	s := prepare(t, "-n", "2", "-survive", "-max-restarts", "2", "-prefix").raise(2)
	first := s.puppets[1].environ()
	if _, is := first["GCL_NEWCOMER"]; is {
		t.Error("a replica that the job begins with is a newcomer")
	}
	s.puppets[1].tell("raise 9")
	second := s.replaced(s.puppets[1], "was ended by signal 9 (killed)")
	first["GCL_NEWCOMER"] = "1"
	if env := second.environ(); fmt.Sprint(env) != fmt.Sprint(first) {
		t.Errorf("environment %v, want %v", env, first)
	}
	if got := second.ask("read"); got != `"" EOF` {
		t.Errorf("it reads %s", got)
	}
	second.do(`out "I have come\n"`)
	if got := line(t, s.stdout); got != "[1] I have come\n" {
		t.Errorf("%q", got)
	}
	second.do(`err "and fail\n"`)
	if got := line(t, s.stderr); got != "[1] and fail\n" {
		t.Errorf("%q", got)
	}
	second.tell("exit 3")
	third := s.replaced(second, "ended with exit code 3")
	third.tell("exit 4")
	if got, want := line(t, s.stderr), blamed(third, "ended with exit code 4; the others go on"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.puppets[0].do(`out "I go on\n"`)
	s.puppets[0].tell("exit 0")
	s.ends(0, "[0] I go on\n", "gclrun: 1 of 4 processes ended well; restarts: 2 of 2\n")
}

// TestRestartCounts: one that is started in place of another counts for -min.
func TestRestartCounts(t *testing.T) {
	s := prepare(t, "-n", "2", "-survive", "-min", "2", "-max-restarts", "1").raise(2)
	s.puppets[1].tell("exit 3")
	s.puppets = append(s.puppets, s.replaced(s.puppets[1], "ended with exit code 3"))
	s.puppets[0].tell("exit 0")
	s.puppets[2].tell("exit 0")
	s.ends(0, "", "gclrun: 2 of 3 processes ended well; restarts: 1 of 1\n")
}

// TestRestartAlone: nobody is there to take in another one.
func TestRestartAlone(t *testing.T) {
	s := prepare(t, "-n", "1", "-survive", "-max-restarts", "5").raise(1)
	s.puppets[0].tell("exit 3")
	s.ends(3, "", "gclrun: 0 of 1 processes ended well; restarts: 0 of 5\n"+
		blamed(s.puppets[0], "ended with exit code 3"))
}

// TestRestartAfterSignal: a job that is told to end gets no replica any more. One that is told something else does.
func TestRestartAfterSignal(t *testing.T) {
	s := catching(prepare(t, "-n", "2", "-survive", "-max-restarts", "5"), 2)
	must(t, s.gclrun.Process.Signal(syscall.SIGUSR1))
	s.caught(syscall.SIGUSR1)
	s.puppets[1].tell("exit 3")
	s.puppets[1] = s.replaced(s.puppets[1], "ended with exit code 3")
	s.puppets[1].do("catch")
	must(t, s.gclrun.Process.Signal(syscall.SIGTERM))
	s.caught(syscall.SIGTERM)
	s.puppets[1].tell("exit 4")
	if got, want := line(t, s.stderr), blamed(s.puppets[1], "ended with exit code 4; the others go on"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.puppets[0].tell("exit 0")
	s.ends(0, "", "gclrun: 1 of 3 processes ended well; restarts: 1 of 5\n")
}

// TestReplaces has jobs in which a replica fails: whether one may be started in its place.
func TestReplaces(t *testing.T) {
	well := ending{End: spawn.End{Code: command.OK}}
	for name, c := range map[string]struct {
		j    job
		want bool
	}{
		"yes":                        {job{restarts: 2, began: 1, running: 1}, true},
		"the last one is used":       {job{restarts: 2, began: 2, running: 1}, false},
		"nobody runs":                {job{restarts: 2}, false},
		"another has ended well":     {job{restarts: 2, running: 1, endings: []ending{well}}, false},
		"Ctrl-C":                     {job{restarts: 2, running: 1, sent: []sending{{signal: syscall.SIGINT}}}, false},
		"a signal that asks no end":  {job{restarts: 2, running: 1, sent: []sending{{signal: syscall.SIGUSR2}}}, true},
		"gclrun ends those that run": {job{restarts: 2, running: 1, sent: []sending{{own: true}}}, false},
	} {
		if c.j.replaces() != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// TestRestartFails: where no process can be started the job is as one without it, which ends when too few are left.
func TestRestartFails(t *testing.T) {
	for _, c := range []struct {
		min  int
		fail error
		want []string // lines after that about the end
		ends bool     // of the job begins
	}{
		{2, nil, []string{"gclrun: replica 0 (pid 7) is started in its place"}, false},
		{2, errors.New("no memory"), []string{"gclrun: no memory"}, true},
		{1, errors.New("no memory"), []string{"gclrun: no memory"}, false},
	} {
		failed := exec.Command("sh", "-c", "exit 1")
		_ = failed.Run() // as it says
		var out strings.Builder
		ends := false
		j := &job{min: c.min, restarts: 1, running: 2, stderr: newSink(&out),
			replicas: []*replica{{rank: 0, cmd: failed}, {rank: 1, cmd: failed}},
			after:    func(time.Duration) <-chan time.Time { ends = true; return make(chan time.Time) },
			again: func(rank int) (*replica, error) {
				return &replica{rank: rank, cmd: &exec.Cmd{Process: &os.Process{Pid: 7}}}, c.fail
			}}
		next := j.end(j.replicas[0])
		<-j.said
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if (next != nil) != (c.fail == nil) || ends != c.ends || !slices.Equal(lines[1:], c.want) {
			t.Errorf("-min %d, error %v: another is started: %v, the end begins: %v, lines %q", c.min, c.fail, next != nil,
				ends, lines)
		}
	}
}
