package main

import (
	"log/slog"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
)

// TestSurvive: a replica dies, and the others go on from the last copied step, with the bits of a training that is
// resumed there with as many.
func TestSurvive(t *testing.T) {
	onNumbers(t)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
	for _, die := range []string{"2", "0"} {
		dir := t.TempDir()
		flags := jobFlags + "-batch 12 -checkpoint " + dir + "/"
		got := output(t, flags+"survivors -survive -copy 5 -die "+die+":8", loadText)
		if want := "\nreplica " + die + " has died: 3 go on from step 5\n"; !strings.Contains(got, want) {
			t.Errorf("output:\n%s\nwant %s", got, want)
		}
		var stdout, stderr strings.Builder
		args := strings.Fields(flags + "resumed")
		code := run(jobtest.Countdown(t.Context(), 4), args, loadText, &stdout, &stderr)
		if code != command.Interrupted {
			t.Fatalf("exit code %d, standard error %q", code, &stderr)
		}
		want := output(t, flags+"resumed -resume -n 3", loadText)
		if !strings.HasSuffix(losses(got), losses(want)) || !strings.Contains(losses(want), "step 6  ") {
			t.Errorf("output:\n%s\nwant the end of\n%s", got, want)
		}
		wantSame(t, dir+"/survivors", dir+"/resumed")
	}
}

// TestSurviveUnequal: three replicas cannot share a batch of 16, and one is left at last.
func TestSurviveUnequal(t *testing.T) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
	got := output(t, jobFlags+"-survive -copy 2 -whole -die 1:4,0:7,3:10", loadText)
	for _, want := range []string{"replica 1 has died: 3 go on", "2 go on", "1 goes on", "held-out loss"} {
		if !strings.Contains(got, want) {
			t.Errorf("output:\n%s\nwant %s", got, want)
		}
	}
}
