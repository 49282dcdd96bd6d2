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

// slowSlice is Slice by its definition.
func slowSlice(x *slowArray, starts, ends []int) *slowArray {
	shape := make([]int, len(starts))
	for d := range shape {
		shape[d] = ends[d] - starts[d]
	}
	out := newSlowArray(shape...)
	for _, p := range allPlaces(shape) {
		from := slices.Clone(p)
		for d := range from {
			from[d] += starts[d]
		}
		*out.at(p...) = *x.at(from...)
	}
	return out
}

func TestSlice(t *testing.T) {
	forTypes(t, anyDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for range 60 {
			shape := someShape(r, r.IntN(5), 6)
			starts, ends := make([]int, len(shape)), slices.Clone(shape)
			for k := range shape {
				if r.IntN(3) > 0 {
					starts[k] = r.IntN(shape[k] + 1)
					ends[k] = starts[k] + r.IntN(shape[k]-starts[k]+1)
				}
			}
			x := wholeNumbers(r, d, shape...)
			got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, d)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
				return ops.Slice(x, starts, ends)
			}))
			checkArray(t, got[0], slowSlice(x, starts, ends), 0)
			if len(shape) > 0 {
				axis := r.IntN(len(shape))
				lo, hi := make([]int, len(shape)), slices.Clone(shape)
				lo[axis], hi[axis] = starts[axis], ends[axis]
				given := axis - len(shape)*r.IntN(2)
				got = irtest.Run(t, []*tensor.Tensor{x.tensor(t, d)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
					return ops.SliceAxis(x, given, starts[axis], ends[axis])
				}))
				checkArray(t, got[0], slowSlice(x, lo, hi), 0)
			}
			if t.Failed() {
				t.Fatalf("shape %v from %v to %v", shape, starts, ends)
			}
		}
	})
	for _, c := range []struct {
		starts, ends []int
		words        string
	}{
		{[]int{0}, []int{2, 3}, "1 starts and 2 ends for 2 dimensions, want one of each"},
		{[]int{0, 0}, []int{2}, "2 starts and 1 ends for 2 dimensions, want one of each"},
		{[]int{0, -1}, []int{2, 3}, "from -1 to 3 in dimension 1, want 0 <= start <= end <= 3"},
		{[]int{0, 0}, []int{3, 3}, "from 0 to 3 in dimension 0, want 0 <= start <= end <= 2"},
		{[]int{0, 2}, []int{2, 1}, "from 2 to 1 in dimension 1, want 0 <= start <= end <= 3"},
	} {
		wantBuildError(t, []ir.Spec{f32(2, 3)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
			return ops.Slice(x, c.starts, c.ends)
		}), "slice", c.words)
	}
	wantBuildError(t, []ir.Spec{f32(2, 3)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
		return ops.SliceAxis(x, 2, 0, 1)
	}), "slice", "axis 2 of 2 dimensions, want -2 to 1")
	wantBuildError(t, []ir.Spec{f32(2, 3)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
		return ops.SliceAxis(x, -3, 0, 1)
	}), "slice", "axis -3 of 2 dimensions, want -2 to 1")
	wantBuildError(t, []ir.Spec{f32()}, oneOp(func(x *ir.Tensor) *ir.Tensor {
		return ops.SliceAxis(x, 0, 0, 1)
	}), "slice", "axis 0 of a scalar, which has none")
	wantBuildError(t, []ir.Spec{f32(2, 3)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
		return ops.SliceAxis(x, 1, 2, 4)
	}), "slice", "from 2 to 4 in dimension 1")
}

func TestConcat(t *testing.T) {
	forTypes(t, anyDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for range 40 {
			shape := someShape(r, 1+r.IntN(4), 4)
			axis := r.IntN(len(shape))
			var in []*tensor.Tensor
			var parts []*slowArray
			whole := slices.Clone(shape)
			whole[axis] = 0
			for range 1 + r.IntN(4) {
				s := slices.Clone(shape)
				s[axis] = r.IntN(4)
				whole[axis] += s[axis]
				x := wholeNumbers(r, d, s...)
				parts, in = append(parts, x), append(in, x.tensor(t, d))
			}
			want := newSlowArray(whole...)
			for _, p := range allPlaces(whole) {
				from, k := slices.Clone(p), 0
				for from[axis] >= parts[k].shape[axis] {
					from[axis] -= parts[k].shape[axis]
					k++
				}
				*want.at(p...) = *parts[k].at(from...)
			}
			given := axis - len(shape)*r.IntN(2)
			got := irtest.Run(t, in, func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{ops.Concat(given, in...)}
			})
			checkArray(t, got[0], want, 0)
			if t.Failed() {
				t.Fatalf("axis %d of shape %v", axis, whole)
			}
		}
	})
	concat := func(axis int) irtest.Build {
		return func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Concat(axis, in...)} }
	}
	for _, c := range []struct {
		axis  int
		in    []ir.Spec
		words string
	}{
		{2, []ir.Spec{f32(2, 3)}, "axis 2 of 2 dimensions, want -2 to 1"},
		{0, []ir.Spec{f32()}, "axis 0 of a scalar, which has none"},
		{0, []ir.Spec{f32(2, 3), f32(2)}, "input 1 has 1 dimensions, want 2 as input 0 has"},
		{0, []ir.Spec{f32(2, 3), f32(1, 3), f32(2, 4)}, "input 2 has 4 in dimension 1, want 3 as input 0 has"},
		{0, []ir.Spec{f32(2), {Shape: tensor.Shape{2}, DType: tensor.I32}}, "input 1 is of int32, want float32 as input 0 is"},
	} {
		wantBuildError(t, c.in, concat(c.axis), "concat", c.words)
	}
	if x := ops.Concat(0); x == nil {
		t.Error("Concat of nothing is nil, want a tensor that stands for an error")
	}
}
