package ops_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// one is a function that adds one operation on the first input.
func oneOp(f func(x *ir.Tensor) *ir.Tensor) irtest.Build {
	return func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{f(in[0])} }
}

func TestReshape(t *testing.T) {
	forTypes(t, anyDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for _, c := range []struct{ from, to, want []int }{
			{[]int{2, 3}, []int{3, 2}, []int{3, 2}},
			{[]int{2, 3}, []int{-1}, []int{6}},
			{[]int{2, 3, 4}, []int{4, -1, 2}, []int{4, 3, 2}},
			{[]int{1, 1}, nil, nil},
			{nil, []int{1, -1}, []int{1, 1}},
			{[]int{0, 3}, []int{3, -1}, []int{3, 0}},
			{[]int{0, 3}, []int{7, 0, 2}, []int{7, 0, 2}},
		} {
			x := wholeNumbers(r, d, c.from...)
			got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, d)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
				return ops.Reshape(x, c.to...)
			}))
			checkArray(t, got[0], &slowArray{c.want, x.v}, 0)
		}
	})
	for _, c := range []struct {
		to    []int
		words string
	}{
		{[]int{5}, "to (5,), which has 5 elements, want 6"},
		{nil, "to (), which has 1 elements, want 6"},
		{[]int{4, -1}, "to (4, -1): the -1 is no number for 6 elements"},
		{[]int{0, -1}, "to (0, -1): the -1 is no number for 6 elements"},
		{[]int{-1, -1}, "negative"},
		{[]int{-2, -3}, "negative"},
	} {
		wantBuildError(t, []ir.Spec{f32(2, 3)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
			return ops.Reshape(x, c.to...)
		}), "reshape", c.words)
	}
}

// slowTranspose is Transpose by its definition.
func slowTranspose(x *slowArray, order []int) *slowArray {
	shape := make([]int, len(order))
	for d, axis := range order {
		shape[d] = x.shape[axis]
	}
	out := newSlowArray(shape...)
	for _, p := range allPlaces(shape) {
		from := make([]int, len(order))
		for d, axis := range order {
			from[axis] = p[d]
		}
		*out.at(p...) = *x.at(from...)
	}
	return out
}

func TestTranspose(t *testing.T) {
	forTypes(t, anyDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		check := func(shape, order, given []int) {
			t.Helper()
			x := wholeNumbers(r, d, shape...)
			got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, d)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
				return ops.Transpose(x, given...)
			}))
			checkArray(t, got[0], slowTranspose(x, order), 0)
			if t.Failed() {
				t.Fatalf("shape %v, order %v", shape, order)
			}
		}
		check(nil, nil, nil)
		check([]int{3}, []int{0}, nil)
		check([]int{50, 33}, []int{1, 0}, nil)
		check([]int{33, 16}, []int{1, 0}, []int{-1, -2})
		for range 60 {
			shape := someShape(r, r.IntN(6), 5)
			order := r.Perm(len(shape))
			given := slices.Clone(order)
			if len(given) > 0 && r.IntN(3) == 0 {
				given[0] -= len(given)
			}
			check(shape, order, given)
		}
	})
	for _, c := range []struct {
		perm  []int
		words string
	}{
		{[]int{0}, "an order of 1 dimensions, [0], want 2"},
		{[]int{0, 1, 2}, "an order of 3 dimensions, [0 1 2], want 2"},
		{[]int{0, 0}, "the order [0 0] has dimension 0 twice, want each once"},
		{[]int{1, -1}, "the order [1 -1] has dimension 1 twice, want each once"},
		{[]int{0, 2}, "the order [0 2]: axis 2 of 2 dimensions, want -2 to 1"},
	} {
		wantBuildError(t, []ir.Spec{f32(2, 3)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
			return ops.Transpose(x, c.perm...)
		}), "transpose", c.words)
	}
}

func TestExpand(t *testing.T) {
	forTypes(t, anyDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for range 60 {
			to := someShape(r, r.IntN(5), 5)
			from := slices.Clone(to[r.IntN(len(to)+1):])
			for k := range from {
				if r.IntN(2) == 0 {
					from[k] = 1
				}
			}
			x, want := wholeNumbers(r, d, from...), newSlowArray(to...)
			for _, p := range allPlaces(to) {
				*want.at(p...) = *x.at(repeatedPlace(p, from)...)
			}
			got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, d)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
				return ops.Expand(x, to...)
			}))
			checkArray(t, got[0], want, 0)
			if t.Failed() {
				t.Fatalf("from %v to %v", from, to)
			}
		}
	})
	for _, c := range []struct {
		to    []int
		words string
	}{
		{[]int{2, 4}, "shape (2, 3) cannot be repeated to be (2, 4)"},
		{[]int{3}, "shape (2, 3) cannot be repeated to be (3,)"},
		{[]int{-1, 2, 3}, "negative"},
	} {
		wantBuildError(t, []ir.Spec{f32(2, 3)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
			return ops.Expand(x, c.to...)
		}), "expand", c.words)
	}
}
