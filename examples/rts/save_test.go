package main

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// saved is all that a checkpoint has.
func saved(t *testing.T, dir string) (state map[string][]byte, meta map[string]string) {
	t.Helper()
	state = map[string][]byte{}
	var want []checkpoint.Tensor
	for _, p := range params {
		for _, name := range []string{p.name, p.name + ".mean", p.name + ".square"} {
			want = append(want, checkpoint.Tensor{
				Name: name, DType: tensor.F32, Shape: p.shape, Shards: 1,
				Write: func(_ int, shard *tensor.Tensor) error {
					state[name] = slices.Clone(shard.Bytes())
					return nil
				},
			})
		}
	}
	meta, err := checkpoint.Load(t.Context(), dir, want)
	if err != nil {
		t.Fatal(err)
	}
	return state, meta
}

// wantSame wants two checkpoints to have the same bits: parameters, states, and the losses of all passes.
func wantSame(t *testing.T, got, want string) {
	t.Helper()
	gotState, gotMeta := saved(t, got)
	wantState, wantMeta := saved(t, want)
	if !maps.EqualFunc(gotState, wantState, slices.Equal) {
		t.Error("parameters or states differ")
	}
	if !maps.Equal(gotMeta, wantMeta) {
		t.Errorf("meta %v, want %v", gotMeta, wantMeta)
	}
}

// TestResume stops a training after some steps, goes on, stops again, and has the bits of one that was never stopped:
// on the same number of replicas, with a reference that resumes as well.
func TestResume(t *testing.T) {
	for _, n := range resumeReplicas {
		for _, storage := range resumeStorage {
			t.Run(fmt.Sprintf("n=%d/storage=%s", n, storage), func(t *testing.T) {
				dir := t.TempDir()
				args := []string{"-n", strconv.Itoa(n), "-epochs", "3", "-verify", "-storage", storage, "-checkpoint"}
				whole := output(t, append(args, dir+"/whole")...)
				parts := append(args, dir+"/parts")
				for i, steps := range []int{30, 0, 1, 15, 5} { // of 69; 46 are two passes
					if i > 0 {
						parts = append(parts[:len(args)+1:len(args)+1], "-resume")
					}
					got := runWith(jobtest.Countdown(t.Context(), steps), parts...)
					if got.code != command.Interrupted || !strings.HasPrefix(got.stderr, "rts: interrupted after ") ||
						!strings.HasSuffix(got.stderr, "; -resume goes on from "+dir+"/parts\n") {
						t.Fatalf("part %d: exit code %d, standard error %q", i, got.code, got.stderr)
					}
				}
				last := output(t, append(args, dir+"/parts", "-resume")...)
				if !want.MatchString(last) ||
					!strings.Contains(last, "\nresumed from "+dir+"/parts after 2 passes and 5 steps\n") ||
					!strings.Contains(last, "\nverified: 18 steps") {
					t.Errorf("output:\n%s", last)
				}
				if all := epochs(whole); !strings.HasSuffix(all, epochs(last)) ||
					strings.Count(epochs(last), "\n") != 1 {
					t.Errorf("%s, want the end of\n%s", epochs(last), all)
				}
				wantSame(t, dir+"/parts", dir+"/whole")
			})
		}
	}
}

// TestResumeOnOthers goes on with another number of replicas: the state is the same, and what follows is verified.
func TestResumeOnOthers(t *testing.T) {
	onNumbers(t)
	dir := t.TempDir()
	base := []string{"-checkpoint", dir + "/c", "-verify"}
	output(t, append(base, "-n", "4", "-epochs", "1")...)
	for i, n := range []string{"2", "8", "1", "3"} {
		before, _ := saved(t, dir+"/c")
		// Nothing remains to be trained: what is saved is what was loaded.
		if got := runWith(jobtest.Countdown(t.Context(), 0),
			append(base, "-n", n, "-epochs", "9", "-resume")...); got.code != command.Interrupted {
			t.Fatalf("n=%s: %+v", n, got)
		}
		if after, _ := saved(t, dir+"/c"); !maps.EqualFunc(after, before, slices.Equal) {
			t.Errorf("n=%s: the state has changed", n)
		}
		got := output(t, append(base, "-n", n, "-epochs", strconv.Itoa(i+2), "-resume")...)
		if !want.MatchString(got) || !strings.Contains(got, "\nverified: 23 steps") {
			t.Errorf("n=%s: output:\n%s", n, got)
		}
	}
	_, meta := saved(t, dir+"/c")
	at, err := parseMeta(meta, 1437)
	if err != nil || len(at.Passes) != 5 {
		t.Fatalf("position %v, error %v", at, err)
	}
	// Rounding is all that differs from a training that was not interrupted.
	output(t, "-checkpoint", dir+"/whole", "-epochs", "5")
	_, meta = saved(t, dir+"/whole")
	whole, err := parseMeta(meta, 1437)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range at.Passes {
		if want := whole.Passes[i].Loss; math.Abs(float64(p.Loss/want-1)) > 1e-4 {
			t.Errorf("pass %d: loss %v, want %v", i+1, p.Loss, want)
		}
	}
}

// TestResumeAtTheEnd has no step to make.
func TestResumeAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	args := []string{"-checkpoint", dir + "/c", "-epochs", "1", "-verify"}
	first := output(t, args...)
	got := output(t, append(args, "-resume")...)
	line := lineOf(first, "test accuracy")
	if epochs(got) != "" || !strings.Contains(got, "\nverified: 0 steps, losses, parameters and Adam's states equal "+
		"to the last bit\n"+line) {
		t.Errorf("output:\n%s", got)
	}
}

// lineOf is the line of an output that begins with prefix.
func lineOf(output, prefix string) string {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return "none"
}

// TestCtrlC saves on a real cancellation, and leaves what can be resumed.
func TestCtrlC(t *testing.T) {
	dir := t.TempDir() + "/c"
	got := interrupt(t, "epoch 2/", "-checkpoint", dir)
	if want := "rts: interrupted after 2 passes and 0 steps; -resume goes on from " + dir +
		"\n"; got.code != command.Interrupted || got.stderr != want {
		t.Errorf("exit code %d, standard error %q, want %q", got.code, got.stderr, want)
	}
	output(t, "-checkpoint", dir, "-resume", "-epochs", "3")
}

// TestResumeMistakes has flags that do not go with the checkpoint.
func TestResumeMistakes(t *testing.T) {
	onNumbers(t)
	dir := t.TempDir() + "/c"
	output(t, "-checkpoint", dir, "-epochs", "2", "-seed", "7", "-batch", "100")
	state, meta := saved(t, dir)
	in := " the checkpoint in " + dir
	for _, tt := range []struct{ args, want string }{
		{"-seed 7 -batch 100", "-checkpoint " + dir + ": it has a checkpoint already: -resume goes on from it"},
		{"-resume -seed 8 -batch 100", "-seed 8:" + in + " is of -seed 7"},
		{"-resume -seed 7 -batch 64", "-batch 64:" + in + " is of -batch 100"},
		{"-resume -seed 7 -batch 100 -lr 0.002", "-lr 0.002:" + in + " is of -lr 0.003"},
		{"-resume -seed 7 -batch 100 -clip 0", "-clip 0:" + in + " is of -clip 1"},
		{"-resume -seed 7 -batch 100 -epochs 1", "-epochs 1:" + in + " has come to pass 2"},
	} {
		wantMistake(t, runWith(t.Context(), strings.Fields("-checkpoint "+dir+" "+tt.args)...), tt.want)
	}
	if got := runWith(jobtest.Countdown(t.Context(), 1), "-checkpoint",
		dir, "-resume", "-seed", "7", "-batch", "100", "-epochs", "3"); got.code != command.Interrupted {
		t.Fatalf("%+v", got)
	}
	wantMistake(t, runWith(t.Context(), "-checkpoint", dir, "-resume", "-seed", "7", "-batch", "100", "-epochs", "2"),
		"-epochs 2:"+in+" has come to pass 3")
	after, _ := saved(t, dir)
	if maps.EqualFunc(after, state, slices.Equal) || len(meta) != 2 {
		t.Error("the step has changed nothing")
	}
}

// TestDamagedCheckpoint is about errors that are no mistakes of the command line.
func TestDamagedCheckpoint(t *testing.T) {
	dir := t.TempDir() + "/c"
	output(t, "-checkpoint", dir, "-epochs", "1")
	shards, err := filepath.Glob(dir + "/*/shard-00002*")
	if err != nil || len(shards) != 1 {
		t.Fatalf("%v, %v", shards, err)
	}
	data, err := os.ReadFile(shards[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-100] ^= 1
	if err := os.WriteFile(shards[0], data, 0o666); err != nil {
		t.Fatal(err)
	}
	got := runWith(t.Context(), "-checkpoint", dir, "-resume")
	if got.code != command.Failed || got.stdout != "" || !strings.Contains(got.stderr, shards[0]) ||
		strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%+v", got)
	}
}

// TestForeignCheckpoint resumes from what other programs have saved.
func TestForeignCheckpoint(t *testing.T) {
	for _, tt := range []struct {
		meta map[string]string
		want string
	}{
		{nil, `it is of the program "", want "gogcl.dev/examples/rts"`},
		{map[string]string{programKey: programName}, `its position "": unexpected end of JSON input`},
	} {
		dir := t.TempDir() + "/c"
		tr := trainerOf(t)
		tensors, err := tr.model.step.Checkpoint(tr.model.session)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkpoint.Save(t.Context(), dir, tensors, tt.meta); err != nil {
			t.Fatal(err)
		}
		got := runWith(t.Context(), "-checkpoint", dir, "-resume")
		if want := "rts: the checkpoint in " + dir + ": " + tt.want + "\n"; got.code != command.Failed ||
			got.stderr != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

// TestSaveFails ends a training whose directory is taken away.
func TestSaveFails(t *testing.T) {
	dir := t.TempDir() + "/c"
	var stderr strings.Builder
	code := run(t.Context(), []string{"-checkpoint", dir}, writer(func(p []byte) {
		if strings.HasPrefix(string(p), "epoch 1/") {
			if err := os.RemoveAll(dir); err != nil && runtime.GOOS != "windows" {
				t.Error(err)
			}
		}
	}), &stderr)
	if code != command.Failed || !strings.HasPrefix(stderr.String(), "rts: checkpoint: save to "+dir+": ") {
		t.Errorf("exit code %d, standard error %q", code, &stderr)
	}
}

// TestTwoInOneDirectory begins other trainings in the directory of one that runs, which does not notice.
func TestTwoInOneDirectory(t *testing.T) {
	dir := t.TempDir() + "/c"
	tried := 0
	var stderr strings.Builder
	code := run(t.Context(), []string{"-checkpoint", dir, "-epochs", "2", "-verify"}, writer(func(p []byte) {
		if !strings.HasPrefix(string(p), "epoch ") && !strings.HasPrefix(string(p), "1437 ") {
			return
		}
		tried++
		for _, flag := range []string{"-resume", "-verify"} {
			got := runWith(t.Context(), "-checkpoint", dir, flag)
			wantMistake(t, got, "checkpoint: open "+dir+": ")
			if !strings.Contains(got.stderr, checkpoint.ErrInUse.Error()) {
				t.Errorf("standard error %q", got.stderr)
			}
		}
	}), &stderr)
	if code != command.OK || tried != 3 {
		t.Errorf("exit code %d, standard error %q, after %d attempts", code, &stderr, tried)
	}
	output(t, "-checkpoint", dir, "-epochs", "3", "-verify", "-resume")
}

// TestDamagedIndex is not taken for a checkpoint, nor for none.
func TestDamagedIndex(t *testing.T) {
	dir := t.TempDir() + "/c"
	output(t, "-checkpoint", dir, "-epochs", "1")
	index, err := filepath.Glob(dir + "/*/index.json")
	if err != nil || len(index) != 1 {
		t.Fatalf("%v, %v", index, err)
	}
	if err := os.WriteFile(index[0], nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"-resume", "-verify"} {
		got := runWith(t.Context(), "-checkpoint", dir, flag)
		if got.code != command.Failed || got.stdout != "" ||
			!strings.HasPrefix(got.stderr, "rts: checkpoint: load from "+dir+": file "+index[0]) {
			t.Errorf("%+v", got)
		}
	}
}

// TestReferenceComparesLoaded gives the reference another checkpoint than the model has.
func TestReferenceComparesLoaded(t *testing.T) {
	dir := t.TempDir() + "/c"
	output(t, "-checkpoint", dir, "-epochs", "1")
	from, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tr := trainerOf(t, "-verify")
	err = tr.reference.load(t.Context(), from, 23, tr.model)
	if err := from.Close(); err != nil {
		t.Error(err)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "element ") {
		t.Errorf("error %v", err)
	}
}
