package main

import (
	"slices"
	"testing"

	"gogcl.dev/examples/digits/perceptron"
)

// TestOrder has every image once in each pass, in an order of its own.
func TestOrder(t *testing.T) {
	var seen [][]int
	for _, of := range []struct {
		seed uint64
		pass int
	}{{1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}} {
		order := orderOf(of.seed, of.pass, 1437)
		if !slices.Equal(order, orderOf(of.seed, of.pass, 1437)) {
			t.Errorf("%v has two orders", of)
		}
		for _, other := range seen {
			if slices.Equal(order, other) {
				t.Errorf("%v has the order of another", of)
			}
		}
		seen = append(seen, order)
		sorted := slices.Sorted(slices.Values(order))
		for i, k := range sorted {
			if i != k {
				t.Fatalf("%v has image %d in place %d", of, k, i)
			}
		}
	}
}

// TestParams has the parameters of package perceptron, all of them.
func TestParams(t *testing.T) {
	n := 0
	for _, p := range params {
		n += p.elements()
	}
	if n != perceptron.NumParams {
		t.Errorf("%d parameters, want %d", n, perceptron.NumParams)
	}
	if bytes := params[0].spec().Bytes() + params[1].spec().Bytes(); bytes != layerBytes {
		t.Errorf("%d bytes, want %d", layerBytes, bytes)
	}
}
