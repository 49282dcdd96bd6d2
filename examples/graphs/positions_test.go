package main

import (
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// TestPositions: an operation of a gradient has the line of the program that asks for it, and none of package ops,
// whose small functions are compiled into the program's.
func TestPositions(t *testing.T) {
	for _, f := range []func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor{
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Add(in[0], in[1])} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Sub(in[0], in[1])} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Mul(in[0], in[1])} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Div(in[0], in[1])} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.MulScalar(in[0], 2)} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.DivScalar(in[0], 2)} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Neg(in[0])} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Exp(in[0])} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Gelu(in[0])} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Softmax(in[0])} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.ReduceMean(in[0])} },
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.MatMul(in[0], in[1])} },
	} {
		p := ir.New(1)
		s := ir.Spec{Shape: tensor.Shape{2, 2}, DType: tensor.F32}
		graph := p.CreateGraph(f, s, s)
		first := ir.Autodiff(graph).Graph
		second := ir.Autodiff(first).Graph
		if err := p.Err(); err != nil {
			t.Fatal(err)
		}
		for _, g := range []*ir.Graph{graph, first, second} {
			for _, o := range g.Operations() {
				if at := o.Position(); !strings.HasSuffix(at.File, "positions_test.go") {
					t.Errorf("%v of graph %s is built at %v, want a line of this file", o, g.Name(), at)
				}
			}
		}
	}
}
