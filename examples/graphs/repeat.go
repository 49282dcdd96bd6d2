package main

import (
	"context"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
)

// add is the body of a loop: its output is the first input of the next turn, and the second input stays.
func add(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.Add(in[0], in[1])}
}

// loop calls a graph twice over: 1 + 1 + 1.
func loop(ctx context.Context, page *page) error {
	p := ir.New(1)
	main := p.Main()
	out := p.DeviceToHost("out", f32(2, 2))
	x := p.Variable(ones(2, 2), ir.VariableName("x"))
	value := p.Variable(ones(2, 2), ir.VariableName("value"))

	body := p.CreateGraph(add, x.Tensor, value.Tensor)
	main.HostStore(out, main.Repeat(body, 2, x.Tensor, value.Tensor)[0])

	got, err := runOnce(ctx, p, nil)
	if err != nil {
		return err
	}
	page.compare("twice", got[out], "float32(2, 2)[[3 3] [3 3]]")
	return nil
}

// linear is a module: a value whose method builds a graph, and keeps the inputs that it makes in its fields. Other
// arguments, here the number of outputs, are fields too.
type linear struct {
	outputs int
	W, b    *ir.Tensor
}

func (l *linear) build(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	x := in[0]
	l.W = g.Input("W", f32(x.Shape()[1], l.outputs))
	l.b = g.Input("b", f32(l.outputs))
	return []*ir.Tensor{ops.Add(ops.MatMul(x, l.W), l.b)}
}

// moduleLoop calls a layer of ones on ones: 1+1+1 = 3 after one turn, 3+3+1 = 7 after two. The module knows which of
// the graph's inputs is which, so that they can be given by name instead of by place.
func moduleLoop(ctx context.Context, page *page) error {
	for _, turn := range []struct {
		count int
		what  string
		want  string
	}{
		{1, "once", "float32(2, 2)[[3 3] [3 3]]"},
		{2, "twice", "float32(2, 2)[[7 7] [7 7]]"},
	} {
		p := ir.New(1)
		main := p.Main()
		out := p.DeviceToHost("out", f32(2, 2))
		x := p.Variable(ones(2, 2), ir.VariableName("x"))
		W := p.Variable(ones(2, 2), ir.VariableName("W"))
		b := p.Variable(ones(2), ir.VariableName("b"))

		layer := &linear{outputs: 2}
		body := p.CreateGraph(layer.build, x.Tensor)
		by := map[*ir.Tensor]*ir.Tensor{layer.W: W.Tensor, layer.b: b.Tensor}
		main.HostStore(out, main.RepeatWithInfo(body, turn.count, by, x.Tensor).Outputs()[0])

		got, err := runOnce(ctx, p, nil)
		if err != nil {
			return err
		}
		page.compare(turn.what, got[out], turn.want)
	}
	return nil
}
