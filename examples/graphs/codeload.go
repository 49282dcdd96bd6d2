package main

import (
	"context"
	"errors"
	"slices"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/show"
	"gogcl.dev/tensor"
)

// expensive stands for a graph with much code. It returns what it is given.
func expensive(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.Transpose(ops.Transpose(in[0]))}
}

// codeLoading says when the code of a graph is to be in memory: from a load of it to the last call before the next
// load. It changes no result. Only in a sequence does the load come before the calls, to which it gives no data.
func codeLoading(ctx context.Context, page *page) error {
	p := ir.New(1)
	main := p.Main()
	in, out := p.HostToDevice("in", f32(2, 2)), p.DeviceToHost("out", f32(2, 2))
	g := p.CreateGraph(expensive, f32(2, 2))
	main.InSequence(func() {
		x := main.HostLoad(in)
		x = ops.AddScalar(x, 1) // nothing of g is live yet
		main.RemoteCodeLoad(g, "executable")
		x = main.Call(g, x)[0] // live
		x = ops.AddScalar(x, 1)
		x = main.Call(g, x)[0] // live until here
		main.HostStore(out, x)
	})
	s, err := ir.NewSession(p)
	if err != nil {
		return err
	}
	report := show.Code(p)
	got, err := s.Run(ctx, map[*ir.Stream]*tensor.Tensor{in: numbers(2, 2)})
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	page.show(report.String())
	page.compare("loads seen", report.Loads, "[expensive]")
	var live []bool // expensive, step by step of the main graph
	for _, step := range report.Steps {
		if step.Graph == "main" {
			live = append(live, slices.Contains(step.Live, "expensive"))
		}
	}
	page.compare("live", live, "[false false true true true true false]")
	page.compare("x + 2", got[out], "float32(2, 2)[[3 4] [5 6]]")
	return nil
}

// loaderOf returns the function of a graph that loads the code of another, which is fixed when the graph is made.
func loaderOf(other *ir.Graph) func(*ir.Graph, []*ir.Tensor) []*ir.Tensor {
	return func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
		g.RemoteCodeLoad(other, "executable")
		return nil
	}
}

// nestedLoading has graphs that load graphs, and graphs that load those: the report sees through the calls.
func nestedLoading(_ context.Context, page *page) error {
	one, err := loadsSeen(func(main, g1, g2, _, _ *ir.Graph, x *ir.Tensor) {
		main.RemoteCodeLoad(g1, "executable")
		main.Call(g2) // loads g1 again
		main.Call(g1, x)
	})
	if err != nil {
		return err
	}
	page.compare("g1, by main and by g2", one, "[g1 g1]")
	two, err := loadsSeen(func(main, _, _, g3, g4 *ir.Graph, _ *ir.Tensor) {
		main.RemoteCodeLoad(g3, "executable")
		main.Call(g3) // loads g1
		main.RemoteCodeLoad(g4, "executable")
		main.Call(g4) // loads g2
	})
	if err != nil {
		return err
	}
	page.compare("loaders that are loaded", two, "[g3 g1 g4 g2]")
	return nil
}

// loadsSeen builds a program with g1, which computes, g2 and g3, which load g1, and g4, which loads g2; and returns
// which loads the report has seen.
func loadsSeen(build func(main, g1, g2, g3, g4 *ir.Graph, x *ir.Tensor)) ([]string, error) {
	p := ir.New(1)
	main := p.Main()
	x := p.Variable(ones(2, 2), ir.VariableName("x")).Tensor
	g1 := p.CreateGraph(expensive, x)
	g2, g3 := p.CreateGraph(loaderOf(g1)), p.CreateGraph(loaderOf(g1))
	g4 := p.CreateGraph(loaderOf(g2))
	main.InSequence(func() { build(main, g1, g2, g3, g4, x) })

	s, err := ir.NewSession(p)
	if err != nil {
		return nil, err
	}
	// A graph has the name of its function, with a number from the second on.
	short := map[string]string{g1.Name(): "g1", g2.Name(): "g2", g3.Name(): "g3", g4.Name(): "g4"}
	var seen []string
	for _, name := range show.Code(p).Loads {
		seen = append(seen, short[name])
	}
	return seen, s.Close()
}
