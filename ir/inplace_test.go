package ir_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
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
		ir.Accumulate(acc, ir.Mul(x, y))
		return ir.Mul(acc, acc)
	}},
	{"accumulate twice, by both handles", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := zerosOf(g)
		h := ir.Accumulate(acc, x)
		ir.Accumulate(h, ir.Mul(acc, y))
		return ir.Mul(h, acc)
	}},
	{"accumulate itself", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ir.Mul(x, y)
		ir.Accumulate(u, u)
		return u
	}},
	{"returned by the old handle", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := zerosOf(g)
		ir.Accumulate(acc, ir.Mul(x, y))
		return acc
	}},
	{"an input", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ir.Mul(x, y)
		ir.Accumulate(x, y)
		return ir.Mul(u, x)
	}},
	{"copy into", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := zerosOf(g)
		ir.CopyInto(acc, ir.Mul(x, y))
		return ir.Mul(acc, x)
	}},
	{"copy into, which was read before", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ir.Tanh(x)
		before := ir.Mul(u, y)
		ir.CopyInto(u, y)
		return ir.Add(ir.Mul(u, x), before)
	}},
	{"copy into itself", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ir.Mul(x, y)
		ir.CopyInto(u, u)
		return u
	}},
	{"scaled add", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ir.MulScalar(x, 2)
		ir.ScaledAdd(u, ir.Mul(x, y), -3)
		return u
	}},
	{"needed as it was", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u, v := ir.Tanh(x), ir.Tanh(y)
		p := ir.Mul(u, v)
		ir.Accumulate(u, v)
		q := ir.Mul(u, p)
		ir.CopyInto(v, q)
		ir.Accumulate(u, v)
		return ir.Mul(u, v)
	}},
	{"in sequence", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		u := ir.Tanh(x)
		var p, q *ir.Tensor
		g.InSequence(func() {
			p = ir.Mul(u, y)
			g.OutOfSequence(func() {
				ir.Accumulate(u, y)
				q = ir.Mul(u, u)
			})
			ir.CopyInto(u, q)
		})
		return ir.Mul(ir.Add(p, q), u)
	}},
	{"modified by a call", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ir.Mul(x, y)
		p := ir.Mul(acc, acc)
		g.CallWithInfo(addProduct(g, 0), nil, acc, x).SetParentInputModified(acc)
		return ir.Add(ir.Mul(acc, y), p)
	}},
	{"modified by a call in a call", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		inner := addProduct(g, 0)
		outer := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			p := ir.Mul(in[1], in[0])
			g.CallWithInfo(inner, nil, in[1], in[0]).SetParentInputModified(in[1])
			return []*ir.Tensor{ir.Mul(p, in[1])}
		}, vectorSpec, vectorSpec)
		acc := ir.Mul(x, y)
		info := g.CallWithInfo(outer, nil, x, acc)
		info.SetParentInputModified(outer.Inputs()[1])
		return ir.Mul(acc, info.Outputs()[0])
	}},
	{"changed by a call by value", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ir.Mul(x, y)
		return ir.Mul(g.Call(addProduct(g, 1), acc, x)[0], acc)
	}},
	{"one call modifies, another of the same graph does not", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc, f := ir.Mul(x, y), addProduct(g, 1)
		p := g.Call(f, acc, x)[0]
		g.CallWithInfo(f, nil, acc, y).SetParentInputModified(acc)
		return ir.Mul(p, acc)
	}},
	{"one tensor for two inputs, one modified", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ir.Mul(x, y)
		f := addProduct(g, 0)
		g.CallWithInfo(f, nil, acc, acc).SetParentInputModified(f.Inputs()[0])
		return acc
	}},
	{"said to be modified and not changed", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ir.Mul(x, y)
		f := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ir.Mul(in[0], in[0])}
		}, vectorSpec)
		info := g.CallWithInfo(f, nil, acc)
		info.SetParentInputModified(acc)
		return ir.Mul(acc, info.Outputs()[0])
	}},
	{"a loop modifies what stays", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ir.Mul(x, y)
		info := g.RepeatWithInfo(turnOfSum(g), 3, nil, x, acc)
		info.SetParentInputModified(acc)
		return ir.Mul(info.Outputs()[0], acc)
	}},
	{"a loop changes what stays for itself", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		acc := ir.Mul(x, y)
		return ir.Mul(g.Repeat(turnOfSum(g), 3, x, acc)[0], acc)
	}},
	{"a loop changes what it carries", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		f := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			p := ir.Mul(ir.Tanh(in[0]), in[1])
			ir.Accumulate(in[0], p)
			return []*ir.Tensor{in[0]}
		}, vectorSpec, vectorSpec)
		return g.Repeat(f, 3, x, y)[0]
	}},
	{"a loop in a loop", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		inner := turnOfSum(g)
		f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			info := g.RepeatWithInfo(inner, 2, nil, in[0], in[1])
			info.SetParentInputModified(in[1])
			return []*ir.Tensor{ir.Mul(info.Outputs()[0], ir.Tanh(in[1]))}
		}, vectorSpec, vectorSpec)
		info := g.RepeatWithInfo(f, 2, nil, x, y)
		info.SetParentInputModified(y)
		return ir.Add(info.Outputs()[0], y)
	}},
	{"a statistic that a loop keeps and nobody reads", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			ir.SGD{}.Update(in[1], nil, in[0], g.Constant(tensor.Scalar(0.5)))
			return []*ir.Tensor{ir.Mul(ir.Tanh(in[0]), in[2])}
		}, vectorSpec, vectorSpec, vectorSpec)
		return g.Repeat(f, 2, x, zerosOf(g), y)[0]
	}},
	{"stored and loaded", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec)
		remote.Store(ir.Mul(x, x), b, 0)
		return ir.Mul(remote.Load(g, b, 0), y)
	}},
	{"several stores and loads of an entry", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec)
		remote.Store(x, b, 0)
		first := remote.Load(g, b, 0)
		remote.Store(ir.Mul(first, y), b, 0)
		second := ir.Tanh(y)
		remote.LoadInto(second, b, 0)
		return ir.Add(ir.Mul(first, remote.Load(g, b, 0)), second)
	}},
	{"stored in one entry, loaded from another", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec, 2)
		remote.Store(ir.Mul(x, x), b, 0)
		return ir.Add(ir.Add(remote.Load(g, b, 1), y), x)
	}},
	{"an entry that is computed", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec, 3)
		at := func(n float64) *ir.Tensor { return ir.Cast(g.Constant(tensor.Scalar(n)), tensor.I32) }
		remote.Store(x, b, 2)
		remote.StoreAt(ir.Mul(x, y), b, at(1))
		u := ir.Mul(remote.Load(g, b, 1), remote.LoadAt(b, at(2)))
		remote.StoreAt(y, b, at(2))
		return ir.Add(ir.Mul(u, remote.Load(g, b, 2)), remote.LoadAt(b, at(0)))
	}},
	{"a number of an entry that is changed later", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec, 3)
		at := ir.Cast(g.Constant(tensor.Scalar(1.0)), tensor.I32)
		remote.StoreAt(ir.Mul(x, y), b, at)
		ir.Accumulate(at, g.Constant(tensor.Scalar(int32(1))))
		remote.StoreAt(x, b, at)
		return ir.Mul(remote.Load(g, b, 1), remote.LoadAt(b, at))
	}},
	{"stored by a call and loaded by another", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec)
		g.Call(g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			remote.Store(ir.Mul(in[0], in[0]), b, 0)
			return nil
		}, vectorSpec), x)
		return ir.Mul(y, g.Call(g.Program().CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{remote.Load(g, b, 0)}
		}))[0])
	}},
	{"a loop that stores and loads", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b := remote.NewBuffer(g.Program(), vectorSpec)
		remote.Store(y, b, 0)
		f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			kept := ir.Mul(ir.Tanh(remote.Load(g, b, 0)), in[0])
			remote.Store(kept, b, 0)
			return []*ir.Tensor{ir.Mul(ir.Tanh(in[0]), kept)}
		}, vectorSpec)
		return ir.Add(g.Repeat(f, 3, x)[0], remote.Load(g, b, 0))
	}},
	{"a loop that stores by its turn and one that loads", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
		b, turn := remote.NewBuffer(g.Program(), vectorSpec, 3), ir.Spec{DType: tensor.I32}
		put := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			remote.StoreAt(in[0], b, in[1])
			return []*ir.Tensor{ir.Mul(ir.Tanh(in[0]), in[2]), ir.AddScalar(in[1], 1)}
		}, vectorSpec, turn, vectorSpec)
		get := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ir.Mul(in[0], remote.LoadAt(b, in[1])), ir.AddScalar(in[1], 1)}
		}, vectorSpec, turn)
		zero := g.Constant(tensor.Scalar(int32(0)))
		return g.Repeat(get, 3, g.Repeat(put, 3, x, zero, y)[0], zero)[0]
	}},
}

// inOrder reports whether a text has the parts of another between its stars, in their order.
func inOrder(text, parts string) bool {
	for _, part := range strings.Split(parts, "*") {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return true
}

func zerosOf(g *ir.Graph) *ir.Tensor {
	return ir.Expand(g.Constant(tensor.Scalar(0.0)), vectorLength)
}

// addProduct is a graph that adds to its first input, in place, the product of that and its second, and returns so many
// tensors.
func addProduct(g *ir.Graph, outputs int) *ir.Graph {
	return g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		ir.Accumulate(in[0], ir.Mul(in[0], in[1]))
		return []*ir.Tensor{ir.Tanh(in[0])}[:outputs]
	}, vectorSpec, vectorSpec)
}

// turnOfSum is the body of a loop that adds to what stays what it makes of that.
func turnOfSum(g *ir.Graph) *ir.Graph {
	return g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		p := ir.Mul(ir.Tanh(in[0]), in[1])
		ir.Accumulate(in[1], p)
		return []*ir.Tensor{ir.Mul(p, ir.Tanh(in[1]))}
	}, vectorSpec, vectorSpec)
}

// TestInPlaceGradients holds the gradient of each form against differences: in a graph, through a call of it, and in a
// loop.
func TestInPlaceGradients(t *testing.T) {
	x := []*tensor.Tensor{vectorOf(0.5, -0.75, 0.9), vectorOf(0.6, 0.75, -0.5)}
	for _, f := range inPlaceForms {
		t.Run(f.name, func(t *testing.T) {
			build := func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{f.build(g, in[0], in[1])} }
			checkGradient(t, "graph", x, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor { return build(g, in)[0] })
			checkGradient(t, "call", x, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
				u := ir.Mul(in[0], in[1])
				y := g.Call(g.Program().CreateGraph(build, vectorSpec, vectorSpec), in[0], u)[0]
				return ir.Mul(y, u)
			})
			checkGradient(t, "loop", x, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
				body := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
					return []*ir.Tensor{ir.Tanh(f.build(g, in[0], in[1]))}
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
			ir.SGD{}.Update(x, nil, y, g.Constant(tensor.Scalar(0.5)))
			return ir.Mul(x, y)
		}},
		{"an optimiser, returned", "sgd at inplace_test.go:* autodiff: the operation has no gradient, and what it " +
			"changes, %*, is read by who calls graph *, built at inplace_test.go:*, of which it is an output",
			func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
				ir.SGD{}.Update(x, nil, y, g.Constant(tensor.Scalar(0.5)))
				return x
			}},
		{"an optimiser in a call that modifies", "sgd at inplace_test.go:* autodiff: the operation has no gradient, " +
			"and what it changes, %*, is read by mul at inplace_test.go:*", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
			f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				ir.SGD{}.Update(in[0], nil, in[1], g.Constant(tensor.Scalar(0.5)))
				return nil
			}, vectorSpec, vectorSpec)
			g.CallWithInfo(f, nil, x, y).SetParentInputModified(x)
			return ir.Mul(x, y)
		}},
		{"an optimiser in a loop", "sgd at inplace_test.go:* autodiff: the operation has no gradient, and what it " +
			"changes, %*, is read by repeat at inplace_test.go:*", func(g *ir.Graph, x, y *ir.Tensor) *ir.Tensor {
			f := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				p := ir.Mul(in[0], in[1])
				ir.SGD{}.Update(in[1], nil, in[0], g.Constant(tensor.Scalar(0.5)))
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
			return []*ir.Tensor{ir.Mul(in[0], in[0])}
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
			ir.Accumulate(x, number(m, 10))
			by := info.By(fwd)
			by[info.Grads[0]] = number(m, 1)
			return append(m.CallWithInfo(info.Graph, by).Outputs(), x)
		}, []float32{6, 13}},
		{"after By, and asked again", func(p *ir.Program, m *ir.Graph, f *ir.Graph, info *ir.GradInfo,
			x *ir.Tensor) []*ir.Tensor {
			fwd := m.CallWithInfo(f, nil, x)
			info.By(fwd)
			ir.Accumulate(x, number(m, 10))
			by := info.By(fwd)
			ir.Accumulate(x, number(m, 100))
			by[info.Grads[0]] = number(m, 1)
			return append(m.CallWithInfo(info.Graph, by).Outputs(), x)
		}, []float32{6, 113}},
		{"what By has given", func(p *ir.Program, m *ir.Graph, f *ir.Graph, info *ir.GradInfo, x *ir.Tensor) []*ir.Tensor {
			fwd := m.CallWithInfo(f, nil, x)
			ir.Accumulate(x, number(m, 10))
			for _, t := range info.By(fwd) {
				ir.Accumulate(ir.Accumulate(t, number(m, 100)), number(m, 1000))
			}
			by := info.By(fwd)
			by[info.Grads[0]] = number(m, 1)
			return append(m.CallWithInfo(info.Graph, by).Outputs(), x)
		}, []float32{6, 13}},
		{"by the call itself", func(p *ir.Program, m *ir.Graph, _ *ir.Graph, _ *ir.GradInfo,
			x *ir.Tensor) []*ir.Tensor {
			f := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				y := ir.Mul(in[0], in[0])
				ir.Accumulate(in[0], y)
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
				return []*ir.Tensor{ir.Exp(in[0])}
			}, f32())
			fwd := m.CallWithInfo(f, nil, ir.MulScalar(x, 0))
			ir.Accumulate(fwd.Outputs()[0], number(m, 10))
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
			ir.Accumulate(x, number(m, 10))
			by = info.By(m.CallWithInfo(f, nil, x))
			ir.Accumulate(x, number(m, 100))
			by[info.Grads[0]] = number(m, 1)
			return append(out, m.CallWithInfo(info.Graph, by).Outputs()...)
		}, []float32{6, 26}},
	} {
		got := result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
			f := square(p)
			return c.build(p, m, f, ir.Autodiff(f), ir.AddScalar(number(m, 3), 0))
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
			ir.Accumulate(x, number(m, 10))
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
		x := ir.AddScalar(number(p.Main(), 3), 0)
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
			u := ir.Tanh(in[0])
			y := ir.Mul(u, in[0])
			ir.Accumulate(u, y)
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
				acc := ir.Cast(number(g, 0), tensor.F16)
				ir.ScaledAdd(acc, in[0], factor)
				return []*ir.Tensor{acc}
			}, half)
			one := ir.Cast(number(m, 1.5*0x1p13), tensor.F16)
			call := m.CallWithInfo(f, nil, one)
			info := ir.Autodiff(f)
			by := info.By(call)
			by[info.Grads[0]] = one
			grad := m.CallWithInfo(info.Graph, by).Outputs()[0]
			return []*ir.Tensor{ir.Cast(call.Outputs()[0], tensor.F32), ir.Cast(grad, tensor.F32)}
		})
		if got[0] != got[1] {
			t.Errorf("factor %v: the gradient %v, want what is added, %v", factor, got[1], got[0])
		}
	}
}
