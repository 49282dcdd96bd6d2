package ir_test

import (
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/show"
)

// twice is a program of graphs, each of which calls the one before two times. With all calls in their places it has
// 2^(graphs-1) operations and about as many calls.
func twice(graphs int, leaf func(g *ir.Graph, x *ir.Tensor) *ir.Tensor) (p *ir.Program, last *ir.Graph) {
	p = ir.New(1)
	last = p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		g.Named("g0")
		return []*ir.Tensor{leaf(g, in[0])}
	}, f32(2))
	for i := range graphs - 1 {
		called := last
		last = p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			g.Named(fmt.Sprint("g", i+1))
			return g.Call(called, g.Call(called, in[0])[0])
		}, f32(2))
	}
	return p, last
}

// loops is a program of loops within each other.
func loops(depth int) *ir.Program {
	p := ir.New(1)
	last := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{plusOne(g, in[0])}
	}, f32(2))
	for range depth {
		called := last
		last = p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return g.Repeat(called, 2, in...)
		}, f32(2))
	}
	runs(p, last)
	return p
}

func plusOne(_ *ir.Graph, x *ir.Tensor) *ir.Tensor { return ops.AddScalar(x, 1) }

// runs has the main graph call a graph.
func runs(p *ir.Program, g *ir.Graph) {
	m := p.Main()
	m.HostStore(p.DeviceToHost("out", f32(2)), m.Call(g, m.HostLoad(p.HostToDevice("in", f32(2))))[0])
}

// TestGraphsAreLookedAtOnce: what looks at a program comes to an end where to look at each call would not, in 2^60
// operations; and what would have memory for each is an error that names the calls.
func TestGraphsAreLookedAtOnce(t *testing.T) {
	const graphs = 60
	p, last := twice(graphs, func(g *ir.Graph, x *ir.Tensor) *ir.Tensor {
		ir.Apply(keyedOp{funcOp{"effect", func(*ir.Memory) error { return nil }}, "key"}, g)
		return plusOne(g, x)
	})
	m := p.Main()
	m.Start(last, m.Constant(f32s(t, []float32{1, 2}, 2))).Wait()
	runs(p, last)
	if text := p.String(); strings.Count(text, "call g") != 2*(graphs-1)+1 {
		t.Errorf("the program as text has %d calls:\n%s", strings.Count(text, "call g"), text)
	}
	s, err := ir.NewSession(p)
	if err == nil {
		s.Close()
	}
	for _, want := range []string{
		"ir: the program has 2^40 or more steps, with called graphs in the place of their calls, and a session takes at " +
			"most 10000000 (ir.WithMaxSteps): main calls g59 2 times, first at calls_test.go:",
		", which calls g58 2 times, first at calls_test.go:", ", which calls g48 2 times", ", which calls others",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}

	// The gradient of a loop asks whether its body can be done again.
	p, last = twice(graphs, plusOne)
	ir.Autodiff(p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return g.Repeat(last, 2, in...)
	}, f32(2)))
	if err := p.Err(); err != nil {
		t.Error(err)
	}

	s, err = ir.NewSession(loops(graphs))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r := show.Code(s.Program()); len(r.Steps) != graphs+4 || len(r.Steps[graphs+1].Live) != graphs+2 {
		t.Errorf("%d steps of the report on code, want %d\n%v", len(r.Steps), graphs+4, r)
	}
}

// TestMaxSteps: a session takes as many steps as the option says, and no more.
func TestMaxSteps(t *testing.T) {
	build := func() *ir.Program {
		p, last := twice(3, plusOne)
		runs(p, last)
		return p
	}
	const steps = 4 + 4 + 2 + 1 + 2 // additions, calls of g0, g1 and g2, a load and a store
	for _, c := range []struct {
		most int
		want string
	}{
		{steps, ""},
		{steps - 1, "the program has 13 steps, with called graphs in the place of their calls, and a session takes at most 12 " +
			"(ir.WithMaxSteps): main calls g2 at calls_test.go:"},
		{1, ", which calls g1 2 times, first at calls_test.go:"},
		{0, "ir: a session of at most 0 steps (WithMaxSteps), want 1 or more"},
		{-1, "want 1 or more"},
	} {
		s, err := ir.NewSession(build(), ir.WithMaxSteps(c.most))
		if err == nil {
			s.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("at most %d: %v, want %q", c.most, err, c.want)
		}
	}
	p := ir.New(1) // a call of what does nothing is a step too
	nothing := p.CreateGraph(func(*ir.Graph, []*ir.Tensor) []*ir.Tensor { return nil })
	p.Main().Call(nothing)
	p.Main().Call(nothing)
	if _, err := ir.NewSession(p, ir.WithMaxSteps(1)); err == nil {
		t.Error("two calls are one step")
	}
}

// TestMostKept: a gradient keeps as many tensors of what its graph calls as may be, and no more.
func TestMostKept(t *testing.T) {
	square := func(_ *ir.Graph, x *ir.Tensor) *ir.Tensor { return ops.Mul(x, x) }
	const graphs = 5
	const kept = 1 << (graphs - 1) // the input of each call of g0
	for _, c := range []struct {
		most int
		want []string
	}{
		{kept, nil},
		{kept - 1, []string{" in graph g4: autodiff: the gradient of g4 needs 16 tensors with those of each call, at most 15: " +
			"it calls g3, which calls g2 2 times, first at calls_test.go:", ", which calls g0 2 times, first at calls_test.go:"}},
		{kept/2 - 1, []string{" in graph g3: autodiff: the gradient of g3 needs 8 tensors with those of each call, at most 7: it calls g2, "}},
	} {
		p, last := twice(graphs, square)
		grads := ir.Autodiff(last, ir.MostKept(c.most))
		err := p.Err()
		if (err == nil) != (c.want == nil) {
			t.Errorf("at most %d: %v, want %q", c.most, err, c.want)
		}
		if err == nil && len(grads.Needs) != kept {
			t.Errorf("%d tensors are kept, want %d", len(grads.Needs), kept)
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("at most %d: %v, want %q", c.most, err, want)
			}
		}
	}
}

// TestMostKeptOfLoops: a loop that cannot be done again, since it tells the host something, keeps what its body needs.
func TestMostKeptOfLoops(t *testing.T) {
	build := func(most int) error {
		p := ir.New(1)
		out := p.DeviceToHost("out", f32(2))
		last := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			g.HostStore(out, in[0])
			return []*ir.Tensor{ops.Mul(in[0], in[0])}
		}, f32(2))
		for range 4 {
			body := last
			last = p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return g.Repeat(body, 2, g.Repeat(body, 2, in...)...)
			}, f32(2))
		}
		ir.Autodiff(last, ir.MostKept(most))
		return p.Err()
	}
	if err := build(16); err != nil {
		t.Error(err)
	}
	if err := build(15); err == nil || !strings.Contains(err.Error(), "tensors with those of each call, at most 15") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkCalls makes a session of 18 graphs, with the main one, each of which calls the one before two times.
func BenchmarkCalls(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		p, last := twice(17, plusOne)
		runs(p, last)
		s, err := ir.NewSession(p)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// BenchmarkCodeReport reports on the code of 14 nested loops.
func BenchmarkCodeReport(b *testing.B) {
	s, err := ir.NewSession(loops(14))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		show.Code(s.Program())
	}
}
