//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"gogcl.dev/internal/commandtest"
	"gogcl.dev/internal/watch"
)

// stuck is a process of a job of two that waits for the other.
func stuck(job string) watch.Process {
	call := watch.Call{Name: "barrier #1", Group: "{0, 1}", Began: time.Second, Inside: true,
		Waits: []watch.Part{{Group: 1, Seq: 1, Members: []int{0, 1}}}}
	on := watch.Connection{Calls: []watch.Call{call}, Reached: map[uint64]uint64{1: 1}}
	return watch.Process{Job: job, Run: job, Size: 2, Host: "node1", PID: 4711, At: time.Now(),
		Replicas: []watch.Replica{{Connections: []watch.Connection{on}}}}
}

// answering has jobs whose state can be asked for.
func answering(t *testing.T, jobs ...string) {
	runtime, err := os.MkdirTemp("", "gcl") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtime) })
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	dir, err := watch.Dir()
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		a, err := watch.Answer(dir, job, 0, func(bool) watch.Job {
			return watch.Job{Name: job, Run: job, Size: 2, Processes: []watch.Process{stuck(job)}}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
	}
}

// asks runs a subcommand.
func asks(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = subcommands[args[0]](args[1:], &out, &errs)
	return code, out.String(), errs.String()
}

func TestStatus(t *testing.T) {
	answering(t)
	if code, stdout, stderr := asks(t, "status"); code != 1 || stdout != "" ||
		!strings.Contains(stderr, "no job of this user") {
		t.Error(code, stdout, stderr)
	}
	if code, stdout, _ := asks(t, "status", "-json"); code != 0 || stdout != "[]\n" {
		t.Error(code, stdout)
	}
	answering(t, "a", "b")
	code, stdout, stderr := asks(t, "status")
	if code != 0 || stderr != "" || strings.Count(stdout, "1 waits for replica 1\n") != 2 ||
		!strings.Contains(stdout, "\n\njob b, 2 replicas: ") || !strings.Contains(stdout, "does not answer") {
		t.Error(code, stdout, stderr)
	}
	if code, stdout, stderr := asks(t, "status", "-job", "b"); code != 0 || stderr != "" ||
		!strings.HasPrefix(stdout, "job b, ") || strings.Contains(stdout, "job a, ") {
		t.Error(code, stdout, stderr)
	}
	if code, stdout, stderr := asks(t, "status", "-job", "c"); code != 1 || stdout != "" ||
		!strings.Contains(stderr, `no job "c" has a process on this host; there are: a, b`) {
		t.Error(code, stdout, stderr)
	}
	code, stdout, stderr = asks(t, "status", "-json")
	var jobs []struct {
		Job     string
		Edges   []watch.Edge
		Sinks   []int
		Missing []watch.Missing
	}
	if err := json.Unmarshal([]byte(stdout), &jobs); err != nil || code != 0 || stderr != "" || len(jobs) != 2 ||
		jobs[1].Job != "b" || len(jobs[1].Edges) != 1 || jobs[1].Edges[0].To != 1 || jobs[1].Missing[0].Replica != 1 {
		t.Error(err, code, stdout, stderr)
	}
}

// cutAfter is an output that takes so many writes.
type cutAfter struct {
	strings.Builder
	left int
}

func (c *cutAfter) Write(b []byte) (int, error) {
	if c.left--; c.left < 0 {
		return 0, errors.New("nobody reads")
	}
	return c.Builder.Write(b)
}

// TestWatching: the state is printed again and again, and there is no job, for a while, all the same.
func TestWatching(t *testing.T) {
	answering(t)
	out := &cutAfter{left: 1}
	var errs strings.Builder
	if code := status([]string{"-watch"}, out, &errs); code != 1 || !strings.Contains(errs.String(), "nobody reads") ||
		out.String() != "no job of this user has a process on this host\n" {
		t.Error(code, out, errs.String())
	}
	answering(t, "a")
	out = &cutAfter{left: 2}
	if code := status([]string{"-watch"}, out, &errs); code != 1 || strings.Count(out.String(), "job a, ") != 2 {
		t.Error(code, out)
	}
}

func TestExplain(t *testing.T) {
	dir := t.TempDir()
	if _, err := watch.WriteFile(dir, stuck("a")); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := asks(t, "explain", dir); code != 0 || stderr != "" ||
		!strings.Contains(stdout, "job a, 2 replicas: 1 process; no file of replica 1\nfirst: replica 1, for whom the others wait") {
		t.Error(code, stdout, stderr)
	}
	empty := t.TempDir()
	for _, c := range []struct{ dir, want string }{
		{empty, "has no file of a process"}, {empty + "/none", "no such file"},
	} {
		if code, stdout, stderr := asks(t, "explain", c.dir); code != 1 || stdout != "" ||
			!strings.Contains(stderr, c.want) {
			t.Error(code, stdout, stderr)
		}
	}
	out := &cutAfter{left: 1}
	var errs strings.Builder
	if code := explain([]string{dir}, out, &errs); code != 1 || !strings.Contains(errs.String(), "nobody reads") {
		t.Error(code, errs.String())
	}
}

// TestSubcommandUsage has -h of each, and mistakes on the command line.
func TestSubcommandUsage(t *testing.T) {
	for name := range subcommands {
		if code, stdout, stderr := asks(t, name, "-h"); code != 0 || stderr != "" ||
			!strings.HasPrefix(stdout, "usage: gclrun "+name) {
			t.Error(code, stdout, stderr)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"status more", `unexpected argument "more"`},
		{"status -no", "flag provided but not defined: -no"},
		{"explain", "want one directory"},
		{"explain a b", "want one directory"},
	} {
		code, stdout, stderr := asks(t, strings.Fields(c.args)...)
		commandtest.Mistake(t, "gclrun "+strings.Fields(c.args)[0], c.want, code, stdout, stderr)
	}
}
