package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
)

// TestNewcomer: of four processes one dies, three go on from the last copy, and wait before step 7 for a process in its
// place. Then four go on, with the bits of a training that is resumed there with as many.
func TestNewcomer(t *testing.T) {
	onNumbers(t)
	dir := t.TempDir()
	flags := jobFlags + "-batch 12 -checkpoint " + dir + "/"
	job := jobtest.StartAt(t, 4, fmt.Sprintf("unix:@charlm-%d", os.Getpid()),
		strings.Fields(flags+"survivors -survive -copy 5 -die 2:8 -await 4:7")...)
	job.Await("replica 2 has died: 3 go on from step 5\n")
	job.Newcomer(t, 2)
	all := job.Wait()
	for rank, r := range all {
		if (r.Code != 0 || r.Stderr != "") != (rank == 2) {
			t.Errorf("replica %d: %+v", rank, r)
		}
	}
	got := all[0].Stdout
	if !strings.Contains(got, "\nreplica 3 has come: 4 go on from step 6\n") {
		t.Errorf("replica 0 prints\n%s", got)
	}
	until := func(step, from int, more string) {
		var stdout, stderr strings.Builder
		code := run(jobtest.Countdown(t.Context(), step-from-1), strings.Fields(flags+"resumed "+more), loadText,
			&stdout,
			&stderr)
		if code != command.Interrupted {
			t.Fatalf("exit code %d, standard error %q", code, &stderr)
		}
	}
	until(5, 0, "")
	until(6, 5, "-resume -n 3")
	want := output(t, flags+"resumed -resume", loadText)
	if !strings.HasSuffix(losses(got), losses(want)) || !strings.Contains(losses(want), "step 7  ") {
		t.Errorf("output:\n%s\nwant the end of\n%s", got, want)
	}
	wantSame(t, dir+"/survivors", dir+"/resumed")
}
