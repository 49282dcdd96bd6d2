package ir_test

import (
	"slices"
	"strings"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// affine is tanh(x) w + b.
func affine(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	x, w, b := in[0].Named("x"), in[1].Named("w"), in[2].Named("b")
	return []*ir.Tensor{ops.Add(ops.MatMul(ops.Tanh(x), w), b)}
}

// TestForInputs compares the gradients that are asked for with those of all inputs, and looks for what nobody needs.
func TestForInputs(t *testing.T) {
	var data []*tensor.Tensor
	for _, s := range []tensor.Shape{{3, 4}, {4, 5}, {5}, {3, 5}} {
		data = append(data, irtest.RandomFloats(s))
	}
	gradients := func(through bool, of ...int) ([]*tensor.Tensor, *ir.GradInfo) {
		var info *ir.GradInfo
		got := irtest.Run(t, data, func(m *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			p := m.Program()
			graph := p.CreateGraph(affine, in[0], in[1], in[2])
			if through { // a call
				inner := graph
				graph = p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
					return g.Call(inner, in...)
				}, in[0], in[1], in[2])
			}
			var options []ir.AutodiffOption
			if of != nil {
				var wanted []*ir.Tensor
				for _, i := range of {
					wanted = append(wanted, graph.Inputs()[i])
				}
				options = append(options, ir.ForInputs(wanted...))
			}
			info = ir.Autodiff(graph, options...)
			for k, x := range info.Inputs {
				if want := append(slices.Sorted(slices.Values(of)), 0, 1, 2)[k]; of != nil &&
					x != graph.Inputs()[want] {
					t.Errorf("of %v: gradient %d is of %v", of, k, x)
				}
			}
			by := info.By(m.CallWithInfo(graph, nil, in[:3]...))
			by[info.Grads[0]] = in[3]
			return m.CallWithInfo(info.Graph, by).Outputs()
		})
		return got, info
	}
	all, _ := gradients(false)
	for _, through := range []bool{false, true} {
		for _, of := range [][]int{{0}, {1}, {2}, {2, 1}, {0, 2}, {0, 1, 2}} {
			got, info := gradients(through, of...)
			if len(got) != len(of) {
				t.Fatalf("of %v: %d gradients", of, len(got))
			}
			for k, i := range slices.Sorted(slices.Values(of)) {
				if !got[k].Equal(all[i]) {
					t.Errorf("gradient %d of %v: %v, want %v", i, of, got[k], all[i])
				}
			}
			if through {
				continue
			}
			text, wantsX := info.Graph.String(), slices.Contains(of, 0)
			if strings.Contains(text, "tanh gradient") != wantsX {
				t.Errorf("of %v: the gradient of tanh is built, or is not:\n%s", of, text)
			}
			products := 0
			for _, i := range of {
				if i < 2 {
					products++
				}
			}
			if n := strings.Count(text, "matmul"); n != products {
				t.Errorf("of %v: %d products, want %d:\n%s", of, n, products, text)
			}
			needs := map[string]bool{"%w": wantsX, "%tanh": wantsX || slices.Contains(of, 1)}
			want := 0
			for _, need := range needs {
				if need {
					want++
				}
			}
			if len(info.Needs) != want || len(info.Graph.Inputs()) != 1+want {
				t.Errorf("of %v: needs %v, %d inputs, want %d and one more",
					of, info.Needs, len(info.Graph.Inputs()), want)
			}
		}
	}
}

// TestGradientOffTheWay has operations without a gradient that no wanted input leads to.
func TestGradientOffTheWay(t *testing.T) {
	p := ir.New(1)
	images := p.HostToDevice("images", f32(2))
	for _, from := range []func(g *ir.Graph, x *ir.Tensor) *ir.Tensor{
		func(g *ir.Graph, _ *ir.Tensor) *ir.Tensor { return g.HostLoad(images) },
		func(_ *ir.Graph, x *ir.Tensor) *ir.Tensor { return ops.Accumulate(x, x) },
	} {
		graph := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.Mul(from(g, ops.MulScalar(in[0], 2)), in[1])}
		}, f32(2), f32(2))
		if info := ir.Autodiff(graph, ir.ForInputs(graph.Inputs()[1])); p.Err() != nil ||
			len(info.Graph.Outputs()) != 1 {
			t.Errorf("error %v", p.Err())
		}
	}
}

func TestForInputsFailures(t *testing.T) {
	for want, wanted := range map[string]func(g *ir.Graph) []*ir.Tensor{
		"for inputs: %nil is no input of the graph": func(g *ir.Graph) []*ir.Tensor { return []*ir.Tensor{nil} },
		"y is no input of the graph": func(g *ir.Graph) []*ir.Tensor {
			return []*ir.Tensor{g.Outputs()[0].Named("y")}
		},
		"labels is of int32, want floats": func(g *ir.Graph) []*ir.Tensor {
			return []*ir.Tensor{g.Inputs()[1].Named("labels")}
		},
		"x is there twice": func(g *ir.Graph) []*ir.Tensor { x := g.Inputs()[0].Named("x"); return []*ir.Tensor{x, x} },
	} {
		p := ir.New(1)
		graph := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.CrossEntropy(in[0], in[1])}
		}, f32(2, 3), ir.Spec{Shape: tensor.Shape{2}, DType: tensor.I32})
		ir.Autodiff(graph, ir.ForInputs(wanted(graph)...))
		_, err := ir.NewSession(p)
		for _, w := range []string{"autodiff", want, "autodiff_inputs_test.go:"} {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("error %v, want one with %q", err, w)
			}
		}
	}
}
