package ops_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

func topK(k int) irtest.Build {
	return func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		values, places := ops.TopK(in[0], k)
		return []*ir.Tensor{values, places}
	}
}

// TestTopK holds it against a stable sort of each row, in which a NaN is less than all else. Numbers come often.
func TestTopK(t *testing.T) {
	forTypes(t, numbers, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for range 30 {
			shape := someShape(r, 1+r.IntN(3), 7)
			n := max(shape[len(shape)-1], 1)
			shape[len(shape)-1] = n
			k := 1 + r.IntN(n)
			a := newSlowArray(shape...)
			for i := range a.v {
				a.v[i] = float64(r.IntN(5))
				if r.IntN(6) == 0 && d.IsFloat() {
					a.v[i] = math.NaN()
				}
			}
			got := irtest.Run(t, []*tensor.Tensor{a.tensor(t, d)}, topK(k))
			values, places := asFloats(t, got[0]), asFloats(t, got[1])
			for row := range len(a.v) / n {
				x := a.v[row*n:][:n]
				order := make([]int, n)
				for i := range order {
					order[i] = i
				}
				slices.SortStableFunc(order, func(i, j int) int {
					switch nan := math.IsNaN; {
					case nan(x[i]) && nan(x[j]):
						return 0
					case nan(x[i]):
						return 1
					case nan(x[j]):
						return -1
					}
					return int(x[j] - x[i])
				})
				for i := range k {
					v, at := values[row*k+i], int(places[row*k+i])
					if at != order[i] || v != x[at] && !(math.IsNaN(v) && math.IsNaN(x[at])) {
						t.Fatalf("%v of %v: number %d is %v at %d, want that at %d", k, x, i, v, at, order[i])
					}
				}
			}
		}
	})
}

// TestTopKGradient: that of the values, and of the gradient.
func TestTopKGradient(t *testing.T) {
	first := func(_ *ir.Graph, in []*ir.Tensor) *ir.Tensor {
		values, _ := ops.TopK(in[0], 2)
		return values
	}
	in := []*tensor.Tensor{distinct(3, 5)}
	irtest.CheckGradient(t, "top k", in, first)
	irtest.CheckGradient(t, "gradient of top k", in, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
		return gradientOf(gradientCase{f: func(in []*ir.Tensor) *ir.Tensor { return first(g, in) }})(g, in)[0]
	})
}

func TestTopKErrors(t *testing.T) {
	for _, c := range []struct {
		k     int
		in    ir.Spec
		words string
	}{
		{1, spec(tensor.Bool, 3), "element type bool, want float16"},
		{1, f32(), "a scalar, want a tensor of a dimension or more"},
		{0, f32(2, 3), "the greatest 0 of rows of 3 elements, want 1 to as many"},
		{4, f32(2, 3), "the greatest 4 of rows of 3 elements, want 1 to as many"},
	} {
		wantBuildError(t, []ir.Spec{c.in}, topK(c.k), "top k", c.words)
	}
}
