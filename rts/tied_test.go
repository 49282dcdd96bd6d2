package rts_test

import (
	"fmt"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/rts"
)

// twice uses one weight and one bias two times.
func twice(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	h := ops.Tanh(dense(g, in)[0])
	return dense(g, []*ir.Tensor{h, in[1], in[2]})
}

// TestTiedWeights has two parameters in two layers, and compares the steps with those of a model in which one layer
// uses them twice.
func TestTiedWeights(t *testing.T) {
	const steps = 3
	for _, replicas := range []int{1, 2, 4} {
		for _, clip := range []float64{0, 0.1} {
			s := rts.Sharding{Options: reproducible}
			if replicas == 1 {
				s.Over = 1
			}
			optimizer := rts.Adam{Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-6}
			want := newModelOf(t, replicas, s, rts.Trainer{Optimizer: optimizer, ClipNorm: clip}, false,
				func(m *model, h ir.Spec) []rts.Layer {
					graph := m.program.CreateGraph(twice, h, m.params[2].Spec(), m.params[3].Spec())
					return []rts.Layer{{Graph: graph, Params: m.params[2:4]}}
				}).train(t, 0, steps)
			for _, overlap := range []bool{false, true} {
				for _, keep := range []bool{false, true} {
					for _, bucket := range []int{0, 1, 4 * (inputs*hidden + hidden)} {
						t.Run(fmt.Sprintf("n=%d/clip=%v/overlap=%t/keep=%t/bucket=%d", replicas, clip, overlap, keep,
							bucket), func(t *testing.T) {
							m := newModelOf(t, replicas, s, rts.Trainer{Optimizer: optimizer, ClipNorm: clip,
								Overlap: overlap, Keep: keep, BucketBytes: bucket}, false, tied)
							equalOutcome(t, m.train(t, 0, steps), want)
							kept, err := m.step.Checkpoint(m.session)
							if err != nil || len(kept) != 3*len(m.params) {
								t.Errorf("%d tensors in a checkpoint and the error %v, want %d: each parameter once, "+
									"with two states", len(kept), err, 3*len(m.params))
							}
						})
					}
				}
			}
		}
	}
}

// tied is two layers with the same parameters.
func tied(m *model, h ir.Spec) []rts.Layer {
	graph := m.program.CreateGraph(dense, h, m.params[2].Spec(), m.params[3].Spec())
	layer := rts.Layer{Graph: graph, Params: m.params[2:4]}
	return []rts.Layer{layer, {Graph: m.program.CreateGraph(tanh, h)}, layer}
}
