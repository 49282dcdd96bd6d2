package main

import (
	"errors"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// TestMain is the program where the tests start it, and where -tokens does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-tokens" {
		main()
	}
	jobtest.Main(m, main)
}

// losses are all losses of an output. What mpirun shows is as on a terminal.
func losses(output string) string {
	form := regexp.MustCompile(`step \d+  loss \S+  held out \S+|held-out loss \S+`)
	return strings.Join(form.FindAllString(output, -1), "\n")
}

// saved is all tensors of a checkpoint, and the position without the time that it took.
func saved(t *testing.T, dir string) (map[string][]byte, position) {
	t.Helper()
	tr, err := newTrainer(way{replicas: 1}, sizeFor(10_000, vocabularyOf(t)), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	tensors, err := tr.made.Checkpoint(tr.session)
	if err != nil {
		t.Fatal(err)
	}
	state := map[string][]byte{}
	for i := range tensors {
		name := tensors[i].Name
		tensors[i].Write = func(_ int, shard *tensor.Tensor) error {
			state[name] = slices.Clone(shard.Bytes())
			return nil
		}
	}
	meta, err := checkpoint.Load(t.Context(), dir, tensors)
	if err != nil {
		t.Fatal(err)
	}
	at, err := parseMeta(meta)
	if err != nil {
		t.Fatal(err)
	}
	at.Took, at.random = 0, nil
	return state, *at
}

func vocabularyOf(t *testing.T) int {
	t.Helper()
	book, err := loadText()
	if err != nil {
		t.Fatal(err)
	}
	return len(book.vocabulary)
}

// wantSame wants two checkpoints to have the same bits.
func wantSame(t *testing.T, got, want string) {
	t.Helper()
	gotState, gotAt := saved(t, got)
	wantState, wantAt := saved(t, want)
	for name, bytes := range wantState {
		if !slices.Equal(gotState[name], bytes) {
			t.Errorf("%s differs", name)
			break
		}
	}
	if gotAt.Step != wantAt.Step || gotAt.Sum != wantAt.Sum || !slices.Equal(gotAt.Random, wantAt.Random) {
		t.Errorf("position %+v, want %+v", gotAt, wantAt)
	}
}

const jobFlags = "-size 10000 -steps 12 -sample 10 "

// TestJob: four processes have the losses of four goroutines, to the bit, and make up the same text.
func TestJob(t *testing.T) {
	onNumbers(t)
	ways := []string{"-overlap", "-whole -method clockwise_ring"}
	if testing.Short() {
		ways = ways[:1]
	}
	for _, flags := range ways {
		alone := output(t, jobFlags+flags, loadText)
		job := jobtest.Start(t, 4, strings.Fields(jobFlags+flags)...).Printed(t)
		if losses(job) != losses(alone) || strings.Count(losses(job), "\n") < 12 {
			t.Errorf("%s: a job prints\n%s\nwant\n%s", flags, job, alone)
		}
		if made := alone[len(alone)-12:]; !strings.HasSuffix(job, made) {
			t.Errorf("%s: a job makes up %q, want %q", flags, job[len(job)-12:], made)
		}
		went := regexp.MustCompile(`(?m)^collectives over shm: (peer memory \d+(, small \d+)?|messages \d+)$`)
		match := went.FindStringSubmatch(job)
		if byMethod := strings.Contains(flags, "-method"); runtime.GOOS == "linux" &&
			(match == nil || byMethod != strings.HasPrefix(match[1], "messages")) {
			t.Errorf("%s: collectives went %q:\n%s", flags, match, job)
		}
	}
}

// TestMPI is TestJob under mpirun.
func TestMPI(t *testing.T) {
	onNumbers(t)
	if testing.Short() {
		t.Skip("it takes seconds: not with -short")
	}
	const flags = "-n 2 -minutes 0.005 -size 10000 -sample 0"
	if job := jobtest.MPI(t, 2, strings.Fields(flags)...).Printed(t); !strings.Contains(job, "held-out loss") {
		t.Errorf("output:\n%s", job)
	}
	alone := output(t, "-n 2 "+jobFlags, loadText)
	if job := jobtest.MPI(t, 2, strings.Fields(jobFlags)...).Printed(t); losses(job) != losses(alone) {
		t.Errorf("a job prints\n%s\nwant\n%s", job, alone)
	}
}

// TestJobResume saves in one process and resumes in four, and the reverse, with the bits of a training that was never
// interrupted.
func TestJobResume(t *testing.T) {
	onNumbers(t)
	dir := t.TempDir()
	flags := func(name, more string) string { return jobFlags + "-checkpoint " + dir + "/" + name + " " + more }
	whole := output(t, flags("whole", ""), loadText)

	var stdout, stderr strings.Builder
	code := run(jobtest.Countdown(t.Context(), 4), strings.Fields(flags("out", "")), loadText, &stdout, &stderr)
	want := "charlm: interrupted after step 5; -resume goes on from " + dir + "/out\n"
	if code != command.Interrupted || stderr.String() != want {
		t.Fatalf("exit code %d, standard error %q, want %q", code, &stderr, want)
	}
	job := jobtest.Start(t, 4, strings.Fields(flags("out", "-resume"))...).Printed(t)
	if rest := losses(job); !strings.HasSuffix(losses(whole), rest) || !strings.Contains(rest, "step 6  ") {
		t.Errorf("%s, want the end of\n%s", job, whole)
	}
	wantSame(t, dir+"/out", dir+"/whole")

	if runtime.GOOS == "windows" {
		return // one process cannot interrupt another
	}
	j := jobtest.Start(t, 4, strings.Fields(flags("back", "-method broadcast"))...)
	j.Await("step 3 ")
	if err := j.Processes[1].Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	for rank, r := range j.Wait() {
		switch {
		case r.Code == command.OK: // it was faster
		case r.Code != command.Interrupted || (r.Stderr != "") != (rank == 0):
			t.Errorf("replica %d: %+v", rank, r)
		}
	}
	output(t, flags("back", "-resume"), loadText)
	wantSame(t, dir+"/back", dir+"/whole")
	// At the end there is no step to make.
	if got := output(t, flags("back", "-resume"), loadText); !strings.Contains(got, "held-out loss") {
		t.Errorf("output:\n%s", got)
	}
}

// TestResumeMistakes has flags that do not go with the checkpoint.
func TestResumeMistakes(t *testing.T) {
	onNumbers(t)
	dir := t.TempDir() + "/c"
	output(t, "-steps 1 -sample 0 -checkpoint "+dir+small+" -n 1", fewPages)
	for _, tt := range []struct{ args, want string }{
		{"", "-checkpoint " + dir + ": it has a checkpoint already: -resume goes on from it"},
		{"-resume -seed 8", "-seed 8: the checkpoint in " + dir + " is of -seed 1"},
		{"-resume -lr 0.5", "-lr 0.5: the checkpoint in " + dir + " is of -lr 0"},
		{"-resume -checkpoint " + dir + "/none", "-resume: there is no checkpoint in " + dir + "/none"},
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), strings.Fields("-n 1 -steps 1 -checkpoint "+dir+small+" "+tt.args), fewPages, &stdout,
			&stderr)
		if want := "charlm: " + tt.want + " (-h lists the flags)\n"; code != command.Usage || stderr.String() != want {
			t.Errorf("exit code %d, standard error %q, want %q", code, &stderr, want)
		}
	}
}

// TestJobMistakes: replica 0 says what is wrong, and all have the exit code.
func TestJobMistakes(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "-batch 16: the 3 replicas cannot share it equally"},
		{"-split -batch 15 -size 1000000", "the layers cannot be split over 3 replicas, each with as many of the 4 heads: " +
			"want a number of replicas among [1 2 4], or another -size"},
		{"-tokens -svg a.svg", "-minutes and -svg are of the table of -tokens, which has replicas of its own: leave -n " +
			"out, and start it by hand"},
	} {
		for rank, r := range jobtest.Start(t, 3, strings.Fields(tt.args)...).Wait() {
			want := "charlm: " + tt.want + " (-h lists the flags)\n"
			if rank > 0 {
				want = ""
			}
			if r.Code != command.Usage || r.Stdout != "" || r.Stderr != want {
				t.Errorf("%s: replica %d: %+v, want %s", tt.args, rank, r, want)
			}
		}
	}
}
