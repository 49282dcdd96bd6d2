package main

import (
	"math"
	"testing"

	"gogcl.dev/ir"
)

// TestSizeFor has the sizes that flags give, none of them larger than what was asked for, nor far from it.
func TestSizeFor(t *testing.T) {
	for _, tt := range []struct {
		parameters int
		want       size
		have       int
	}{
		{minParameters, size{1, 8, 1, 32, 91}, minParameters},
		{10_000, size{1, 16, 1, 32, 91}, 6_763},
		{defaultParameters, size{3, 72, 3, 32, 91}, 204_211},
		{204_211, size{3, 72, 3, 32, 91}, 204_211},
		{204_210, size{2, 80, 2, 32, 91}, 172_411},
		{1_000_000, size{7, 104, 4, 64, 91}, 940_979},
		{maxParameters, size{12, 184, 4, 64, 91}, 4_940_859},
	} {
		got := sizeFor(tt.parameters, 91)
		if got != tt.want || got.parameters() != tt.have {
			t.Errorf("%d: %+v of %d parameters, want %+v of %d", tt.parameters, got, got.parameters(), tt.want, tt.have)
		}
	}
	for parameters := minParameters; parameters <= maxParameters; parameters += parameters / 50 {
		s := sizeFor(parameters, 91)
		have := s.parameters()
		if have > parameters || parameters > 100_000 && float64(have) < 0.8*float64(parameters) ||
			float64(have) < 0.35*float64(parameters) {
			t.Errorf("%d parameters: %+v has %d", parameters, s, have)
		}
		if s.width%s.heads != 0 || s.width%widthStep != 0 {
			t.Errorf("%d parameters: width %d with %d heads", parameters, s.width, s.heads)
		}
	}
	book, err := loadText()
	if err != nil || len(book.vocabulary) != 91 {
		t.Errorf("the book has %d characters, error %v: the least size is not that of 91", len(book.vocabulary), err)
	}
}

// TestSizeForLargest: none of the same proportions has more parameters and fits.
func TestSizeForLargest(t *testing.T) {
	for parameters := 20_000; parameters <= maxParameters; parameters += parameters / 3 {
		got := sizeFor(parameters, 91)
		s := got
		for s.depth = 1; s.depth <= maxDepth; s.depth++ {
			for width := widthByDepth / 2 * s.depth; width <= 2*widthByDepth*s.depth; width += 4 {
				if s.setWidth(width); width%widthStep == 0 && s.parameters() <= parameters &&
					s.parameters() > got.parameters() {
					t.Errorf("%d parameters: %+v has %d, and %+v has %d",
						parameters, got, got.parameters(), s, s.parameters())
				}
			}
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
