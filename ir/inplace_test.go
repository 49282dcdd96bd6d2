package ir_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// pair is a function of two tensors in a graph.
type pair = func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor

// inPlaceForms change tensors in place, or store and load them, and read what has changed by the old handle, or return
// it. Every one had a gradient of zero without an error, or an error.
var inPlaceForms = []struct {
	name  string
	build pair
}{
	{"accumulate", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := zerosOf(g)
		ops.Accumulate(acc, ops.Mul(x, y))
		return ops.Mul(acc, acc)
	}},
	{"accumulate twice, by both handles", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := zerosOf(g)
		h := ops.Accumulate(acc, x)
		ops.Accumulate(h, ops.Mul(acc, y))
		return ops.Mul(h, acc)
	}},
	{"accumulate itself", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ops.Mul(x, y)
		ops.Accumulate(u, u)
		return u
	}},
	{"returned by the old handle", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := zerosOf(g)
		ops.Accumulate(acc, ops.Mul(x, y))
		return acc
	}},
	{"an input", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ops.Mul(x, y)
		ops.Accumulate(x, y)
		return ops.Mul(u, x)
	}},
	{"copy into", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := zerosOf(g)
		ops.CopyInto(acc, ops.Mul(x, y))
		return ops.Mul(acc, x)
	}},
	{"copy into, which was read before", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ops.Tanh(x)
		before := ops.Mul(u, y)
		ops.CopyInto(u, y)
		return ops.Add(ops.Mul(u, x), before)
	}},
	{"copy into itself", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ops.Mul(x, y)
		ops.CopyInto(u, u)
		return u
	}},
	{"scaled add", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ops.MulScalar(x, 2)
		ops.ScaledAdd(u, ops.Mul(x, y), -3)
		return u
	}},
	{"needed as it was", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u, v := ops.Tanh(x), ops.Tanh(y)
		p := ops.Mul(u, v)
		ops.Accumulate(u, v)
		q := ops.Mul(u, p)
		ops.CopyInto(v, q)
		ops.Accumulate(u, v)
		return ops.Mul(u, v)
	}},
	{"in sequence", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ops.Tanh(x)
		var p, q *ir.Tensor
		g.InSequence(func() {
			p = ops.Mul(u, y)
			g.OutOfSequence(func() {
				ops.Accumulate(u, y)
				q = ops.Mul(u, u)
			})
			ops.CopyInto(u, q)
		})
		return ops.Mul(ops.Add(p, q), u)
	}},
	{"modified by a call", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ops.Mul(x, y)
		p := ops.Mul(acc, acc)
		g.CallWithInfo(addProduct(g, 0), nil, acc, x).SetParentInputModified(acc)
		return ops.Add(ops.Mul(acc, y), p)
	}},
	{"modified by a call in a call", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		inner := addProduct(g, 0)
		outer := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			p := ops.Mul(in[1], in[0])
			g.CallWithInfo(inner, nil, in[1], in[0]).SetParentInputModified(in[1])
			return []*ir.Tensor{ops.Mul(p, in[1])}
		}, vectorSpec, vectorSpec)
		acc := ops.Mul(x, y)
		info := g.CallWithInfo(outer, nil, x, acc)
		info.SetParentInputModified(outer.Inputs()[1])
		return ops.Mul(acc, info.Outputs()[0])
	}},
	{"changed by a call by value", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ops.Mul(x, y)
		return ops.Mul(g.Call(addProduct(g, 1), acc, x)[0], acc)
	}},
	{"one call modifies, another of the same graph does not", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc, f := ops.Mul(x, y), addProduct(g, 1)
		p := g.Call(f, acc, x)[0]
		g.CallWithInfo(f, nil, acc, y).SetParentInputModified(acc)
		return ops.Mul(p, acc)
	}},
	{"one tensor for two inputs, one modified", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ops.Mul(x, y)
		f := addProduct(g, 0)
		g.CallWithInfo(f, nil, acc, acc).SetParentInputModified(f.Inputs()[0])
		return acc
	}},
	{"said to be modified and not changed", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ops.Mul(x, y)
		f := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.Mul(in[0], in[0])}
		}, vectorSpec)
		info := g.CallWithInfo(f, nil, acc)
		info.SetParentInputModified(acc)
		return ops.Mul(acc, info.Outputs()[0])
	}},
	{"a loop modifies what stays", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ops.Mul(x, y)
		info := g.RepeatWithInfo(turnOfSum(g), 3, nil, x, acc)
		info.SetParentInputModified(acc)
		return ops.Mul(info.Outputs()[0], acc)
	}},
	{"a loop changes what stays for itself", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ops.Mul(x, y)
		return ops.Mul(g.Repeat(turnOfSum(g), 3, x, acc)[0], acc)
	}},
	{"a loop changes what it carries", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		f := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			p := ops.Mul(ops.Tanh(in[0]), in[1])
			ops.Accumulate(in[0], p)
			return []*ir.Tensor{in[0]}
		}, vectorSpec, vectorSpec)
		return g.Repeat(f, 3, x, y)[0]
	}},
	{"a loop in a loop", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		inner := turnOfSum(g)
		f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			info := g.RepeatWithInfo(inner, 2, nil, in[0], in[1])
			info.SetParentInputModified(in[1])
			return []*ir.Tensor{ops.Mul(info.Outputs()[0], ops.Tanh(in[1]))}
		}, vectorSpec, vectorSpec)
		info := g.RepeatWithInfo(f, 2, nil, x, y)
		info.SetParentInputModified(y)
		return ops.Add(info.Outputs()[0], y)
	}},
	{"a statistic that a loop keeps and nobody reads", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			ops.SGD{}.Update(in[1], nil, in[0], g.Constant(tensor.Scalar(0.5)))
			return []*ir.Tensor{ops.Mul(ops.Tanh(in[0]), in[2])}
		}, vectorSpec, vectorSpec, vectorSpec)
		return g.Repeat(f, 2, x, zerosOf(g), y)[0]
	}},
	{"stored and loaded", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec)
		remote.Store(ops.Mul(x, x), b, 0)
		return ops.Mul(remote.Load(g, b, 0), y)
	}},
	{"several stores and loads of an entry", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec)
		remote.Store(x, b, 0)
		first := remote.Load(g, b, 0)
		remote.Store(ops.Mul(first, y), b, 0)
		second := ops.Tanh(y)
		remote.LoadInto(second, b, 0)
		return ops.Add(ops.Mul(first, remote.Load(g, b, 0)), second)
	}},
	{"stored in one entry, loaded from another", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec, 2)
		remote.Store(ops.Mul(x, x), b, 0)
		return ops.Add(ops.Add(remote.Load(g, b, 1), y), x)
	}},
	{"an entry that is computed", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec, 3)
		at := func(n float64) *ir.Tensor { return ops.Cast(g.Constant(tensor.Scalar(n)), tensor.I32) }
		remote.Store(x, b, 2)
		remote.StoreAt(ops.Mul(x, y), b, at(1))
		u := ops.Mul(remote.Load(g, b, 1), remote.LoadAt(b, at(2)))
		remote.StoreAt(y, b, at(2))
		return ops.Add(ops.Mul(u, remote.Load(g, b, 2)), remote.LoadAt(b, at(0)))
	}},
	{"a number of an entry that is changed later", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec, 3)
		at := ops.Cast(g.Constant(tensor.Scalar(1.0)), tensor.I32)
		remote.StoreAt(ops.Mul(x, y), b, at)
		ops.Accumulate(at, g.Constant(tensor.Scalar(int32(1))))
		remote.StoreAt(x, b, at)
		return ops.Mul(remote.Load(g, b, 1), remote.LoadAt(b, at))
	}},
	{"stored by a call and loaded by another", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec)
		g.Call(g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			remote.Store(ops.Mul(in[0], in[0]), b, 0)
			return nil
		}, vectorSpec), x)
		return ops.Mul(y, g.Call(g.Program().CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{remote.Load(g, b, 0)}
		}))[0])
	}},
	{"a loop that stores and loads", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec)
		remote.Store(y, b, 0)
		f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			kept := ops.Mul(ops.Tanh(remote.Load(g, b, 0)), in[0])
			remote.Store(kept, b, 0)
			return []*ir.Tensor{ops.Mul(ops.Tanh(in[0]), kept)}
		}, vectorSpec)
		return ops.Add(g.Repeat(f, 3, x)[0], remote.Load(g, b, 0))
	}},
	{"a loop that stores by its turn and one that loads", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b, turn := remote.NewBuffer(g.Program(), vectorSpec, 3), ir.Spec{DType: tensor.I32}
		put := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			remote.StoreAt(in[0], b, in[1])
			return []*ir.Tensor{ops.Mul(ops.Tanh(in[0]), in[2]), ops.AddScalar(in[1], 1)}
		}, vectorSpec, turn, vectorSpec)
		get := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.Mul(in[0], remote.LoadAt(b, in[1])), ops.AddScalar(in[1], 1)}
		}, vectorSpec, turn)
		zero := g.Constant(tensor.Scalar(int32(0)))
		return g.Repeat(get, 3, g.Repeat(put, 3, x, zero, y)[0], zero)[0]
	}},
}

// inOrder reports whether a text has the parts of another between its stars, in their order.
func inOrder(text, parts string) bool {
	for part := range strings.SplitSeq(parts, "*") {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}

func zerosOf(g *ir.Graph) *ir.Tensor {
	return ops.Expand(g.Constant(tensor.Scalar(0.0)), vectorLength)
}

// addProduct is a graph that adds to its first input, in place, the product of that and its second, and returns so many
// tensors.
func addProduct(g *ir.Graph, outputs int) *ir.Graph {
	return g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		ops.Accumulate(in[0], ops.Mul(in[0], in[1]))
		return []*ir.Tensor{ops.Tanh(in[0])}[:outputs]
	}, vectorSpec, vectorSpec)
}

// turnOfSum is the body of a loop that adds to what stays what it makes of that.
func turnOfSum(g *ir.Graph) *ir.Graph {
	return g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		p := ops.Mul(ops.Tanh(in[0]), in[1])
		ops.Accumulate(in[1], p)
		return []*ir.Tensor{ops.Mul(p, ops.Tanh(in[1]))}
	}, vectorSpec, vectorSpec)
}

// TestInPlaceGradients holds the gradient of each form against differences: in a graph, through a call of it, and in a
// loop.
func TestInPlaceGradients(t *testing.T) {
	x := []*tensor.Tensor{vectorOf(0.5, -0.75, 0.9), vectorOf(0.6, 0.75, -0.5)}
	for _, f := range inPlaceForms {
		t.Run(f.name, func(t *testing.T) {
			build := func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{f.build(g, in[0], in[1])} }
			irtest.CheckGradient(t, "graph", x, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
				return build(g, in)[0]
			})
			irtest.CheckGradient(t, "call", x, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
				u := ops.Mul(in[0], in[1])
				y := g.Call(g.Program().CreateGraph(build, vectorSpec, vectorSpec), in[0], u)[0]
				return ops.Mul(y, u)
			})
			irtest.CheckGradient(t, "loop", x, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
				body := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
					return []*ir.Tensor{ops.Tanh(f.build(g, in[0], in[1]))}
				}, vectorSpec, vectorSpec)
				return g.Repeat(body, 2, in[0], in[1])[0]
			})
		})
	}
}

func vectorOf(v ...float64) *tensor.Tensor {
	x, _ := tensor.FromSlice(v, len(v))
	return x
}

// TestNoInPlaceGradient has what changes a tensor or an entry and has no gradient: the error names the change and what
// reads it, with their lines.
func TestNoInPlaceGradient(t *testing.T) {
	store := func(g *ir.Graph, b *remote.Buffer) *ir.Graph {
		return g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			remote.Store(in[0], b, 0)
			return nil
		}, vectorSpec)
	}
	for _, c := range []struct {
		name, want string
		build      pair
	}{
		{"an optimiser", "sgd at inplace_test.go:* in graph *: autodiff: the operation has no gradient, and what it " +
			"changes, %*, is read by mul at inplace_test.go:*", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
			ops.SGD{}.Update(x, nil, y, g.Constant(tensor.Scalar(0.5)))
			return ops.Mul(x, y)
		}},
		{"an optimiser, returned", "sgd at inplace_test.go:* autodiff: the operation has no gradient, and what it " +
			"changes, %*, is read by who calls graph *, built at inplace_test.go:*, of which it is an output",
			func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
				ops.SGD{}.Update(x, nil, y, g.Constant(tensor.Scalar(0.5)))
				return x
			}},
		{"an optimiser in a call that modifies", "sgd at inplace_test.go:* autodiff: the operation has no gradient, " +
			"and what it changes, %*, is read by mul at inplace_test.go:*", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
			f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				ops.SGD{}.Update(in[0], nil, in[1], g.Constant(tensor.Scalar(0.5)))
				return nil
			}, vectorSpec, vectorSpec)
			g.CallWithInfo(f, nil, x, y).SetParentInputModified(x)
			return ops.Mul(x, y)
		}},
		{"an optimiser in a loop", "sgd at inplace_test.go:* autodiff: the operation has no gradient, and what it " +
			"changes, %*, is read by repeat at inplace_test.go:*", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
			f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				p := ops.Mul(in[0], in[1])
				ops.SGD{}.Update(in[1], nil, in[0], g.Constant(tensor.Scalar(0.5)))
				return []*ir.Tensor{p}
			}, vectorSpec, vectorSpec)
			return g.Repeat(f, 2, x, y)[0]
		}},
		{"a store beside", "wait at inplace_test.go:* autodiff: what is started beside the replica has no gradient; * " +
			"is read by remote load at inplace_test.go:*", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
			b := remote.NewBuffer(g.Program(), vectorSpec)
			g.Start(store(g, b), x).Wait()
			return remote.Load(g, b, 0)
		}},
		{"a load beside", "wait at inplace_test.go:* autodiff: what is started beside the replica has no gradient",
			func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
				b := remote.NewBuffer(g.Program(), vectorSpec)
				remote.Store(x, b, 0)
				return remote.Prefetch(g, b, 0).Wait()
			}},
	} {
		p := ir.New(1)
		ir.Autodiff(p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{c.build(g, in[0], in[1])}
		}, vectorSpec, vectorSpec))
		if err := p.Err(); err == nil || !inOrder(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}

// TestChangedAfterTheForwardCall changes in place, after a graph is called, what its gradient is computed with: By
// gives that as it was, and what changes after By is an error.
func TestChangedAfterTheForwardCall(t *testing.T) {
	square := func(p *ir.Program) *ir.Graph {
		return p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.Mul(in[0], in[0])}
		}, f32())
	}
	type build = func(p *ir.Program, m *ir.Graph, f *ir.Graph, info *ir.GradInfo, x *ir.Tensor) []*ir.Tensor
	for _, c := range []struct {
		name  string
		build build
		want  []float32
	}{
		{"before By", func(p *ir.Program, m *ir.Graph, f *ir.Graph, info *ir.GradInfo, x *ir.Tensor) []*ir.Tensor {
			fwd := m.CallWithInfo(f, nil, x)
			ops.Accumulate(x, number(m, 10))
			by := info.By(fwd)
			by[info.Grads[0]] = number(m, 1)
			return append(m.CallWithInfo(info.Graph, by).Outputs(), x)
		}, []float32{6, 13}},
		{"after By, and asked again", func(p *ir.Program, m *ir.Graph, f *ir.Graph, info *ir.GradInfo,
			x *ir.Tensor) []*ir.Tensor {
			fwd := m.CallWithInfo(f, nil, x)
			info.By(fwd)
			ops.Accumulate(x, number(m, 10))
			by := info.By(fwd)
			ops.Accumulate(x, number(m, 100))
			by[info.Grads[0]] = number(m, 1)
			return append(m.CallWithInfo(info.Graph, by).Outputs(), x)
		}, []float32{6, 113}},
		{"what By has given", func(p *ir.Program, m *ir.Graph, f *ir.Graph, info *ir.GradInfo, x *ir.Tensor) []*ir.Tensor {
			fwd := m.CallWithInfo(f, nil, x)
			ops.Accumulate(x, number(m, 10))
			for _, t := range info.By(fwd) {
				ops.Accumulate(ops.Accumulate(t, number(m, 100)), number(m, 1000))
			}
			by := info.By(fwd)
			by[info.Grads[0]] = number(m, 1)
			return append(m.CallWithInfo(info.Graph, by).Outputs(), x)
		}, []float32{6, 13}},
		{"by the call itself", func(p *ir.Program, m *ir.Graph, _ *ir.Graph, _ *ir.GradInfo,
			x *ir.Tensor) []*ir.Tensor {
			f := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				y := ops.Mul(in[0], in[0])
				ops.Accumulate(in[0], y)
				return []*ir.Tensor{y}
			}, f32())
			fwd := m.CallWithInfo(f, nil, x)
			fwd.SetParentInputModified(x)
			info := ir.Autodiff(f)
			by := info.By(fwd)
			by[info.Grads[0]] = number(m, 1)
			return append(m.CallWithInfo(info.Graph, by).Outputs(), x)
		}, []float32{6, 12}},
		{"an output", func(p *ir.Program, m *ir.Graph, _ *ir.Graph, _ *ir.GradInfo,
			x *ir.Tensor) []*ir.Tensor {
			f := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{ops.Exp(in[0])}
			}, f32())
			fwd := m.CallWithInfo(f, nil, ops.MulScalar(x, 0))
			ops.Accumulate(fwd.Outputs()[0], number(m, 10))
			info := ir.Autodiff(f)
			by := info.By(fwd)
			by[info.Grads[0]] = number(m, 2)
			return append(m.CallWithInfo(info.Graph, by).Outputs(), fwd.Outputs()[0])
		}, []float32{2, 11}},
		{"two calls with one tensor", func(p *ir.Program, m *ir.Graph, f *ir.Graph, info *ir.GradInfo,
			x *ir.Tensor) []*ir.Tensor {
			first := m.CallWithInfo(f, nil, x)
			by := info.By(first)
			by[info.Grads[0]] = number(m, 1)
			out := m.CallWithInfo(info.Graph, by).Outputs()
			ops.Accumulate(x, number(m, 10))
			by = info.By(m.CallWithInfo(f, nil, x))
			ops.Accumulate(x, number(m, 100))
			by[info.Grads[0]] = number(m, 1)
			return append(out, m.CallWithInfo(info.Graph, by).Outputs()...)
		}, []float32{6, 26}},
	} {
		got := result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
			f := square(p)
			return c.build(p, m, f, ir.Autodiff(f), ops.AddScalar(number(m, 3), 0))
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name, want string
		build      func(p *ir.Program, m *ir.Graph, fwd *ir.CallInfo, x *ir.Tensor)
	}{
		{"after By", "call at inplace_test.go:* accumulate at inplace_test.go:* changes %* in place after the call of " +
			"graph *: ask GradInfo.By after the change", func(p *ir.Program, m *ir.Graph, fwd *ir.CallInfo, x *ir.Tensor) {
			info := ir.Autodiff(fwd.CalledGraph())
			by := info.By(fwd)
			ops.Accumulate(x, number(m, 10))
			by[info.Grads[0]] = number(m, 1)
			m.CallWithInfo(info.Graph, by)
		}},
		{"By of a loop", "repeat at inplace_test.go:* the gradient of graph * is that of one turn",
			func(p *ir.Program, m *ir.Graph, fwd *ir.CallInfo, x *ir.Tensor) {
				ir.Autodiff(fwd.CalledGraph()).By(m.RepeatWithInfo(fwd.CalledGraph(), 2, nil, x))
			}},
		{"said to be modified too late", "call at inplace_test.go:* reads %* as it is without this: say it before",
			func(p *ir.Program, m *ir.Graph, fwd *ir.CallInfo, x *ir.Tensor) {
				info := ir.Autodiff(fwd.CalledGraph())
				by := info.By(fwd)
				by[info.Grads[0]] = number(m, 1)
				m.CallWithInfo(info.Graph, by)
				fwd.SetParentInputModified(x)
			}},
		{"said to be modified after the gradient", "the gradient of the graph has been built",
			func(p *ir.Program, m *ir.Graph, fwd *ir.CallInfo, x *ir.Tensor) {
				var inner *ir.CallInfo
				ir.Autodiff(p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
					inner = g.CallWithInfo(fwd.CalledGraph(), nil, in[0])
					return inner.Outputs()
				}, f32()))
				inner.SetParentInputModified(fwd.CalledGraph().Inputs()[0])
			}},
	} {
		p := ir.New(1)
		x := ops.AddScalar(number(p.Main(), 3), 0)
		c.build(p, p.Main(), p.Main().CallWithInfo(square(p), nil, x), x)
		if err := p.Err(); err == nil || !inOrder(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}

// TestKeptOnlyWhereNeeded has a call without a gradient make no copies of what a gradient elsewhere needs.
func TestKeptOnlyWhereNeeded(t *testing.T) {
	steps := func(gradient bool) int {
		p := ir.New(1)
		m := p.Main()
		f := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			u := ops.Tanh(in[0])
			y := ops.Mul(u, in[0])
			ops.Accumulate(u, y)
			return []*ir.Tensor{u}
		}, f32())
		if gradient {
			ir.Autodiff(f)
			if text := f.String(); strings.Count(text, "= keep(") != 1 {
				t.Errorf("no copy:\n%v", text)
			}
		}
		m.HostStore(p.DeviceToHost("out", f32()), m.Call(f, number(m, 1))[0])
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		return len(s.Report().Steps)
	}
	if with, without := steps(true), steps(false); with != without {
		t.Errorf("%d steps, and %d where nobody has asked for a gradient", with, without)
	}
}

// TestGradientOfScaledAddIn16Bits has factors that a float16 does not have, and a ScaledAdd of 16 bits takes.
func TestGradientOfScaledAddIn16Bits(t *testing.T) {
	for _, factor := range []float64{0x1p-30, 1 + 0x1p-13, 1e30, -3} {
		got := result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
			half := ir.Spec{DType: tensor.F16}
			f := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				acc := ops.Cast(number(g, 0), tensor.F16)
				ops.ScaledAdd(acc, in[0], factor)
				return []*ir.Tensor{acc}
			}, half)
			one := ops.Cast(number(m, 1.5*0x1p13), tensor.F16)
			call := m.CallWithInfo(f, nil, one)
			info := ir.Autodiff(f)
			by := info.By(call)
			by[info.Grads[0]] = one
			grad := m.CallWithInfo(info.Graph, by).Outputs()[0]
			return []*ir.Tensor{ops.Cast(call.Outputs()[0], tensor.F32), ops.Cast(grad, tensor.F32)}
		})
		if got[0] != got[1] {
			t.Errorf("factor %v: the gradient %v, want what is added, %v", factor, got[1], got[0])
		}
	}
}
