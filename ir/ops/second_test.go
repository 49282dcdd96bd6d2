package ops_test

import (
	"math"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// TestGeluFarOut: the gradient of the gradient of Gelu is 0 where x is large, in types in which the square of x is
// infinite, and where x is.
func TestGeluFarOut(t *testing.T) {
	for _, d := range floats {
		a := newSlowArray(6)
		a.v = []float64{-math.MaxFloat64, -300, math.Inf(-1), math.Inf(1), 300, 0}
		got := irtest.Run(t, []*tensor.Tensor{a.tensor(t, d)}, func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			one := ops.Expand(g.Constant(tensor.Scalar(float32(1))), 6)
			return gradientOfGradient(g, ops.Gelu, in[0], ops.Cast(one, d))
		})
		for i, v := range asFloats(t, got[0]) {
			if i < 5 && v != 0 || i == 5 && !(math.Abs(v-math.Sqrt(2/math.Pi)) < 0.01) {
				t.Errorf("%v: element %d is %v", d, i, v)
			}
		}
	}
}

// gradientOfGradient adds a function's second derivative.
func gradientOfGradient(g *ir.Graph, f func(*ir.Tensor) *ir.Tensor, x, one *ir.Tensor) []*ir.Tensor {
	p := g.Program()
	graph := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{f(in[0])} }, x)
	slope := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		info := ir.Autodiff(graph)
		call := g.CallWithInfo(graph, nil, in[0])
		by := info.By(call)
		by[info.Grads[0]] = in[1]
		return g.CallWithInfo(info.Graph, by).Outputs()
	}, x, one)
	info := ir.Autodiff(slope, ir.ForInputs(slope.Inputs()[0]))
	call := g.CallWithInfo(slope, nil, x, one)
	by := info.By(call)
	by[info.Grads[0]] = one
	return g.CallWithInfo(info.Graph, by).Outputs()
}
