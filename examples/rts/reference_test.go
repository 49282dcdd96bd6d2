package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/internal/member"
	"gogcl.dev/internal/progress"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/rts/checkpoint"
)

// rightFold is x0 + (x1 + (x2 + ...)), which is not what Reproducible promises.
func rightFold(parts []*ir.Tensor) *ir.Tensor {
	sum := parts[len(parts)-1]
	for _, t := range slices.Backward(parts[:len(parts)-1]) {
		sum = ops.Add(t, sum)
	}
	return sum
}

// trainerOf makes the trainer of a command line.
func trainerOf(t *testing.T, args ...string) *trainer {
	t.Helper()
	cfg, err := parseFlags(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	train, test, err := perceptron.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.check(train.Len()); err != nil {
		t.Fatal(err)
	}
	tr, err := newTrainer(t.Context(), cfg, train, test, progress.New(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// TestWrongFold gives the trainer a reference that folds in another order, and one that begins with other weights: both
// are noticed.
func TestWrongFold(t *testing.T) {
	for _, tt := range []struct {
		name string
		fold fold
		seed uint64
		want string
	}{
		{"right", leftFold, 1, ""},
		{"wrong fold", rightFold, 1, "step "},
		{"wrong weights", leftFold, 2, "step 1: the loss on replica 0 is "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := trainerOf(t, "-epochs", "1")
			var err error
			if tr.reference, err = newReference(tr.cfg, tr.shares, firstWeights(tt.seed), tt.fold); err != nil {
				t.Fatal(err)
			}
			err = tr.run(t.Context())
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want) ||
				!strings.HasSuffix(err.Error(), " in the reference")):
				t.Errorf("error %v, want %q", err, tt.want)
			case tt.want != "" && len(tr.at.Passes) > 0:
				t.Error("it went on")
			}
		})
	}
}

// TestCompare finds one bit, on any replica, also where numbers are equal or are not numbers.
func TestCompare(t *testing.T) {
	nan, negative := float32(math.NaN()), float32(math.Copysign(0, -1))
	if err := compare("loss", member.All(2), []float32{nan, nan}, nan); err != nil {
		t.Error(err)
	}
	for _, got := range [][]float32{{1, math.Nextafter32(1, 2)}, {nan, 1}, {1, 1, nan}} {
		if compare("loss", member.All(3), got, 1) == nil {
			t.Errorf("%v is like 1", got)
		}
	}
	err := compare("loss", member.All(3), []float32{0, 0, negative}, 0)
	if want := "the loss on replica 2 is -0 (80000000), and 0 (00000000) in the reference"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestReferenceChecksNorms gives the reference a loss that is right, and a norm that is not.
func TestReferenceChecksNorms(t *testing.T) {
	tr := trainerOf(t, "-verify")
	if _, err := tr.step(t.Context(), orderOf(1, 0, tr.train.Len())[:tr.cfg.batch]); err != nil {
		t.Fatal(err)
	}
	tr.stepper.norms[3] = math.Nextafter32(tr.stepper.norms[3], 0)
	err := tr.reference.check(t.Context(), tr.model, tr.stepper)
	if err == nil || !strings.HasPrefix(err.Error(), "step 1: the norm of the gradients on replica 3 is ") {
		t.Errorf("error %v", err)
	}
}

// TestWrongUpdate changes the last bit of one number after the only step: losses and norms do not show it.
func TestWrongUpdate(t *testing.T) {
	onNumbers(t)
	for _, name := range []string{"w1", "b1.mean", "w2.square", "b2"} {
		tr := trainerOf(t, "-verify", "-n", "3", "-batch", "1437")
		if _, err := tr.step(t.Context(), orderOf(1, 0, 1437)); err != nil {
			t.Fatal(err)
		}
		tensors, err := tr.model.step.Checkpoint(tr.model.session)
		if err != nil {
			t.Fatal(err)
		}
		of := tensors[slices.IndexFunc(tensors, func(c checkpoint.Tensor) bool { return c.Name == name })]
		shard, err := of.Read(1)
		if err != nil {
			t.Fatal(err)
		}
		shard.Bytes()[4] ^= 1
		if err := of.Write(1, shard); err != nil {
			t.Fatal(err)
		}
		err = tr.reference.check(t.Context(), tr.model, tr.stepper)
		want := fmt.Sprintf("step 1: element %d of %s, in shard 1, is ", shard.Len()+1, name)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestWrongLastStep makes the last step, which is the only one, with the number of another.
func TestWrongLastStep(t *testing.T) {
	tr := trainerOf(t, "-verify", "-batch", "1437", "-epochs", "1")
	tr.reference.made = 1
	err := tr.run(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "step 2: element ") || len(tr.at.Passes) > 0 {
		t.Errorf("error %v after %v", err, tr.at)
	}
}

// TestNotANumber goes on to compare when training has gone wrong: every NaN has the same bits.
func TestNotANumber(t *testing.T) {
	if got := output(t, "-verify", "-lr", "1e38", "-epochs", "1"); !strings.Contains(got, "loss NaN") ||
		!strings.Contains(got, "\nverified: 23 steps") {
		t.Errorf("output:\n%s", got)
	}
}

// TestClipIsReached sees that the default of -clip scales some gradients and not all.
func TestClipIsReached(t *testing.T) {
	tr := trainerOf(t)
	order := orderOf(tr.cfg.seed, 0, tr.train.Len())
	scaled, steps := 0, 0
	for lo := 0; lo < len(order); lo += tr.cfg.batch {
		if _, err := tr.step(t.Context(), order[lo:min(lo+tr.cfg.batch, len(order))]); err != nil {
			t.Fatal(err)
		}
		tr.at.Step++
		steps++
		if float64(tr.stepper.norms[0]) > tr.cfg.clip {
			scaled++
		}
	}
	if scaled == 0 || scaled == steps {
		t.Errorf("%d of %d gradients are above %v", scaled, steps, tr.cfg.clip)
	}
}
