package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/watch"
)

// TestStraggler: a replica that comes to every other call after all others is named by Dump, and where each of them is
// the last in turn nobody is.
func TestStraggler(t *testing.T) {
	const n, calls = 4, 80
	for _, c := range []struct {
		name string
		late func(call int) int // who comes late; n: nobody
		want string
	}{
		{"one", func(call int) int { return 2 + call%2*(n-2) }, `\nreplica 2 was last in [4-7]\d of 81 `},
		{"in turn", func(call int) int { return call % n }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text string
			err := gcl.Run(t.Context(), n, func(ctx context.Context, c2 *gcl.Comm) error {
				for call := range calls {
					if c.late(call) == c2.Rank() {
						in := fmt.Sprintf(" is in all-reduce #%d of ", call+1)
						for strings.Count(c2.Dump(), in) < n-1 { // all others have come
							time.Sleep(time.Millisecond)
						}
						time.Sleep(200 * time.Microsecond)
					}
					if _, err := gcl.AllReduce(ctx, c2, []float32{1}, gcl.Add); err != nil {
						return err
					}
				}
				if err := c2.Barrier(ctx); err != nil {
					return err
				}
				if c2.Rank() == 0 {
					text = c2.Dump()
				}
				return c2.Barrier(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			// Of the other calls a replica is the last as well.
			if named := strings.Contains(text, "was last in"); named != (c.want != "") ||
				!regexp.MustCompile(c.want).MatchString("\n"+text) {
				t.Errorf("%s", text)
			}
		})
	}
}

// TestStragglers is the same as programs are: of 1,000 calls one replica sleeps 2 ms in every other one. In 95 of 100
// runs it is the first who is named, and where nobody sleeps nobody is named. Its outcome hangs on what else the
// machine does, so it only runs with -full.
func TestStragglers(t *testing.T) {
	if !*full {
		t.Skip("runs with -full, on a machine that does nothing else")
	}
	const n, calls, runs = 4, 1000, 100
	var right, nobody int
	for run := range 2 * runs {
		var text string
		late := run % n
		if run >= runs {
			late = n
		}
		err := gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
			for call := range calls {
				if c.Rank() == late && call%2 == 0 {
					time.Sleep(2 * time.Millisecond)
				}
				if _, err := gcl.AllReduce(ctx, c, []float32{1}, gcl.Add); err != nil {
					return err
				}
			}
			if c.Rank() == 0 {
				text = c.Dump()
			}
			return c.Barrier(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		_, named, _ := strings.Cut(text, "\nreplica ") // behind the calls in progress, of which there may be none
		if !strings.Contains(text, "was last in") {
			named = ""
		}
		switch {
		case late == n && named == "":
			nobody++
		case late < n && strings.Contains(text, fmt.Sprintf("replica %d was last in", late)) &&
			strings.Count(text, "was last in") == 1:
			right++
		default:
			t.Logf("run %d, %d late: %.300s", run, late, text)
		}
	}
	t.Logf("named alone in %d of %d runs; nobody in %d of %d without", right, runs, nobody, runs)
	if right < 95 || nobody < 95 {
		t.Errorf("%d and %d of %d, want 95", right, nobody, runs)
	}
}

// filesIn are what a directory has of a job, when it holds.
func filesIn(t *testing.T, dir string, holds func(watch.Job) bool) watch.Job {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		job, complaints, err := watch.ReadDir(dir)
		if err != nil || complaints != nil {
			t.Fatal(err, complaints)
		}
		if holds(job) {
			return job
		}
		if time.Now().After(end) {
			t.Fatalf("after a minute there is %+v", job)
		}
	}
}

// TestDumpDir: a file is written when the communicator fails, before Run returns, and when a call waits long.
func TestDumpDir(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GCL_DUMP_DIR", dir)
	err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 1 {
			return errors.New("no more data")
		}
		return c.Named("end").Barrier(ctx)
	})
	if err == nil {
		t.Fatal("no error")
	}
	job := filesIn(t, dir, func(job watch.Job) bool { return len(job.Processes) == 1 })
	p := job.Processes[0]
	if p.Failure == nil || p.Failure.Replica != 1 || !strings.Contains(p.Failure.Error, "no more data") ||
		len(p.Replicas) != 3 || p.PID != os.Getpid() || job.Size != 3 {
		t.Errorf("%+v", p)
	}

	dir = t.TempDir()
	t.Setenv("GCL_DUMP_DIR", dir)
	free := make(chan struct{})
	done := make(chan error)
	go func() {
		done <- gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				<-free
			}
			return c.Barrier(ctx)
		}, gcl.WithStallAfter(10*time.Millisecond))
	}()
	job = filesIn(t, dir, func(job watch.Job) bool { // it is written again and again
		return len(job.Processes) == 1 && strings.Contains(job.Processes[0].Replicas[1].Stack, "chan receive")
	})
	if v := job.Judge(); job.Processes[0].Failure != nil || fmt.Sprint(v.Sinks) != "[1]" ||
		!strings.Contains(job.Processes[0].Replicas[0].Stack, "Barrier") {
		t.Errorf("%+v, and %+v", v, job.Processes[0])
	}
	close(free)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSeen: the replicas of a job answer those that ask from when they have joined until they leave, but where they are
// not to.
func TestSeen(t *testing.T) {
	for _, off := range []bool{false, true} {
		dir, err := os.MkdirTemp("", "gcl") // paths of sockets must be short
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		t.Setenv("XDG_RUNTIME_DIR", dir)
		want := 3
		if off {
			t.Setenv("GCL_STATUS", "off")
			want = 0
		}
		ask := func() []watch.Job {
			jobs, err := watch.Ask(t.Context(), filepath.Join(dir, "gcl"))
			if err != nil {
				t.Fatal(err)
			}
			return jobs
		}
		config := job(t, 3)
		errs := inJob(3, func(rank int) error {
			cfg := config
			cfg.Rank = rank
			return gcl.RunProcess(t.Context(), cfg, func(ctx context.Context, c *gcl.Comm) error {
				if err := c.Barrier(ctx); err != nil {
					return err
				}
				if rank == 0 {
					for heard := -1; heard != want; { // the machine may be busy
						heard = 0
						for _, j := range ask() {
							heard += len(j.Processes)
							if j.Name != "test" && len(j.Processes) > 0 || j.Size != 3 || j.Transport == "" {
								t.Errorf("%+v", j)
							}
						}
						if heard > want {
							t.Fatalf("%d processes, want %d", heard, want)
						}
					}
				}
				return c.Barrier(ctx)
			})
		})
		if err := errors.Join(errs...); err != nil {
			if strings.Contains(err.Error(), "only on Unix") {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		if left := ask(); len(left) > 0 {
			t.Errorf("after the end there is %+v", left)
		}
	}
}
