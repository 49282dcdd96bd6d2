package rts

import (
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// StepIf is Step where train, a scalar of bool in the main graph, is true. Where it is false the layers are computed
// forward on the same parameters, which stay as they are: an evaluation needs no program of its own and no copy of the
// parameters. All replicas must be given the same, since they gather parameters together. Outputs are those of the last
// layer in both cases. Norm is 0 where nothing is trained. Errors, which stick to the program: those of Step, and
// another train.
func (t Trainer) StepIf(train *ir.Tensor, layers []Layer, rate, step *ir.Tensor) *Step {
	b := t.begin(layers, rate, step)
	if b.program == nil || b.layers == nil {
		return b.Step
	}
	main := b.main
	if err := scalarOf("choice to train", train, b.program, tensor.Bool); err != nil {
		b.refuse(err)
		return b.Step
	}
	given := []*ir.Tensor{rate, step}
	for _, l := range b.layers {
		given = append(given, l.Inputs...)
	}
	specs := make([]ir.Input, len(given))
	for i, x := range given {
		specs[i] = x
	}
	then := ir.Branch{Graph: b.program.CreateGraph(b.branch(b.build), specs...).Named("train"), In: given}
	els := ir.Branch{Graph: b.program.CreateGraph(b.branch(b.evaluate), specs...).Named("evaluate"), In: given}
	outputs := main.If(train, then, els)
	if b.Norm != nil && len(outputs) > 1 {
		b.Norm, outputs = outputs[len(outputs)-1], outputs[:len(outputs)-1]
	}
	b.Outputs = outputs
	return b.Step
}

// branch is a function for a graph that has what build adds, and is given the rate, the number of the step and the
// inputs of all layers.
func (b *builder) branch(build func(at place)) func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		at := place{g, in[0], in[1]}
		in = in[2:]
		for _, l := range b.layers {
			l.Inputs, in = in[:len(l.Inputs):len(l.Inputs)], in[len(l.Inputs):]
		}
		g.InSequence(func() { build(at) })
		if b.Norm != nil {
			return append(b.Outputs[:len(b.Outputs):len(b.Outputs)], b.Norm)
		}
		return b.Outputs
	}
}

// evaluate adds the layers forward, once the step is built.
func (b *builder) evaluate(at place) {
	b.microBatches(at, nil, b.forward, b.forward)
	if b.Norm != nil {
		b.Norm = at.constant(ir.Spec{DType: tensor.F32}, false)
	}
}
