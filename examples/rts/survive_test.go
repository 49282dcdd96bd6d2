package main

import (
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
)

// quiet has what is logged go nowhere during a test.
func quiet(t testing.TB) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
}

// leg is replicas that train to the end of a pass, or of a step.
type leg struct{ replicas, passes, step int }

// resumed trains, and each time resumes on others.
func resumed(t *testing.T, dir string, legs ...leg) {
	t.Helper()
	step := 0
	for i, l := range legs {
		args := []string{"-n", strconv.Itoa(l.replicas), "-epochs", strconv.Itoa(l.passes), "-checkpoint", dir}
		if i > 0 {
			args = append(args, "-resume")
		}
		if l.passes > 0 {
			output(t, args...)
			step = l.passes * 23
			continue
		}
		args[3] = "1000"
		if got := runWith(jobtest.Countdown(t.Context(), l.step-step), args...); got.code != command.Interrupted {
			t.Fatalf("rts %s: %+v", args, got)
		}
		step = l.step
	}
}

// TestSurvive: replicas of one process die in a pass of 23 steps, and the others go on from its beginning, with the
// bits of a training that is resumed there with as many.
func TestSurvive(t *testing.T) {
	quiet(t)
	for _, tt := range []struct {
		die  string
		legs []leg
		want string
	}{
		{"2:30", []leg{{4, 1, 0}, {3, 3, 0}}, "replica 2 has died: 3 go on from step 23"},
		{"0:30", []leg{{4, 1, 0}, {3, 3, 0}}, "replica 0 has died: 3 go on from step 23"},
		{"3:40,0:60", []leg{{4, 1, 0}, {3, 2, 0}, {2, 3, 0}},
			"replica 3 has died: 3 go on from step 23\n.*replica 0 has died: 2 go on from step 46"},
	} {
		dir := t.TempDir()
		got := output(t, "-survive", "-copy", "23", "-die", tt.die, "-epochs", "3", "-checkpoint", dir+"/survivors")
		if !regexp.MustCompile("(?s)" + strings.ReplaceAll(tt.want, "\n", ".*")).MatchString(got) {
			t.Errorf("-die %s prints\n%s\nwant %s", tt.die, got, tt.want)
		}
		resumed(t, dir+"/resumed", tt.legs...)
		wantSame(t, dir+"/survivors", dir+"/resumed")
	}
}

// TestSurviveLost: where nobody has a shard any more, the last checkpoint has it. The copies after that are of their
// own place in the training.
func TestSurviveLost(t *testing.T) {
	quiet(t)
	dir := t.TempDir()
	got := output(t, "-survive", "-copy", "23", "-die", "1:30,2:30,0:60", "-epochs", "3", "-checkpoint",
		dir+"/survivors")
	want := "replicas [1 2] are gone, and nobody else has had shards [1] of the copy in memory: load the last " +
		"checkpoint\nreplicas 1, 2 have died: 2 go on from step 23\n"
	// One that hears of the other before its own step dies in that step the next time.
	if !strings.Contains(got, want) && !strings.Contains(got, " has died: 2 go on from step 23\n") ||
		!strings.Contains(got, "replica 0 has died: 1 goes on from step 46\n") {
		t.Errorf("it prints\n%s", got)
	}
	resumed(t, dir+"/resumed", leg{4, 1, 0}, leg{2, 2, 0}, leg{1, 3, 0})
	wantSame(t, dir+"/survivors", dir+"/resumed")
}

// TestSurviveJob kills a process of four, replica 0 or another: the others go on, with the bits of a training that is
// resumed with three.
func TestSurviveJob(t *testing.T) {
	for _, killed := range []int{2, 0} {
		dir := t.TempDir()
		job := jobtest.Start(t, 4, "-survive", "-copy", "23", "-epochs", "25", "-checkpoint", dir+"/survivors")
		job.Await("epoch 2/")
		if err := job.Processes[killed].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		all := job.Wait()
		for rank, r := range all {
			if (r.Code != 0 || r.Stderr != "") != (rank == killed) {
				t.Errorf("replica %d of which %d is killed: %+v", rank, killed, r)
			}
		}
		first := 0
		if killed == 0 {
			first = 1
		}
		form := regexp.MustCompile(`replica (\d) has died: 3 go on from step (\d+)\n`)
		match := form.FindStringSubmatch(all[first].Stdout)
		if match == nil || match[1] != strconv.Itoa(killed) {
			t.Fatalf("replica %d prints\n%s", first, all[first].Stdout)
		}
		step, err := strconv.Atoi(match[2])
		if err != nil || step%23 != 0 || step < 23 {
			t.Fatalf("they went on from step %d, error %v", step, err)
		}
		resumed(t, dir+"/resumed", leg{4, step / 23, 0}, leg{3, 25, 0})
		wantSame(t, dir+"/survivors", dir+"/resumed")
	}
}

// TestSurviveMistakes has flags that do not go together.
func TestSurviveMistakes(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-die 2:45", "-die: there is no -survive"},
		{"-survive -die 2", `invalid value "2" for flag -die: "2": want replica:step, as 2:45`},
		{"-survive -die 2:0", `invalid value "2:0" for flag -die: "2:0": want replica:step, as 2:45`},
		{"-await 4:45", "-await: there is no -survive"},
		{"-survive -await 4", `invalid value "4" for flag -await: "4": want replicas:step, as 4:200`},
		{"-survive -await 0:3", `invalid value "0:3" for flag -await: "0:3": want replicas:step, as 4:200`},
		{"-survive -await 4:0", `invalid value "4:0" for flag -await: "4:0": want replicas:step, as 4:200`},
		{"-survive -await 4:45", "-await: the replicas are goroutines, and newcomers are processes: start them by gclrun"},
		{"-survive -copy 0", "-copy 0: there must be at least 1 step from copy to copy"},
		{"-survive -verify", "-verify: with -survive the number of replicas changes, and the reference's does not"},
	} {
		wantMistake(t, runWith(t.Context(), strings.Fields(tt.args)...), tt.want)
	}
}
