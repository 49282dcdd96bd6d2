package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/internal/hosttest"
	"gogcl.dev/internal/jobtest"
	"gogcl.dev/internal/watch"
)

// TestHosts: on each of two hosts a job's state has the replicas of both, and says for whom they wait on which host;
// the files of both hosts say who was first.
func TestHosts(t *testing.T) {
	hosttest.Run(t, 2, nil, func(t *testing.T, s *hosttest.Stage) {
		const replicas, victim = 8, 5
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		var sockets, files [2]string
		for host := range sockets {
			if sockets[host], err = os.MkdirTemp("", "gcl"); err != nil { // paths of sockets must be short
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(sockets[host]) })
			files[host] = t.TempDir()
		}
		processes := make([]*exec.Cmd, replicas)
		said := make([]strings.Builder, replicas)
		for r := range processes {
			host := r / (replicas / 2)
			cmd := exec.Command(program)
			cmd.Env = append(jobtest.Environment(), "GCL_RENDEZVOUS=10.77.0.1:6000",
				"GCL_SECRET=a secret of this test, and only of it",
				"GCL_JOB=test", fmt.Sprint("WORLD_SIZE=", replicas), fmt.Sprint("RANK=", r),
				"GCL_DUMP_DIR="+files[host], "XDG_RUNTIME_DIR="+sockets[host],
				jobtest.Entry("-kind", "lock", "-replica", fmt.Sprint(victim)))
			cmd.Stderr = &said[r]
			if err := s.Start(host, cmd); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, perhaps
			processes[r] = cmd
		}
		for _, dir := range sockets {
			until(t, "waiting for the replica", func() bool {
				jobs, err := watch.Ask(t.Context(), filepath.Join(dir, "gcl"))
				if err != nil {
					t.Fatal(err)
				}
				if len(jobs) != 1 {
					return false
				}
				v := jobs[0].Judge()
				var wait []int
				for _, e := range v.Edges {
					if e.To == victim {
						wait = append(wait, e.From)
					}
				}
				return slices.Equal(v.Sinks, []int{victim}) && slices.Equal(wait, []int{0, 1, 2, 3, 4, 6, 7})
			})
		}
		_ = processes[victim].Process.Kill()
		all := t.TempDir()
		for r, p := range processes {
			if err := p.Wait(); err == nil {
				t.Errorf("replica %d has not failed: %s", r, said[r].String())
			}
		}
		for _, dir := range files {
			if err := os.CopyFS(all, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
		}
		job, _, err := watch.ReadDir(all)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(job.Explain(nil), "\n")
		for _, want := range []string{"no file of replica 5", "first: replica 5 (pid ", "is lost: ",
			"replicas 0-4, 6, 7: in all-reduce #21 \"grads\""} {
			if !strings.Contains(text, want) {
				t.Errorf("there is no %q in\n%s", want, text)
			}
		}
	})
}
