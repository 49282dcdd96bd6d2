package main

import (
	"context"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// update is a graph's function that changes its input where it lies.
func update(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	value := g.Input("value", in[0].Spec())
	ops.CopyInto(in[0], ops.Add(in[0], value))
	return nil
}

// modified calls a graph that changes its input in place. Inputs go by value, so that the variable keeps its 1, unless
// the place of the call says that it is modified: then it is 2.
func modified(ctx context.Context, page *page) error {
	for _, marked := range []bool{true, false} {
		p := ir.New(1)
		main := p.Main()
		out := p.DeviceToHost("out", f32())
		x := p.Variable(tensor.Scalar(float32(1)), ir.VariableName("x"))

		g := p.CreateGraph(update, x.Tensor)
		value := g.Inputs()[1] // made by update
		one := main.Constant(tensor.Scalar(float32(1)))
		info := main.CallWithInfo(g, map[*ir.Tensor]*ir.Tensor{value: one}, x.Tensor)
		what, want := "unmarked", "float32()[1]"
		if marked {
			info.SetParentInputModified(x.Tensor)
			what, want = "marked", "float32()[2]"
		}
		main.HostStore(out, x.Tensor)

		got, err := runOnce(ctx, p, nil)
		if err != nil {
			return err
		}
		page.compare(what, got[out], want)
		if !marked {
			continue
		}
		// What else is to be known about a place where a graph is called:
		page.compare("called graph", info.CalledGraph().Name(), "update")
		parent, err := info.GraphToParent(value)
		if err != nil {
			return err
		}
		page.compare("value is the one", parent == one, true)
		second, err := info.ParentInput(1)
		if err != nil {
			return err
		}
		page.compare("so is input 1", second == one, true)
	}
	return nil
}
