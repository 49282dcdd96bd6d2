package rts

import (
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/slice"
	"gogcl.dev/tensor"
)

// A step of four micro-batches, by Trainer.Accumulate. A loop has all but the last, so that the program does not grow
// with their number. The last one is a step as ever, whose gradients are added to the sums, reduced and used up bucket
// by bucket:
//
//	           loop, 3 times                              last
//	Inputs     [0] [1] [2]                                [3]
//	           gather, forward, gather, backward          gather, forward, gather, backward
//	gradients  sums += gradients, whole, on each replica  sums += gradients ─▶ reduce to shard ─▶ / 4 ─▶ update
//
// All this is one run of the program, and sums are nothing that a step leaves behind.

// microBatches adds each once for a loop over all micro-batches but the last, and last once. Both compute the layers
// forward. The sums of gradients are of the given parameters. Without Accumulate there is one batch, which is the last.
func (b *builder) microBatches(at place, params []*param, each, last func(at place)) {
	k := b.Accumulate
	if k == 0 {
		last(at)
		return
	}
	if k == 1 {
		params = nil // there is nothing to add to
	}
	outputs := b.layers[len(b.layers)-1].Graph.Outputs()
	loss := outputs[0].DType()
	number, sum := ir.Spec{DType: tensor.I32}, ir.Spec{DType: wide(loss)} // of micro-batches; of losses
	carried := []*ir.Tensor{at.zeros(number), at.zeros(sum)}
	var changed, inputs []*ir.Tensor
	for _, p := range params {
		changed = append(changed, at.zeros(p.spec))
	}
	for _, t := range outputs[1:] {
		s := t.Spec()
		changed = append(changed, at.zeros(ir.Spec{DType: s.DType, Shape: append(tensor.Shape{k}, s.Shape...)}))
	}
	for _, l := range b.layers {
		inputs = append(inputs, l.Inputs...)
	}
	if k > 1 {
		var given []*ir.Tensor
		var specs []ir.Input
		for _, list := range [][]*ir.Tensor{carried, changed, inputs} {
			for _, t := range list {
				given, specs = append(given, t), append(specs, t)
			}
		}
		body := b.program.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			n, m := len(carried), len(carried)+len(changed)
			var out []*ir.Tensor
			g.InSequence(func() {
				out, _ = b.microBatch(place{Graph: g}, params, in[:n], in[n:m], in[m:], each)
			})
			return out
		}, specs...).Named("micro-batch")
		loop := at.RepeatWithInfo(body, k-1, nil, given...)
		for _, t := range changed {
			loop.SetParentInputModified(t)
		}
		carried = loop.Outputs()
	}
	carried, changed = b.microBatch(at, params, carried, changed, inputs, last)
	b.Outputs = append([]*ir.Tensor{cast(ops.DivScalar(carried[1], float64(k)), loss)}, changed...)
}

// wide is the type in which losses of a type are added up: the mean of losses of 16 bits is one, where their sum may be
// more than the type can hold.
func wide(t tensor.DType) tensor.DType {
	if t == tensor.F16 || t == tensor.BF16 {
		return tensor.F32
	}
	return t
}

// cast is ops.Cast, without a copy of what has the type.
func cast(t *ir.Tensor, to tensor.DType) *ir.Tensor {
	if t.DType() == to {
		return t
	}
	return ops.Cast(t, to)
}

// microBatch adds a micro-batch by build, given its number and the sum of the losses before it; the sums of gradients
// and the outputs of all micro-batches, which it changes; and the inputs of all. It returns the numbers for the next
// one, and the outputs as they are then.
func (b *builder) microBatch(at place, params []*param, carried, changed, inputs []*ir.Tensor,
	build func(at place)) (next, outputs []*ir.Tensor) {
	for i, p := range params {
		p.grad = changed[i]
		b.gradients[p.grad] = true
	}
	one, number := slice.Form{Dims: []int{0}, Sizes: []int{1}}, ops.Reshape(carried[0], 1)
	for _, l := range b.layers {
		own := make([]*ir.Tensor, len(l.Inputs)) // Inputs may be the caller's
		for i := range own {
			own[i] = ops.Reshape(one.Slice(inputs[i], number), inputs[i].Shape()[1:]...)
		}
		l.Inputs, inputs = own, inputs[len(own):]
	}
	build(at)
	for i, t := range changed[len(params):] {
		out := ops.Reshape(b.Outputs[1+i], append([]int{1}, t.Shape()[1:]...)...)
		outputs = append(outputs, one.UpdateInPlace(t, out, number))
	}
	sum := ops.Add(carried[1], cast(b.Outputs[0], carried[1].DType()))
	return []*ir.Tensor{ops.AddScalar(carried[0], 1), sum}, outputs
}

// zeros is a tensor that may be changed.
func (at place) zeros(s ir.Spec) *ir.Tensor {
	return ops.Expand(at.constant(ir.Spec{DType: s.DType}, false), s.Shape...)
}

// microSpec is what a micro-batch has of an input.
func (b *builder) microSpec(t *ir.Tensor) (ir.Spec, error) {
	s := t.Spec()
	switch {
	case b.Accumulate == 0:
		return s, nil
	case len(s.Shape) == 0 || s.Shape[0] != b.Accumulate:
		return ir.Spec{}, fmt.Errorf("of shape %v, want a leading dimension of the %d micro-batches of Accumulate",
			s.Shape, b.Accumulate)
	}
	return ir.Spec{DType: s.DType, Shape: s.Shape[1:]}, nil
}
