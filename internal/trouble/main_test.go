package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/internal/commandtest"
	"gogcl.dev/internal/jobtest"
	"gogcl.dev/internal/watch"
)

func TestMain(m *testing.M) { jobtest.Main(m, main) }

// troubled starts a job of 8 that goes wrong. Its sockets are in one directory, and its files in another.
func troubled(t *testing.T, args ...string) (job *jobtest.Job, sockets, files string) {
	if runtime.GOOS != "linux" {
		t.Skip("jobs are harmed by means of Linux")
	}
	files = t.TempDir()
	t.Setenv("GCL_DUMP_DIR", files)
	runtimeDir, err := os.MkdirTemp("", "gcl") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runtimeDir) })
	t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	job = jobtest.Start(t, 8, args...)
	t.Cleanup(func() {
		for _, p := range job.Processes {
			_ = p.Process.Kill() // it has ended, perhaps
		}
	})
	return job, filepath.Join(runtimeDir, "gcl"), files
}

// until calls f until it is true.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not %s in a minute", what)
		}
	}
}

// TestExplain: of each kind of trouble the files say who was first, and what it did.
func TestExplain(t *testing.T) {
	const grads = `all-reduce #21 "grads" of group {0, 1, 2, 3, 4, 5, 6, 7}`
	others := "\nreplicas 0-2, 4-7: in " + grads
	for _, c := range []struct {
		kind    string
		args    []string
		files   int  // how many there are to be
		remains bool // the process of replica 3 does not end by itself
		want    []string
	}{
		{"user", []string{"-limit", "3s"}, 8, true, []string{"deadline exceeded", "\nfirst: replica 3, for whom the others wait",
			"time.Sleep, in ", ".compute (", others}},
		{"lock", []string{"-limit", "3s"}, 8, true, []string{"first: replica 3, for whom", "sync.(*Mutex).Lock, in ",
			".takeLock (", others}},
		{"fewer", nil, 7, false, []string{"no file of replica 3", "first: replica 3 has left: "}},
		{"order", nil, 8, false, []string{"first: they disagree: ", "replica 3 calls barrier",
			"\nreplica 3: in barrier #21 \"epoch\""}},
		{"group", nil, 8, false, []string{"first: they disagree: ", "replica 3 in group {0, 1, 2, 3}",
			"\nreplica 3: in all-reduce #1 \"half\" of group {0, 1, 2, 3}"}},
		{"stopped", []string{"-silence", "3s"}, 7, true, []string{"no file of replica 3", "first: replica 3 (pid ",
			"it is stopped, or"}},
		{"killed", nil, 7, false, []string{"no file of replica 3", "first: replica 3 (pid ", "its process has ended"}},
		{"silent", []string{"-silence", "3s"}, 8, false, []string{"first: replica 3 (pid ", "said nothing for 3s"}},
		{"error", nil, 8, false, []string{"first: replica 3 has failed: ", "samples-0003.bin: no such file"}},
		{"full", nil, 7, false, []string{"no file of replica 3", "first: replica 3 has failed: ", "samples-0003.bin"}},
		{"panic", nil, 8, false, []string{"first: replica 3 has failed: ", "panic: runtime error: index out of range [3]",
			"panic, in ", ".look ("}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			if testing.Short() && c.kind != "lock" && c.kind != "killed" {
				t.Skip("it takes seconds of waiting, and all are told apart without -short")
			}
			job, _, dir := troubled(t, append(c.args, "-kind", c.kind)...)
			var said watch.Job
			until(t, "written", func() bool {
				var err error
				if said, _, err = watch.ReadDir(dir); err != nil {
					t.Fatal(err)
				}
				failed := 0
				for _, p := range said.Processes {
					if p.Failure != nil {
						failed++
					}
				}
				return failed == c.files
			})
			if c.remains {
				_ = job.Processes[3].Process.Kill()
			}
			ends := job.Wait()
			text := "\n" + strings.Join(said.Explain(nil), "\n") + "\n"
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("there is no %q in\n%s", want, text)
				}
			}
			if c.kind == "full" && !strings.Contains(ends[3].Stderr, "cannot be written") {
				t.Errorf("replica 3 says %s", ends[3].Stderr)
			}
		})
	}
}

// TestStatus: while a job goes on it says for whom it waits, and why; also where that replica is stopped, and where
// another is dead.
func TestStatus(t *testing.T) {
	look := func(t *testing.T, dir string) (job watch.Job, v watch.Verdict, table string) {
		jobs, err := watch.Ask(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(jobs) != 1 {
			return job, v, ""
		}
		var b bytes.Buffer
		if err := jobs[0].WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(jobs); err != nil {
			t.Fatal(err)
		}
		return jobs[0], jobs[0].Judge(), b.String()
	}
	t.Run("stuck and dead", func(t *testing.T) {
		job, dir, _ := troubled(t, "-kind", "lock")
		var table string
		until(t, "waiting for replica 3", func() bool {
			_, v, text := look(t, dir)
			table = text
			return slices.Equal(v.Sinks, []int{3}) && len(v.Edges) == 7 && strings.Contains(text, ".takeLock (")
		})
		lines := strings.Split(table, "\n")
		if !strings.Contains(lines[0], "job test, 8 replicas by shm: 7 wait for replica 3") ||
			!strings.HasPrefix(lines[2], "3 ") || !strings.Contains(lines[3], ".takeLock (") {
			t.Errorf("%s", table)
		}
		_ = job.Processes[5].Process.Kill()
		until(t, "failed", func() bool {
			j, _, text := look(t, dir)
			table = text
			failed := func(p watch.Process) bool { return p.PID == job.Processes[3].Process.Pid && p.Failure != nil }
			return slices.ContainsFunc(j.Processes, failed)
		})
		if !strings.Contains(table, "it has failed: ") || !strings.Contains(table, "replica 5") {
			t.Errorf("%s", table)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		_, dir, _ := troubled(t, "-kind", "stopped", "-silence", "1h")
		until(t, "stopped", func() bool {
			j, v, _ := look(t, dir)
			return slices.Equal(v.Sinks, []int{3}) && len(v.Edges) == 7 && len(j.Missing) == 1 &&
				j.Missing[0].Replica == 3 && j.Missing[0].PID != 0 && j.Missing[0].Why == "is stopped"
		})
	})
	t.Run("slow", func(t *testing.T) {
		_, dir, _ := troubled(t, "-kind", "slow", "-late", "100ms") // which stands out on a busy machine too
		until(t, "late", func() bool {
			j, _, table := look(t, dir)
			s := watch.Stragglers(watch.Lateness(j.Processes))
			return len(s) == 1 && s[0].Replica == 3 && strings.Contains(table, "replica 3 was last in")
		})
	})
}

// TestUsage has mistakes on the command line.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-kind", "more"}, `-kind "more", want one of none, user, `},
		{[]string{"more"}, `unexpected argument "more"`},
	} {
		var stdout, stderr strings.Builder
		code := run(context.Background(), c.args, &stdout, &stderr)
		commandtest.Mistake(t, "trouble", c.want, code, stdout.String(), stderr.String())
	}
}
