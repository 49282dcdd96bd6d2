package ir_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// branchOf makes a branch of a function of two tensors.
func branchOf(g *ir.Graph, x, y *ir.Tensor, f pair) ir.Branch {
	graph := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{f(g, in[0], in[1])}
	}, x, y)
	return ir.Branch{Graph: graph, In: []*ir.Tensor{x, y}}
}

// choiceForms have a choice by a condition, which is always the one or the other.
var choiceForms = []struct {
	name  string
	build func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor
}{
	{"two functions", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		return g.If(condition,
			branchOf(g, x, y, func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor { return ops.Mul(x, y) }),
			branchOf(g, x, y, func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor { return ops.Tanh(x) }))[0]
	}},
	{"one tensor for both inputs", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		product := func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor { return ops.Mul(ops.Tanh(x), y) }
		return ops.Mul(y, g.If(condition, branchOf(g, x, x, product), branchOf(g, y, x, product))[0])
	}},
	{"one graph as both branches", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		b := branchOf(g, x, y, func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
			return ops.Mul(ops.Tanh(x), ops.Tanh(y))
		})
		return g.If(condition, b, ir.Branch{Graph: b.Graph, In: []*ir.Tensor{y, y}})[0]
	}},
	{"a branch that has no gradient", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		one := g.Program().CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{g.Constant(vectorOf(1, 1, 1))}
		})
		out := g.If(condition, ir.Branch{Graph: one}, branchOf(g, x, y, func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
			return ops.Mul(x, ops.Tanh(y))
		}))
		return ops.Mul(out[0], x)
	}},
	{"a captured tensor that is changed in place", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		u := ops.Mul(x, y)
		out := g.If(condition, branchOf(g, u, x, func(_ *ir.Graph, u, x *ir.Tensor) *ir.Tensor {
			v := ops.Tanh(u)
			before := ops.Mul(v, x)
			ops.Accumulate(v, before)
			ops.Accumulate(u, v)
			return ops.Mul(u, before)
		}), branchOf(g, u, x, func(_ *ir.Graph, u, x *ir.Tensor) *ir.Tensor {
			ops.CopyInto(u, x)
			return ops.Mul(u, x)
		}))
		return ops.Mul(out[0], u)
	}},
	{"changed before and after", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		u := ops.Tanh(x)
		ops.Accumulate(u, y)
		out := g.If(condition,
			branchOf(g, u, y, func(_ *ir.Graph, u, y *ir.Tensor) *ir.Tensor { return ops.Mul(u, u) }),
			branchOf(g, u, y, func(_ *ir.Graph, u, y *ir.Tensor) *ir.Tensor { return ops.Mul(u, y) }))
		ops.Accumulate(u, out[0])
		return ops.Mul(u, out[0])
	}},
	{"stored in a branch", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec)
		remote.Store(ops.Mul(x, y), b, 0)
		nothing := g.Program().CreateGraph(func(*ir.Graph, []*ir.Tensor) []*ir.Tensor { return nil })
		stores := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			remote.Store(ops.Tanh(in[0]), b, 0)
			return nil
		}, x)
		g.If(condition, ir.Branch{Graph: stores, In: []*ir.Tensor{x}}, ir.Branch{Graph: nothing})
		return ops.Mul(remote.Load(g, b, 0), y)
	}},
	{"loaded in a branch", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec, 2)
		remote.Store(ops.Mul(x, y), b, 0)
		remote.Store(ops.Tanh(y), b, 1)
		load := func(at int) ir.Branch {
			return branchOf(g, x, y, func(g *ir.Graph, x, _ *ir.Tensor) *ir.Tensor {
				return ops.Mul(x, remote.Load(g, b, at))
			})
		}
		return g.If(condition, load(0), load(1))[0]
	}},
	{"in a loop", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		turn := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			out := g.If(in[2], branchOf(g, in[0], in[1], func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
				return ops.Mul(ops.Tanh(x), y)
			}), branchOf(g, in[0], in[1], func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
				ops.Accumulate(x, y)
				return ops.Mul(x, ops.Tanh(x))
			}))
			return []*ir.Tensor{out[0]}
		}, x, y, condition)
		return g.Repeat(turn, 3, x, y, condition)[0]
	}},
	{"in a branch", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		outer := func(sign float64) ir.Branch {
			graph := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				x, y := ops.MulScalar(in[0], sign), ops.Tanh(in[1])
				return g.If(in[2], branchOf(g, x, y, func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
					return ops.Mul(ops.Tanh(x), y)
				}), branchOf(g, x, y, func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor { return ops.Mul(y, y) }))
			}, x, y, condition)
			return ir.Branch{Graph: graph, In: []*ir.Tensor{x, y, condition}}
		}
		return g.If(condition, outer(2), outer(-3))[0]
	}},
	{"in a call", func(g *ir.Graph, condition, x, y *ir.Tensor) *ir.Tensor {
		called := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			u := ops.Tanh(in[0])
			return g.If(in[2], branchOf(g, u, in[1], func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
				return ops.Mul(ops.Tanh(x), y)
			}), branchOf(g, u, in[1], func(_ *ir.Graph, x, y *ir.Tensor) *ir.Tensor { return ops.Mul(y, y) }))
		}, x, y, condition)
		return g.Call(called, x, y, condition)[0]
	}},
}

// TestGradientOfAChoice holds gradients through choices against differences, with either branch taken.
func TestGradientOfAChoice(t *testing.T) {
	x, y := vectorOf(0.3, -0.7, 1.1), vectorOf(0.9, 0.4, -0.6)
	for _, f := range choiceForms {
		for _, taken := range []bool{true, false} {
			irtest.CheckGradient(t, fmt.Sprint(f.name, ", ", taken), []*tensor.Tensor{x, y},
				func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
					return f.build(g, g.Constant(tensor.Scalar(taken)), in[0], in[1])
				})
		}
	}
}

// TestChoiceOfEachReplica: what goes back goes through the branch that the replica has taken.
func TestChoiceOfEachReplica(t *testing.T) {
	p := ir.New(2)
	condition := p.HostToDevice("condition", ir.Spec{DType: tensor.Bool})
	graph := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		double := func(_ *ir.Graph, x, _ *ir.Tensor) *ir.Tensor { return ops.MulScalar(x, 2) }
		square := func(_ *ir.Graph, x, _ *ir.Tensor) *ir.Tensor { return ops.Mul(x, x) }
		return g.If(in[0], branchOf(g, in[1], in[1], double), branchOf(g, in[1], in[1], square))
	}, condition.Spec(), vectorSpec)
	info := ir.Autodiff(graph)
	main := p.Main()
	call := main.CallWithInfo(graph, nil, main.HostLoad(condition), main.Constant(vectorOf(1, 2, 3)))
	by := info.By(call)
	by[info.Grads[0]] = main.Constant(vectorOf(1, 1, 1))
	gradient := p.DeviceToHost("gradient", vectorSpec)
	main.HostStore(gradient, main.CallWithInfo(info.Graph, by).Outputs()[0])
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := tensor.FromSlice([]bool{true, false}, 2)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{condition: in})
	if err != nil {
		t.Fatal(err)
	}
	if got := irtest.Float64s(t, out[gradient]); !slices.Equal(got, []float64{2, 2, 2, 2, 4, 6}) {
		t.Errorf("%v, want 2 of the one replica, twice what was given of the other", got)
	}
}
