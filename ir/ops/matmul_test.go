package ops_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// slowMatMul is MatMul by its definition.
func slowMatMul(a, b *slowArray) *slowArray {
	row, column := len(a.shape) == 1, len(b.shape) == 1
	if row {
		a = &slowArray{[]int{1, a.shape[0]}, a.v}
	}
	if column {
		b = &slowArray{[]int{b.shape[0], 1}, b.v}
	}
	la, lb := a.shape[:len(a.shape)-2], b.shape[:len(b.shape)-2]
	m, k, n := a.shape[len(la)], a.shape[len(la)+1], b.shape[len(lb)+1]
	leading := fitShapes(la, lb)
	out := newSlowArray(append(slices.Clone(leading), m, n)...)
	for _, p := range allPlaces(leading) {
		pa, pb := repeatedPlace(p, la), repeatedPlace(p, lb)
		for i := range m {
			for j := range n {
				sum := 0.0
				for l := range k {
					sum += *a.at(append(slices.Clone(pa), i, l)...) * *b.at(append(slices.Clone(pb), l, j)...)
				}
				*out.at(append(slices.Clone(p), i, j)...) = sum
			}
		}
	}
	shape := slices.Clone(leading)
	if !row {
		shape = append(shape, m)
	}
	if !column {
		shape = append(shape, n)
	}
	out.shape = shape
	return out
}

// fitShapes is the shape of two that fit.
func fitShapes(a, b []int) []int {
	out := make([]int, max(len(a), len(b)))
	for d := range out {
		out[d] = 1
		for _, s := range [][]int{a, b} {
			if k := d - len(out) + len(s); k >= 0 && s[k] != 1 {
				out[d] = s[k]
			}
		}
	}
	return out
}

// repeatedPlace is a place in a tensor of shape s that is repeated.
func repeatedPlace(place, s []int) []int {
	out := slices.Clone(place[len(place)-len(s):])
	for d := range out {
		if s[d] == 1 {
			out[d] = 0
		}
	}
	return out
}

func matMul(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.MatMul(in[0], in[1])}
}

func TestMatMul(t *testing.T) {
	operands := [][2][]int{
		{{2, 2}, {2}}, {{3}, {3, 2}}, {{5}, {5}}, {{1, 1}, {1, 1}}, {{2, 3}, {3, 4}}, {{7, 5}, {5, 1}}, {{1, 5}, {5, 7}}, {{7, 1}, {1, 5}},
		{{65, 3}, {3, 193}}, {{129, 67}, {67, 200}}, {{3, 600}, {600, 2}}, {{70, 600}, {600}}, {{600}, {600, 70}},
		{{0, 3}, {3, 2}}, {{2, 0}, {0, 3}}, {{2, 3}, {3, 0}}, {{0}, {0}}, {{3, 0}, {0}},
		{{4, 2, 3}, {4, 3, 5}}, {{4, 2, 3}, {3, 5}}, {{2, 3}, {4, 3, 5}}, {{4, 2, 3}, {3}}, {{3}, {4, 3, 2}}, {{4, 1, 3}, {4, 3, 1}},
		{{2, 1, 2, 3}, {1, 3, 3, 2}}, {{2, 3, 4, 5}, {5, 6}}, {{2, 3, 4, 5}, {3, 5, 6}}, {{0, 2, 3}, {3, 2}}, {{1, 2, 3}, {0, 3, 2}},
	}
	products := 20 // beside these
	if testing.Short() {
		products = 2
	}
	forTypes(t, floatDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for _, s := range operands {
			t.Run(fmt.Sprintf("a=%v/b=%v", tensor.Shape(s[0]), tensor.Shape(s[1])), func(t *testing.T) {
				a, b := wholeNumbers(r, d, s[0]...), wholeNumbers(r, d, s[1]...)
				got := irtest.Run(t, []*tensor.Tensor{a.tensor(t, d), b.tensor(t, d)}, matMul)
				checkArray(t, got[0], slowMatMul(a, b), 1) // exact but for 16 bits, whose sums are large
				if d.Size() > 2 {
					checkArray(t, got[0], slowMatMul(a, b), 0)
				}
			})
		}
		for range products {
			m, k, n := 1+r.IntN(90), 1+r.IntN(90), 1+r.IntN(300)
			a, b := quarters(r, m, k), quarters(r, k, n)
			got := irtest.Run(t, []*tensor.Tensor{a.tensor(t, d), b.tensor(t, d)}, matMul)
			checkArray(t, got[0], slowMatMul(a, b), 1)
		}
	})
}

// TestMatMulExample is the example of the graphs chapter: x@w with w = ones(2), then ones(2, 2).
func TestMatMulExample(t *testing.T) {
	x := &slowArray{[]int{2, 2}, []float64{1, 2, 3, 4}}
	w := &slowArray{[]int{2}, []float64{1, 1}}
	got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, tensor.F32), w.tensor(t, tensor.F32)}, matMul)
	checkArray(t, got[0], &slowArray{[]int{2}, []float64{3, 7}}, 0)
}

// TestMatMulRounding checks that 16-bit floats are rounded once: 2048 + 1 + 1 is 2048 if each sum is a float16.
func TestMatMulRounding(t *testing.T) {
	a := &slowArray{[]int{1, 3}, []float64{2048, 1, 1}}
	b := &slowArray{[]int{3, 1}, []float64{1, 1, 1}}
	got := irtest.Run(t, []*tensor.Tensor{a.tensor(t, tensor.F16), b.tensor(t, tensor.F16)}, matMul)
	checkArray(t, got[0], &slowArray{[]int{1, 1}, []float64{2050}}, 0)
}

func TestMatMulErrors(t *testing.T) {
	f32 := func(shape ...int) ir.Spec { return ir.Spec{Shape: shape, DType: tensor.F32} }
	for _, c := range []struct {
		a, b  ir.Spec
		words string
	}{
		{f32(2, 3), f32(2, 3), "inner dimensions 3 and 2, want equal ones"},
		{f32(3), f32(2), "inner dimensions 3 and 2"},
		{f32(2, 3), f32(), "a scalar, want matrices or vectors"},
		{f32(), f32(2, 3), "a scalar, want matrices or vectors"},
		{f32(2, 2, 3), f32(3, 3, 2), "leading dimensions (2,) and (3,), want equal ones or 1"},
		{f32(2, 3), ir.Spec{Shape: tensor.Shape{3, 2}, DType: tensor.F64}, "element types float32 and float64, want the same"},
		{ir.Spec{Shape: tensor.Shape{3, 2}, DType: tensor.I32}, ir.Spec{Shape: tensor.Shape{2, 2}, DType: tensor.I32}, "element type int32, want float16, bfloat16, float32 or float64"},
	} {
		wantBuildError(t, []ir.Spec{c.a, c.b}, matMul, "matmul", c.words)
	}
}

// BenchmarkMatMul has the three products of a layer, forward and back, in a running session.
func BenchmarkMatMul(b *testing.B) {
	for _, s := range [][3]int{{32, 784, 128}, {512, 512, 512}} {
		b.Run(fmt.Sprintf("m=%d/k=%d/n=%d", s[0], s[1], s[2]), func(b *testing.B) {
			benchmarkOps(b, 2*s[0]*s[1]*s[2], []ir.Spec{
				{Shape: tensor.Shape{s[0], s[1]}, DType: tensor.F32},
				{Shape: tensor.Shape{s[1], s[2]}, DType: tensor.F32}}, matMul)
		})
	}
}
