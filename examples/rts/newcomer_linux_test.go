package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
)

// socket is where the processes of a test meet.
func socket(t *testing.T) string {
	return fmt.Sprintf("unix:@rts-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
}

// TestNewcomer: of four processes one dies, replica 3 or the one at the meeting point. Three go on from the last copy,
// and wait before step 40 for a process in its place, which comes with all the flags and is replica 3. Then four go on,
// with the bits of a training that is resumed there with as many. The newcomer does not die again.
func TestNewcomer(t *testing.T) {
	for _, dies := range []int{3, 0} {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			dir := t.TempDir()
			job := jobtest.StartAt(t, 4, socket(t), "-survive", "-copy", "23", "-die", fmt.Sprint(dies, ":45"),
				"-await", "4:40", "-epochs", "3", "-checkpoint", dir+"/survivors")
			job.Await("has died: 3 go on")
			job.Newcomer(t, dies)
			all := job.Wait()
			for rank, r := range all {
				if (r.Code != 0 || r.Stderr != "") != (rank == dies) {
					t.Errorf("replica %d: %+v", rank, r)
				}
			}
			first := 0
			if dies == 0 {
				first = 1
			}
			got := all[first].Stdout
			form := regexp.MustCompile(fmt.Sprintf(`replica %d has died: 3 go on from step 23
(?:step 40 waits: 3 of 4 replicas are here
)?replica 3 has come: 4 go on from step (\d+)
epoch 2/3 .*
epoch 3/3 `, dies))
			if !form.MatchString(got) {
				t.Fatalf("replica %d prints\n%s\nwant %v", first, got, form)
			}
			resumed(t, dir+"/resumed", leg{4, 1, 0}, leg{3, 0, 39}, leg{4, 3, 0})
			wantSame(t, dir+"/survivors", dir+"/resumed")
		})
	}
}

// TestAwaitInterrupted: replicas that wait for a newcomer stop when one of them is told to, with a checkpoint.
func TestAwaitInterrupted(t *testing.T) {
	dir := t.TempDir()
	job := jobtest.StartAt(t, 4, socket(t), "-survive", "-die", "2:45", "-await", "4:50", "-checkpoint", dir)
	job.Await("step 50 waits: 3 of 4 replicas are here\n")
	if err := job.Processes[1].Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for rank, r := range job.Wait() {
		want := command.Interrupted
		if rank == 2 {
			want = -1 // killed
		}
		said := "rts: interrupted after 2 passes and 4 steps; -resume goes on from " + dir + "\n"
		if r.Code != want || rank == 0 && r.Stderr != said {
			t.Errorf("replica %d: %+v", rank, r)
		}
	}
}

// TestAwaitMistakes: there are never more replicas than in the beginning, and none comes where none finds the job.
func TestAwaitMistakes(t *testing.T) {
	for _, c := range []struct{ at, await, want string }{
		{socket(t), "3:1", "-await 3:1: there are 2 replicas, and never more"},
		{"dir:" + t.TempDir(), "2:1", "-await: the job meets in a directory, where no newcomer finds it: want " +
			"GCL_RENDEZVOUS to be a socket"},
	} {
		got := jobtest.StartAt(t, 2, c.at, "-survive", "-await", c.await).Wait()[0]
		if want := "rts: " + c.want + " (-h lists the flags)\n"; got.Code != command.Usage || got.Stderr != want {
			t.Errorf("-await %s: %+v, want %s", c.await, got, want)
		}
	}
}
