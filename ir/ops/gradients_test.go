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

// distinct is a tensor of float64 whose elements are all different, by 0.1 or more.
func distinct(shape ...int) *tensor.Tensor {
	x := irtest.RandomFloats(shape)
	v, _ := tensor.Of[float64](x)
	for i := range v {
		v[i] = 0.1*float64((i*7)%len(v)) + 0.01*v[i]/2
	}
	return x
}

// gradientCase is an operation with inputs, those of floats of float64.
type gradientCase struct {
	name string
	in   []*tensor.Tensor
	f    func(in []*ir.Tensor) *ir.Tensor
}

// gradientCases has each operation that has a gradient.
func gradientCases(t *testing.T) []gradientCase {
	var all []gradientCase
	add := func(name string, f func(in []*ir.Tensor) *ir.Tensor, in ...*tensor.Tensor) {
		all = append(all, gradientCase{name, in, f})
	}
	x := func(shape ...int) *tensor.Tensor { return irtest.RandomFloats(shape) }
	for _, s := range [][2][]int{
		{{2, 3}, {3, 4}}, {{2, 3}, {3}}, {{3}, {3, 4}}, {{3}, {3}}, {{1, 3}, {3, 1}}, {{3, 1}, {1, 2}},
		{{2, 3, 4}, {2, 4, 5}}, {{2, 3, 4}, {4, 5}}, {{3, 4}, {2, 4, 5}}, {{2, 3, 4}, {4}}, {{3}, {2, 3, 4}},
		{{2, 1, 2, 3}, {1, 3, 3, 2}}, {{1, 2, 3}, {2, 3, 2}},
	} {
		add(fmt.Sprint("matmul", s), func(in []*ir.Tensor) *ir.Tensor {
			return ops.MatMul(in[0], in[1])
		}, x(s[0]...), x(s[1]...))
	}
	add("matmul of one by itself", func(in []*ir.Tensor) *ir.Tensor { return ops.MatMul(in[0], in[0]) }, x(3, 3))
	add("reshape", func(in []*ir.Tensor) *ir.Tensor { return ops.Reshape(in[0], 3, -1) }, x(2, 3, 2))
	add("transpose", func(in []*ir.Tensor) *ir.Tensor { return ops.Transpose(in[0]) }, x(2, 3))
	add("transpose by an order", func(in []*ir.Tensor) *ir.Tensor { return ops.Transpose(in[0], 1, -1, 0) }, x(2, 3, 4))
	add("expand", func(in []*ir.Tensor) *ir.Tensor { return ops.Expand(in[0], 2, 3, 4) }, x(3, 1))
	add("expand to the same", func(in []*ir.Tensor) *ir.Tensor { return ops.Expand(in[0], 2, 3) }, x(2, 3))
	add("slice", func(in []*ir.Tensor) *ir.Tensor {
		return ops.Slice(in[0], []int{0, 1, 1}, []int{2, 3, 2})
	}, x(2, 3, 4))
	add("slice of an axis", func(in []*ir.Tensor) *ir.Tensor { return ops.SliceAxis(in[0], -1, 1, 3) }, x(2, 4))
	add("concat", func(in []*ir.Tensor) *ir.Tensor { return ops.Concat(-1, in[0], in[1], in[0]) }, x(2, 3), x(2, 2))
	for k, axes := range [][]int{nil, {0}, {1}, {-1}, {0, 2}, {1, 2}} {
		add(fmt.Sprint("sum", axes), func(in []*ir.Tensor) *ir.Tensor {
			return ops.ReduceSum(in[0], axes...)
		}, x(2, 3, 4))
		add(fmt.Sprint("sum, kept", axes), func(in []*ir.Tensor) *ir.Tensor {
			return ops.ReduceSumKeep(in[0], axes...)
		}, x(2, 3, 4))
		add(fmt.Sprint("mean", axes), func(in []*ir.Tensor) *ir.Tensor {
			return ops.ReduceMean(in[0], axes...)
		}, x(2, 3, 4))
		add(fmt.Sprint("mean, kept", axes), func(in []*ir.Tensor) *ir.Tensor {
			return ops.ReduceMeanKeep(in[0], axes...)
		}, x(2, 3, 4))
		add(fmt.Sprint("max", axes), func(in []*ir.Tensor) *ir.Tensor {
			return ops.ReduceMax(in[0], axes...)
		}, distinct(2, 3, 4))
		add(fmt.Sprint("max, kept", axes), func(in []*ir.Tensor) *ir.Tensor {
			return ops.ReduceMaxKeep(in[0], axes...)
		}, distinct(2, 3, 4+k))
	}
	add("softmax", func(in []*ir.Tensor) *ir.Tensor { return ops.Softmax(in[0]) }, x(2, 3, 4))
	add("log softmax", func(in []*ir.Tensor) *ir.Tensor { return ops.LogSoftmax(in[0]) }, x(2, 3, 4))
	labels := fromSlice(t, []int32{3, 0, 0, 1, 2, 3}, 2, 3)
	add("cross entropy", func(in []*ir.Tensor) *ir.Tensor { return ops.CrossEntropy(in[0], in[1]) }, x(2, 3, 4), labels)
	add("cross entropies", func(in []*ir.Tensor) *ir.Tensor {
		return ops.CrossEntropyEach(in[0], in[1])
	}, x(2, 3, 4), labels)
	add("layer norm", func(in []*ir.Tensor) *ir.Tensor {
		return ops.LayerNorm(in[0], in[1], in[2], 0.1)
	}, x(2, 3, 4), x(4), x(4))
	return all
}

// TestOpGradients holds the gradient of each operation against differences.
func TestOpGradients(t *testing.T) {
	for _, c := range gradientCases(t) {
		irtest.CheckGradient(t, c.name, c.in, func(_ *ir.Graph, in []*ir.Tensor) *ir.Tensor { return c.f(in) })
	}
}

// TestOpGradientTypes holds the gradients in other types of floats against those in float64.
func TestOpGradientTypes(t *testing.T) {
	forTypes(t, floatDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for _, c := range gradientCases(t) {
			narrow, wide := slices.Clone(c.in), slices.Clone(c.in)
			for i, x := range c.in {
				if x.DType() == tensor.F64 {
					a := &slowArray{x.Shape(), asFloats(t, x)}
					narrow[i] = a.tensor(t, d)
					a.v = asFloats(t, narrow[i])
					wide[i] = a.tensor(t, tensor.F64)
				}
			}
			want := irtest.Run(t, wide, gradientOf(c))
			for i, x := range irtest.Run(t, narrow, gradientOf(c)) {
				checkArray(t, x, &slowArray{want[i].Shape(), asFloats(t, want[i])}, 8)
			}
			if t.Failed() {
				t.Fatal(c.name)
			}
		}
	})
}

// TestGradientsOfGradients does so with what Autodiff makes of each operation: the gradient of half the sum of its
// squared results.
func TestGradientsOfGradients(t *testing.T) {
	cases := gradientCases(t)
	x := func(shape ...int) *tensor.Tensor { return irtest.RandomFloats(shape) }
	one := func(name string, f func(t *ir.Tensor) *ir.Tensor) {
		cases = append(cases, gradientCase{name, []*tensor.Tensor{x(7)},
			func(in []*ir.Tensor) *ir.Tensor { return f(in[0]) }})
	}
	one("neg", ops.Neg)
	one("abs", ops.Abs)
	one("square", ops.Square)
	one("relu", ops.Relu)
	one("tanh", ops.Tanh)
	one("sigmoid", ops.Sigmoid)
	one("gelu", ops.Gelu)
	one("softplus", ops.Softplus)
	one("exp", ops.Exp)
	positive := []*tensor.Tensor{fromSlice(t, []float64{0.5, 1, 2.5}, 3)}
	cases = append(cases,
		gradientCase{"log", positive, func(in []*ir.Tensor) *ir.Tensor { return ops.Log(in[0]) }},
		gradientCase{"sqrt", positive, func(in []*ir.Tensor) *ir.Tensor { return ops.Sqrt(in[0]) }})
	one("add scalar", func(t *ir.Tensor) *ir.Tensor { return ops.AddScalar(t, 2) })
	one("sub scalar", func(t *ir.Tensor) *ir.Tensor { return ops.SubScalar(t, 2) })
	one("mul scalar", func(t *ir.Tensor) *ir.Tensor { return ops.MulScalar(t, 2) })
	one("div scalar", func(t *ir.Tensor) *ir.Tensor { return ops.DivScalar(t, 2) })
	one("cast", func(t *ir.Tensor) *ir.Tensor { return ops.Cast(t, tensor.F64) })
	two := func(name string, f func(x, y *ir.Tensor) *ir.Tensor) {
		cases = append(cases, gradientCase{name, []*tensor.Tensor{x(2, 3), x(3)},
			func(in []*ir.Tensor) *ir.Tensor { return f(in[0], in[1]) }})
	}
	two("add", ops.Add)
	two("sub", ops.Sub)
	two("mul", ops.Mul)
	two("div", ops.Div)
	same := func(name string, f func(x, y *ir.Tensor) *ir.Tensor) {
		cases = append(cases, gradientCase{name, []*tensor.Tensor{x(3), distinct(3)},
			func(in []*ir.Tensor) *ir.Tensor { return f(in[0], in[1]) }})
	}
	condition := fromSlice(t, []bool{true, false, true}, 3)
	same("select", func(x, y *ir.Tensor) *ir.Tensor { return ops.Select(x.Graph().Constant(condition), x, y) })
	same("scaled add", func(x, y *ir.Tensor) *ir.Tensor { return ops.ScaledAdd(x, y, 0.5) })
	same("accumulate", ops.Accumulate)
	same("copy into", ops.CopyInto)
	for _, c := range cases {
		for k := range c.in {
			if c.in[k].DType() != tensor.F64 {
				continue
			}
			irtest.CheckGradient(t, c.name, c.in, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
				return gradientOf(c)(g, in)[k]
			})
		}
	}
}

// TestGradientsOfNothing has tensors of no elements: what is left of the gradients is zeros.
func TestGradientsOfNothing(t *testing.T) {
	x := func(shape ...int) *tensor.Tensor { return irtest.RandomFloats(shape) }
	for _, c := range []gradientCase{
		{"matmul", []*tensor.Tensor{x(0, 3), x(3, 2)}, func(in []*ir.Tensor) *ir.Tensor { return ops.MatMul(in[0], in[1]) }},
		{"matmul along nothing", []*tensor.Tensor{x(2, 0), x(0, 3)}, func(in []*ir.Tensor) *ir.Tensor { return ops.MatMul(in[0], in[1]) }},
		{"matmul in no batches", []*tensor.Tensor{x(0, 2, 3), x(3, 2)}, func(in []*ir.Tensor) *ir.Tensor { return ops.MatMul(in[0], in[1]) }},
		{"transpose", []*tensor.Tensor{x(2, 0, 3)}, func(in []*ir.Tensor) *ir.Tensor { return ops.Transpose(in[0]) }},
		{"expand", []*tensor.Tensor{x(2, 1)}, func(in []*ir.Tensor) *ir.Tensor { return ops.Expand(in[0], 2, 0) }},
		{"slice", []*tensor.Tensor{x(2, 3)}, func(in []*ir.Tensor) *ir.Tensor { return ops.SliceAxis(in[0], 1, 2, 2) }},
		{"sum", []*tensor.Tensor{x(2, 0)}, func(in []*ir.Tensor) *ir.Tensor { return ops.ReduceSum(in[0], 1) }},
		{"max", []*tensor.Tensor{x(0, 2)}, func(in []*ir.Tensor) *ir.Tensor { return ops.ReduceMax(in[0], 1) }},
		{"softmax", []*tensor.Tensor{x(2, 0)}, func(in []*ir.Tensor) *ir.Tensor { return ops.Softmax(in[0]) }},
		{"layer norm", []*tensor.Tensor{x(0, 4), x(4), x(4)}, func(in []*ir.Tensor) *ir.Tensor { return ops.LayerNorm(in[0], in[1], in[2], 1) }},
		{"cross entropies", []*tensor.Tensor{x(0, 4), newSlowArray(0).tensor(t, tensor.I32)}, func(in []*ir.Tensor) *ir.Tensor { return ops.CrossEntropyEach(in[0], in[1]) }},
	} {
		got := irtest.Run(t, c.in, gradientOf(c))
		for i, x := range got {
			if !x.Shape().Equal(c.in[i].Shape()) {
				t.Errorf("%s: gradient %d has shape %v, want %v", c.name, i, x.Shape(), c.in[i].Shape())
			}
			for _, v := range asFloats(t, x) {
				if v != 0 {
					t.Errorf("%s: gradient %d is %v, want zeros", c.name, i, x)
					break
				}
			}
		}
	}
}

// gradientOf adds an operation in a graph of its own, and the gradient of half the sum of its squared results.
func gradientOf(c gradientCase) irtest.Build {
	return func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		var inputs []ir.Input
		for _, x := range in {
			inputs = append(inputs, x)
		}
		graph := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{c.f(in)}
		}, inputs...)
		info := ir.Autodiff(graph)
		forward := g.CallWithInfo(graph, nil, in...)
		by := info.By(forward)
		by[info.Grads[0]] = forward.Outputs()[0]
		return g.CallWithInfo(info.Graph, by).Outputs()
	}
}
