package main

import (
	"context"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// increment is a graph's function: it adds 1. What it is given stands for the graph's inputs; what it returns are the
// graph's outputs.
func increment(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.AddScalar(in[0], 1)}
}

// basic makes a graph and calls it from the main graph, between a load from the host and a store to it.
func basic(ctx context.Context, page *page) error {
	p := ir.New(1) // on one replica
	main := p.Main()
	in, out := p.HostToDevice("in", f32(2, 2)), p.DeviceToHost("out", f32(2, 2))

	x := main.HostLoad(in)
	g := p.CreateGraph(increment, x) // x says what the graph's input is like
	y := main.Call(g, x)[0]
	main.HostStore(out, y)

	got, err := runOnce(ctx, p, map[*ir.Stream]*tensor.Tensor{in: numbers(2, 2)})
	if err != nil {
		return err
	}
	page.compare("x + 1", got[out], "float32(2, 2)[[2 3] [4 5]]")
	return nil
}

// matMul is a graph's function whose graphs differ in the shape of w.
func matMul(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.MatMul(in[0], in[1])}
}

// twoGraphs makes two graphs of one function, since a graph's inputs have one shape each. With rows that sum to s, by a
// matrix of ones every column is s, and that by a vector of ones is 2s.
func twoGraphs(ctx context.Context, page *page) error {
	p := ir.New(1)
	main := p.Main()
	in := p.HostToDevice("in", f32(2, 2))
	out1, out2 := p.DeviceToHost("out1", f32(2, 2)), p.DeviceToHost("out2", f32(2))

	x := main.HostLoad(in)
	w1 := p.Variable(ones(2, 2), ir.VariableName("w1"))
	w2 := p.Variable(ones(2), ir.VariableName("w2"))
	byMatrix := p.CreateGraph(matMul, x, w1.Tensor)
	byVector := p.CreateGraph(matMul, x, w2.Tensor)

	columns := main.Call(byMatrix, x, w1.Tensor)[0]
	main.HostStore(out1, columns)
	main.HostStore(out2, main.Call(byVector, columns, w2.Tensor)[0])

	got, err := runOnce(ctx, p, map[*ir.Stream]*tensor.Tensor{in: numbers(2, 2)})
	if err != nil {
		return err
	}
	page.compare(byMatrix.Name(), got[out1], "float32(2, 2)[[3 3] [7 7]]")
	page.compare(byVector.Name(), got[out2], "float32(2,)[6 14]")
	return nil
}

// addOwn is a graph's function that makes another input, behind those it was given: for the weights of a layer, say.
func addOwn(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	value := g.Input("value", in[0].Spec())
	return []*ir.Tensor{ops.Add(in[0], value)}
}

// calledTwice calls one graph with two values of the input that it made.
func calledTwice(ctx context.Context, page *page) error {
	p := ir.New(1)
	main := p.Main()
	in, out := p.HostToDevice("in", f32(2, 2)), p.DeviceToHost("out", f32(2, 2))

	x := main.HostLoad(in)
	g := p.CreateGraph(addOwn, x)
	one := p.Variable(ones(2, 2), ir.VariableName("one"))
	two := main.Constant(filled(func(int) float32 { return 2 }, tensor.Shape{2, 2}))
	y := main.Call(g, x, one.Tensor)[0]
	main.HostStore(out, main.Call(g, y, two)[0])

	got, err := runOnce(ctx, p, map[*ir.Stream]*tensor.Tensor{in: numbers(2, 2)})
	if err != nil {
		return err
	}
	page.compare("x + 1 + 2", got[out], "float32(2, 2)[[4 5] [6 7]]")
	return nil
}
