package ir

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

// twiceOp is a control of this test's own: it gives its input to a graph, and what comes out to the same graph again.
// All that the package needs to know of it stands here.
type twiceOp struct {
	replaced
	graph *Graph
}

func (o *twiceOp) Name() string                    { return "twice" }
func (o *twiceOp) String() string                  { return "twice " + plainName(o.graph.name) }
func (o *twiceOp) Infer(in []Spec) ([]Spec, error) { return in, nil }
func (o *twiceOp) runs() []*Graph                  { return []*Graph{o.graph} }

func (o *twiceOp) lower(l *lowering, n *node, in []*location, where map[*Tensor]*location) (all []*step, err error) {
	for range 2 {
		inner, steps := l.enter(n, o.graph, 0, in, 0)
		body, err := l.expand(o.graph, inner)
		if err != nil {
			return nil, err
		}
		all = append(append(all, steps...), body...)
		in = []*location{inner[o.graph.outputs[0].memory()]}
	}
	where[n.out[0]] = l.at(n.out[0])
	return append(all, &step{node: n, from: in[0], to: where[n.out[0]]}), nil
}

func (o *twiceOp) goBack(b *back, n *node) error {
	inner, x := b.differ.graph(o.graph, nil, nil), b.flow.in[n][0]
	first := b.graph.CallWithInfo(o.graph, nil, b.need(x))
	second := b.graph.CallWithInfo(o.graph, nil, first.Outputs()...)
	grad := b.grad(made(n.out[0]))
	for _, call := range []*CallInfo{second, first} {
		by := inner.By(call)
		by[inner.Grads[0]] = grad
		grad = b.graph.CallWithInfo(inner.Graph, by).Outputs()[0]
	}
	b.add(x, grad, n)
	return nil
}

// twice adds the control to the graph of a tensor.
func twice(called *Graph, x *Tensor) *Tensor { return Apply1(&twiceOp{graph: called}, nil, x) }

// timesOp multiplies numbers of float64.
type timesOp struct{}

func (timesOp) Name() string                    { return "times" }
func (timesOp) Infer(in []Spec) ([]Spec, error) { return in[:1], nil }

func (timesOp) Bind(m *Memory) (func() error, error) {
	x, err1 := tensor.Of[float64](m.In[0])
	y, err2 := tensor.Of[float64](m.In[1])
	d, err3 := tensor.Of[float64](m.Out[0])
	return func() error {
		for i := range d {
			d[i] = x[i] * y[i]
		}
		return nil
	}, errors.Join(err1, err2, err3)
}

func (timesOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Apply1(timesOp{}, nil, b.Grad(0), b.In(1)), Apply1(timesOp{}, nil, b.Grad(0), b.In(0))}
}

// TestAnotherControl: a control that the package does not know is run, differentiated in a loop and in a branch,
// printed, planned and looked at.
func TestAnotherControl(t *testing.T) {
	p := New(1)
	spec := Spec{DType: tensor.F64, Shape: tensor.Shape{2}}
	fourth := p.CreateGraph(func(_ *Graph, in []*Tensor) []*Tensor { // (x^2)^2
		square := p.CreateGraph(func(_ *Graph, in []*Tensor) []*Tensor {
			return []*Tensor{Apply1(timesOp{}, nil, in[0], in[0])}
		}, spec)
		return []*Tensor{twice(square.Named("square"), in[0])}
	}, spec).Named("fourth")
	outer := p.CreateGraph(func(g *Graph, in []*Tensor) []*Tensor { // x^4 of a branch, twice in a loop: x^16
		turn := p.CreateGraph(func(g *Graph, in []*Tensor) []*Tensor {
			b := Branch{Graph: fourth, In: in}
			return g.If(g.Constant(tensor.Scalar(true)), b, b)
		}, spec)
		return g.Repeat(turn, 2, in[0])
	}, spec)
	info := Autodiff(outer)
	main := p.Main()
	x, err := tensor.FromSlice([]float64{1, -1.5}, 2)
	if err != nil {
		t.Fatal(err)
	}
	one, err := tensor.FromSlice([]float64{1, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	call := main.CallWithInfo(outer, nil, main.Constant(x))
	by := info.By(call)
	by[info.Grads[0]] = main.Constant(one)
	result, gradient := p.DeviceToHost("result", spec), p.DeviceToHost("gradient", spec)
	main.HostStore(result, call.Outputs()[0])
	main.HostStore(gradient, main.CallWithInfo(info.Graph, by).Outputs()[0])
	s, err := NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := s.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	power := func(x float64, n int) float64 {
		y := 1.0
		for range n {
			y *= x
		}
		return y
	}
	for stream, want := range map[*Stream][]float64{
		result: {1, power(-1.5, 16)}, gradient: {16, 16 * power(-1.5, 15)},
	} {
		if got, err := tensor.Of[float64](out[stream]); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: %v, %v, want %v", stream, got, err, want)
		}
	}
	checkPlan(t, 0, s)
	if text := p.String(); !strings.Contains(text, "= twice square(%") {
		t.Error(text)
	}
	for _, o := range fourth.Operations() {
		if o.String() != "twice square" || !slices.Equal(o.Calls(), []*Graph{p.Graphs()[2]}) {
			t.Errorf("%v calls %v", o, o.Calls())
		}
	}
}
