package main

import (
	"math"
	"testing"

	"gogcl.dev/ir"
)

// TestSizeFor has the sizes that flags give, and that none is far from what was asked for.
func TestSizeFor(t *testing.T) {
	for _, tt := range []struct {
		parameters int
		want       size
		have       int
	}{
		{10_000, size{1, 24, 1, 32, 91}, 12_403},
		{200_000, size{3, 72, 3, 32, 91}, 204_211},
		{1_000_000, size{5, 128, 4, 64, 91}, 1_020_635},
		{5_000_000, size{9, 216, 9, 64, 91}, 5_110_003},
	} {
		got := sizeFor(tt.parameters, 91)
		if got != tt.want || got.parameters() != tt.have {
			t.Errorf("%d: %+v of %d parameters, want %+v of %d", tt.parameters, got, got.parameters(), tt.want, tt.have)
		}
	}
	for parameters := minParameters; parameters <= maxParameters; parameters += parameters / 50 {
		s := sizeFor(parameters, 91)
		if off := math.Abs(float64(s.parameters()-parameters)) / float64(parameters); off > 0.15 && parameters > 100_000 || off > 0.4 {
			t.Errorf("%d parameters: %+v has %d", parameters, s, s.parameters())
		}
		if s.width%s.heads != 0 || s.width%widthStep != 0 {
			t.Errorf("%d parameters: width %d with %d heads", parameters, s.width, s.heads)
		}
	}
}

// TestParameters counts what the graphs have.
func TestParameters(t *testing.T) {
	s := size{depth: 2, width: 16, heads: 2, window: 8, vocabulary: 5}
	m := newModel(ir.New(1), s, 1, meanLoss)
	if len(m.layers) != 4 || m.layers[1].graph != m.layers[2].graph {
		t.Errorf("%d layers, want an embedding, two blocks of one graph, and a head", len(m.layers))
	}
	n := 0
	for i, l := range m.layers {
		inputs := l.graph.Inputs()
		for k, in := range inputs[len(inputs)-len(l.params):] {
			if want := (ir.Spec{Shape: l.params[k].shape, DType: in.DType()}); !in.Spec().Equal(want) {
				t.Errorf("layer %d: input %v, want %v", i, in.Spec(), want)
			}
			n += in.Spec().Elements()
		}
	}
	if got := s.parameters(); got != n {
		t.Errorf("%d parameters, the graphs have %d", got, n)
	}
}

func TestRateAt(t *testing.T) {
	for _, tt := range []struct {
		step int
		part float64
		want float64
	}{
		{1, 0, 0.01}, {50, 0, 0.5}, {100, 0, 1}, {1000, 0.5, 0.51}, {2000, 1, 0.02},
	} {
		if got := rateAt(1, tt.step, tt.part); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("step %d, part %v: %v, want %v", tt.step, tt.part, got, tt.want)
		}
	}
}
