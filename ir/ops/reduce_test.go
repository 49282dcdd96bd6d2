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

// slowReduce collects what is reduced to each element of the result, in row-major order, and calls f on it.
func slowReduce(x *slowArray, axes []int, keep bool, f func(v []float64) float64) *slowArray {
	along := func(d int) bool {
		return len(axes) == 0 || slices.Contains(axes, d) || slices.Contains(axes, d-len(x.shape))
	}
	var shape, kept []int
	for d, extent := range x.shape {
		switch {
		case !along(d):
			shape, kept = append(shape, extent), append(kept, extent)
		case keep:
			shape, kept = append(shape, 1), append(kept, 1)
		default:
			kept = append(kept, 1)
		}
	}
	out := newSlowArray(shape...)
	lists := map[int][]float64{}
	for _, p := range allPlaces(x.shape) {
		v, i := *x.at(p...), 0
		for d, k := range repeatedPlace(p, kept) {
			i = i*kept[d] + k
		}
		lists[i] = append(lists[i], v)
	}
	for i := range out.v {
		out.v[i] = f(lists[i])
	}
	return out
}

func sumOf(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

func meanOf(v []float64) float64 { return sumOf(v) / float64(len(v)) }

func maxOf(v []float64) float64 {
	best := math.Inf(-1)
	for _, x := range v {
		best = math.Max(best, x)
	}
	return best
}

type reductionCase struct {
	name  string
	types []tensor.DType
	f     [2]func(t *ir.Tensor, axes ...int) *ir.Tensor // second: keeps the axes
	slow  func(v []float64) float64
}

var reductionCases = []reductionCase{
	{"sum", numberDTypes, [2]func(*ir.Tensor, ...int) *ir.Tensor{ops.ReduceSum, ops.ReduceSumKeep}, sumOf},
	{"mean", floatDTypes, [2]func(*ir.Tensor, ...int) *ir.Tensor{ops.ReduceMean, ops.ReduceMeanKeep}, meanOf},
	{"max", numberDTypes, [2]func(*ir.Tensor, ...int) *ir.Tensor{ops.ReduceMax, ops.ReduceMaxKeep}, maxOf},
}

func TestReduce(t *testing.T) {
	for _, c := range reductionCases {
		t.Run("op="+c.name, func(t *testing.T) {
			forTypes(t, c.types, func(t *testing.T, d tensor.DType, r *rand.Rand) {
				check := func(shape, axes []int) {
					t.Helper()
					x := wholeNumbers(r, d, shape...)
					if d == tensor.F32 || d == tensor.F64 {
						x = quarters(r, shape...)
					}
					for k, keep := range []bool{false, true} {
						got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, d)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
							return c.f[k](x, axes...)
						}))
						checkArray(t, got[0], slowReduce(x, axes, keep, c.slow), 1)
					}
					if t.Failed() {
						t.Fatalf("shape %v, axes %v", shape, axes)
					}
				}
				check(nil, nil)
				check([]int{5}, []int{-1})
				check([]int{9, 150}, []int{0})
				check([]int{9, 150}, []int{1})
				check([]int{3, 5, 130}, []int{0})
				check([]int{3, 5, 130}, []int{0, -1})
				for range 40 {
					shape := someShape(r, r.IntN(6), 4)
					var axes []int
					some := 1
					for d, extent := range shape {
						if r.IntN(2) == 0 {
							axes = append(axes, d-len(shape)*r.IntN(2))
							some *= extent
						}
					}
					if len(axes) == 0 {
						some = sizeOf(shape)
					}
					r.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
					if some > 0 || c.name == "sum" {
						check(shape, axes)
					}
				}
			})
		})
	}
}

func sizeOf(shape []int) int { return len(newSlowArray(shape...).v) }

// TestReduceSumAccuracy adds many float32s: one after the other in float32, 0.1 a million times is off by 1 in a 100.
func TestReduceSumAccuracy(t *testing.T) {
	x := newSlowArray(1 << 20)
	for i := range x.v {
		x.v[i] = float64(float32(0.1))
	}
	got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, tensor.F32)}, oneOp(func(x *ir.Tensor) *ir.Tensor {
		return ops.ReduceSum(x)
	}))
	if v, want := asFloats(t, got[0])[0], float64(float32(sumOf(x.v))); v != want {
		t.Errorf("%v, want %v", v, want)
	}
}

// TestReduceSumWraps adds integers past their range.
func TestReduceSumWraps(t *testing.T) {
	x, _ := tensor.FromSlice([]int32{math.MaxInt32, 2})
	got := irtest.Run(t, []*tensor.Tensor{x}, oneOp(func(x *ir.Tensor) *ir.Tensor { return ops.ReduceSum(x) }))
	if v := viewOf[int32](t, got[0])[0]; v != math.MinInt32+1 {
		t.Errorf("%d, want %d", v, math.MinInt32+1)
	}
}

// TestReduceMaxOrder has what is not a plain comparison.
func TestReduceMaxOrder(t *testing.T) {
	negativeZero, nan, inf := math.Copysign(0, -1), math.NaN(), math.Inf(1)
	for _, c := range []struct {
		x     []float64
		want  float64
		index int32
	}{
		{[]float64{negativeZero, 0, negativeZero, 0}, 0, 1},
		{[]float64{negativeZero, negativeZero}, negativeZero, 0},
		{[]float64{1, nan, inf, nan}, nan, 1},
		{[]float64{nan, 1}, nan, 0},
		{[]float64{-inf, -inf}, -inf, 0},
		{[]float64{2, 3, 3, 1}, 3, 1},
	} {
		for _, d := range floatDTypes {
			x := (&slowArray{[]int{len(c.x)}, c.x}).tensor(t, d)
			got := irtest.Run(t, []*tensor.Tensor{x}, func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{ops.ReduceMax(in[0]), ops.Argmax(in[0])}
			})
			v := asFloats(t, got[0])[0]
			if !(v == c.want || v != v && c.want != c.want) || math.Signbit(v) != math.Signbit(c.want) && v == v {
				t.Errorf("the greatest of %v of %v is %v, want %v", c.x, d, v, c.want)
			}
			if k := viewOf[int32](t, got[1])[0]; k != c.index {
				t.Errorf("the greatest of %v of %v is at %v, want %v", c.x, d, k, c.index)
			}
		}
	}
}

func TestReduceErrors(t *testing.T) {
	bools := ir.Spec{Shape: tensor.Shape{2, 3}, DType: tensor.Bool}
	ints := ir.Spec{Shape: tensor.Shape{2, 3}, DType: tensor.I32}
	for _, c := range []struct {
		f     func(t *ir.Tensor, axes ...int) *ir.Tensor
		in    ir.Spec
		axes  []int
		words []string
	}{
		{ops.ReduceSum, bools, nil, []string{"reduce sum", "element type bool, want float16, bfloat16, float32, float64, int32, int64 or uint32"}},
		{ops.ReduceMax, bools, nil, []string{"reduce max", "element type bool, want float16"}},
		{ops.ReduceMean, ints, nil, []string{"reduce mean", "element type int32, want float16, bfloat16, float32 or float64"}},
		{ops.ReduceSum, f32(2, 3), []int{2}, []string{"axis 2 of 2 dimensions, want -2 to 1"}},
		{ops.ReduceSum, f32(2, 3), []int{-3}, []string{"axis -3 of 2 dimensions, want -2 to 1"}},
		{ops.ReduceSum, f32(2, 3), []int{1, -1}, []string{"axes [1 -1] have dimension 1 twice, want each once"}},
		{ops.ReduceMax, f32(2, 0), []int{1}, []string{"along no elements, want one or more"}},
		{ops.ReduceMean, f32(0), nil, []string{"along no elements, want one or more"}},
	} {
		wantBuildError(t, []ir.Spec{c.in}, oneOp(func(x *ir.Tensor) *ir.Tensor {
			return c.f(x, c.axes...)
		}), c.words...)
	}
}

func TestArgmax(t *testing.T) {
	forTypes(t, numberDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for range 20 {
			shape := someShape(r, 1+r.IntN(3), 5)
			shape[len(shape)-1] = 1 + r.IntN(20)
			x := wholeNumbers(r, d, shape...)
			want := slowReduce(x, []int{-1}, false, func(v []float64) float64 {
				return float64(slices.Index(v, maxOf(v)))
			})
			got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, d)}, oneOp(ops.Argmax))
			if got[0].DType() != tensor.I32 {
				t.Errorf("indices of %v, want int32", got[0].DType())
			}
			checkArray(t, got[0], want, 0)
		}
	})
	wantBuildError(t, []ir.Spec{f32()}, oneOp(ops.Argmax), "argmax", "a scalar, want a tensor of a dimension or more")
	wantBuildError(t, []ir.Spec{f32(2, 0)}, oneOp(ops.Argmax), "argmax", "rows of 0 elements, want 1 to 2147483647")
	if n := int64(1) << 31; int64(int(n)) == n {
		wantBuildError(t, []ir.Spec{f32(int(n))}, oneOp(ops.Argmax), "argmax", "rows of 2147483648 elements, want 1 "+
			"to 2147483647")
	}
	wantBuildError(t, []ir.Spec{{Shape: tensor.Shape{2}, DType: tensor.Bool}}, oneOp(ops.Argmax), "argmax",
		"element type bool")
}
