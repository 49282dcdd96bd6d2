package ir_test

import (
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// The golden drawings depend on how many digits the numbers of this file's lines have.

func f32(shape ...int) ir.Spec { return ir.Spec{DType: tensor.F32, Shape: shape} }

func zeros(s ir.Spec) *tensor.Tensor {
	t, err := tensor.New(s.DType, s.Shape...)
	if err != nil {
		panic(err)
	}
	return t
}

func layer(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	x, w, b := in[0].Named("x"), in[1].Named("w"), in[2].Named("b")
	return []*ir.Tensor{ir.ToyRelu(ir.ToyAddRow(ir.ToyMatMul(x, w), b)).Named("y")}
}

type refiner struct{ layer *ir.Graph }

func (r refiner) refine(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return g.Call(r.layer, in...) }

func clip(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ir.ToyRelu(in[0])} }

func double(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ir.ToyAdd(in[0], in[0])}
}

func step(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	ir.ToyAccumulate(in[0].Named("w"), in[1].Named("dw"))
	return nil
}

// perceptron is two layers, a refinement that is repeated, a choice, a sum over the replicas, and an update in place.
func perceptron() *ir.Program {
	p := ir.New(2)
	l := p.CreateGraph(layer, f32(8, 4), f32(4, 4), f32(4))
	refine := p.CreateGraph(refiner{l}.refine, f32(8, 4), f32(4, 4), f32(4))
	clip, double := p.CreateGraph(clip, f32(8, 4)), p.CreateGraph(double, f32(8, 4))
	step := p.CreateGraph(step, f32(4, 4), f32(4, 4))

	in, out := p.HostToDevice("digits", f32(8, 4)), p.DeviceToHost("scores", f32(8, 4))
	w := p.Variable(zeros(f32(4, 4)), ir.VariableName("w"))
	b := p.Variable(zeros(f32(4)), ir.VariableName("b"))
	rate := p.Main().Constant(zeros(f32(4, 4))).Named("rate")
	main := p.Main()
	x := main.HostLoad(in)
	hidden := main.Call(l, x, w.Tensor, b.Tensor)[0].Named("hidden")
	hidden = main.Repeat(refine, 3, hidden, w.Tensor, b.Tensor)[0].Named("refined")
	scores := main.If(ir.ToyAbove(hidden, 0.5), ir.Branch{Graph: clip, In: []*ir.Tensor{hidden}},
		ir.Branch{Graph: double, In: []*ir.Tensor{hidden}})[0]
	main.InSequence(func() {
		main.RemoteCodeLoad(step, "executable")
		sum := ir.ToyAllReduce(rate).Named("sum")
		main.CallWithInfo(step, nil, w.Tensor, sum).SetParentInputModified(w.Tensor)
	})
	main.HostStore(out, ir.ToyMatMul(scores, w.Tensor).Named("scores"))
	return p
}

// oddities has what a program can have that the perceptron has not: blocks in blocks, several outputs, an output that
// is an input, a graph of nothing, names that need quotes, attributes of several lines, an update in place.
func oddities() *ir.Program {
	p := ir.New(1)
	nothing := p.CreateGraph(func(*ir.Graph, []*ir.Tensor) []*ir.Tensor { return nil })
	pair := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		sum, difference := ir.ToySplit(in[0], in[1])
		return []*ir.Tensor{sum, difference, in[0]}
	}, f32(2), f32(2))
	swap := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{in[1], in[0]}
	}, f32(2), f32(2))
	main := p.Main()
	two, _ := tensor.FromSlice([]float32{1, 2.5}, 2)
	a := main.Constant(two).Named("a b")
	main.Constant(tensor.Scalar(int32(7)))
	main.Constant(zeros(f32(7)))
	v := p.Variable(two)
	main.InSequence(func() {
		main.Call(nothing)
		main.OutOfSequence(func() {
			ir.ToyScale(a, 3)
			ir.ToyAccumulate(v.Tensor, a)
		})
		main.InSequence(func() { ir.ToyOfKind("line\nbreak <&>", "some & kind", a) })
		main.InSequence(func() { main.Repeat(swap, 1, a, ir.ToyRelu(v.Tensor)) })
	})
	main.Call(pair, a, ir.ToyRelu(v.Tensor).Named(`quo"te`))
	return p
}
