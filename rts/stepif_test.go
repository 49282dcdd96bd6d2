package rts_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// evaluated runs the model forward on a batch, and returns the mean loss.
func (m *model) evaluated(t testing.TB, step int) float32 {
	t.Helper()
	images, labels := m.batch(t, step)
	got, err := m.session.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{
		m.images: images, m.labels: labels, m.choice: tensor.Scalar(false),
		m.rate:   m.alike(t, m.rate, func(*tensor.Tensor) {}),
		m.number: m.alike(t, m.number, func(*tensor.Tensor) {}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if m.norm != nil && values(t, got[m.norm])[0] != 0 {
		t.Errorf("a norm of %v where nothing is trained, want 0", values(t, got[m.norm])[0])
	}
	return values(t, got[m.all])[0]
}

// TestStepIf evaluates between steps of training, which have the same bits as without that, and leaves the parameters
// as they are. The loss of an evaluation is that of the next step on the same batch, before the step.
func TestStepIf(t *testing.T) {
	const steps = 3
	for _, replicas := range []int{1, 2, 4} {
		s := rts.Sharding{Options: reproducible}
		if replicas == 1 {
			s.Over = 1
		}
		for _, trainer := range []rts.Trainer{
			{Optimizer: rts.SGD{Momentum: 0.9}},
			{Optimizer: rts.SGD{}, Overlap: true, BucketBytes: 1},
			{Optimizer: rts.SGD{}, Keep: true, ClipNorm: 0.1},
			{Optimizer: rts.SGD{}, Overlap: true, ClipNorm: 0.1, Accumulate: 3},
		} {
			t.Run(fmt.Sprintf("n=%d/overlap=%t/keep=%t/micro=%d", replicas, trainer.Overlap, trainer.Keep,
				trainer.Accumulate), func(t *testing.T) {
				want := newModel(t, replicas, s, trainer).train(t, 0, steps)
				m := newModelIf(t, replicas, s, trainer)
				var got outcome
				for i := range steps {
					before := m.evaluated(t, i)
					if again := m.evaluated(t, i); again != before {
						t.Errorf("step %d: losses %v and %v of two evaluations in a row", i, before, again)
					}
					one := m.train(t, i, 1)
					if one.losses[0] != before {
						t.Errorf("step %d: loss %v, and %v when it was evaluated", i, one.losses[0], before)
					}
					got.losses, got.norms = append(got.losses, one.losses...), append(got.norms, one.norms...)
					got.params = one.params
				}
				equalOutcome(t, got, want)
				if !slices.Equal(got.norms, want.norms) {
					t.Errorf("norms %v, want %v", got.norms, want.norms)
				}
			})
		}
	}
}

// TestStepIfErrors gives no choice, or another tensor in its place.
func TestStepIfErrors(t *testing.T) {
	for _, give := range []func(m *ir.Graph) *ir.Tensor{
		func(*ir.Graph) *ir.Tensor { return nil },
		func(m *ir.Graph) *ir.Tensor { return m.Constant(tensor.Scalar(float32(1))) },
	} {
		p := ir.New(2)
		c := newParts(t, p)
		main := p.Main()
		step := rts.Trainer{Optimizer: rts.SGD{}}.StepIf(give(main), c.layers(), c.rate, c.step)
		want := "training step at stepif_test.go:"
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "the choice to train is not a scalar of bool in the main graph") {
			t.Errorf("%v, want %s and that the choice is no scalar of bool", err, want)
		}
		if len(step.Outputs) == 0 {
			t.Error("no output that stands for the error")
		}
	}
}
