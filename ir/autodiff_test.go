package ir_test

import (
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// What would make a gradient wrong is an error: a tensor on its way that is changed in place, a turn of a loop that
// cannot be computed again, the gradient of what a call gives out for another gradient.
func TestAutodiffRefuses(t *testing.T) {
	type graph = func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor
	loop := func(body graph) graph {
		return func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return g.Repeat(g.Program().CreateGraph(body, f32(), f32()), 2, in[0], in[1])
		}
	}
	for _, c := range []struct {
		name, want string
		build      graph
	}{
		{"needed and changed", "accumulate at autodiff_test.go:*", func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			u := ir.AddScalar(in[0], 1)
			y := ir.Mul(u, u)
			ir.Accumulate(u, number(g, 100))
			return []*ir.Tensor{y}
		}},
		{"an input that a call changes", "call at autodiff_test.go:*", func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			change := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				ir.Accumulate(in[0], number(g, 1))
				return nil
			}, f32())
			y := ir.Mul(in[0], in[0])
			g.CallWithInfo(change, nil, in[0]).SetParentInputModified(in[0])
			return []*ir.Tensor{y}
		}},
		{"what stays in a loop", "changes in place its input", loop(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			y := ir.Mul(in[0], in[1])
			ir.Accumulate(in[1], number(g, 1))
			return []*ir.Tensor{y}
		})},
		{"a load in a loop", "host load of graph", loop(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ir.Mul(in[0], g.HostLoad(g.Program().HostToDevice("x", f32())))}
		})},
		{"a store in a call in a loop", "cannot be done again", loop(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			store := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				g.HostStore(g.Program().DeviceToHost("x", f32()), in[0])
				return nil
			}, f32())
			g.Call(store, in[0])
			return []*ir.Tensor{ir.Mul(in[0], in[1])}
		})},
		{"the gradient of a gradient through a call",
			"is given out beside the outputs", func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				cube := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
					return []*ir.Tensor{ir.Mul(in[0], ir.Mul(in[0], in[0]))}
				}, f32())
				info := ir.Autodiff(cube)
				by := info.By(g.CallWithInfo(cube, nil, in[0]))
				by[info.Grads[0]] = number(g, 1)
				return g.CallWithInfo(info.Graph, by).Outputs()
			}},
	} {
		p := ir.New(1)
		ir.Autodiff(p.CreateGraph(c.build, f32(), f32()))
		if err := p.Err(); err == nil || !matches(err.Error(), c.want) || !strings.Contains(err.Error(), "autodiff") {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}

// What is changed in place off the way does not matter.
func TestAutodiffOffTheWay(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		count := p.Variable(tensor.Scalar(float32(0)))
		f := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			ir.Accumulate(in[1], number(g, 1))
			return []*ir.Tensor{ir.Mul(in[0], in[0])}
		}, f32(), f32())
		fwd := m.CallWithInfo(f, nil, number(m, 3), count.Tensor)
		fwd.SetParentInputModified(count.Tensor)
		info := ir.Autodiff(f, ir.ForInputs(f.Inputs()[0]))
		by := info.By(fwd)
		by[info.Grads[0]] = number(m, 1)
		return append(m.CallWithInfo(info.Graph, by).Outputs(), count.Tensor)
	}), 6, 1)
}
