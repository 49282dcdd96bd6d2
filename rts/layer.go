package rts

import (
	"errors"
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// layer is a Layer as its step is built.
type layer struct {
	Layer
	index    int
	before   int // inputs that are outputs of the layer before
	params   []*param
	given    []*ir.Tensor // params as forward was given them
	call     *ir.CallInfo
	gradient *ir.GradInfo
	wanted   []int        // inputs that the gradient is of
	upstream []*ir.Tensor // the gradients of the outputs, nil of one that is no float
}

// param is a parameter as its step is built.
type param struct {
	*Variable
	states  []kept
	whole   *ir.Tensor // as it was gathered last
	grad    *ir.Tensor // whole: the sum over the layers whose gradients are built, and over micro-batches
	reduced *ir.Tensor // the shard of the gradient
}

// check fills in the layers, and says what is wrong with them.
func (b *builder) check(layers []Layer) error {
	switch {
	case b.Optimizer == nil:
		return errors.New("no Optimizer")
	case b.ClipNorm != 0 && !validLimit(b.ClipNorm):
		return fmt.Errorf("ClipNorm %v, want a finite number above 0, or 0 for no clipping", b.ClipNorm)
	case b.BucketBytes < 0:
		return fmt.Errorf("BucketBytes %d, want 1 or more, or 0 for %d", b.BucketBytes, DefaultBucketBytes)
	case b.Accumulate < 0:
		return fmt.Errorf("an Accumulate of %d, want 1 micro-batch or more, or 0 for a batch in one", b.Accumulate)
	case len(layers) == 0:
		return errors.New("no layers")
	}
	if err := scalarOf("rate", b.main.rate, b.program, tensor.F32); err != nil {
		return err
	}
	if err := scalarOf("step", b.main.step, b.program, tensor.I32); err != nil {
		return err
	}
	params := map[*Variable]*param{}
	var outputs []*ir.Tensor
	for i, l := range layers {
		own := &layer{Layer: l, index: i, before: len(outputs)}
		if err := b.checkLayer(own, outputs); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		for _, v := range l.Params {
			if params[v] == nil {
				params[v] = &param{Variable: v}
			}
			own.params = append(own.params, params[v])
		}
		outputs = l.Graph.Outputs()
		b.layers = append(b.layers, own)
	}
	if b.BucketBytes == 0 {
		b.BucketBytes = DefaultBucketBytes
		if b.Overlap {
			b.BucketBytes = min(DefaultBucketBytes, b.bytes()/8)
		}
	}
	if len(params) == 0 {
		return errors.New("no layer has parameters")
	}
	if len(outputs) == 0 || !outputs[0].DType().IsFloat() || len(outputs[0].Shape()) != 0 {
		return errors.New("the first output of the last layer is the loss, a scalar of floats")
	}
	return nil
}

// bytes are those of all parameters.
func (b *builder) bytes() int {
	sum := 0
	for _, l := range b.layers {
		sum += l.bytes()
	}
	return sum
}

// bytes are those of the layer's parameters.
func (l *layer) bytes() int {
	sum := 0
	for _, p := range l.params {
		sum += p.bytes()
	}
	return sum
}

// checkLayer looks at the inputs of a layer's graph, given the outputs of the layer before.
func (b *builder) checkLayer(l *layer, before []*ir.Tensor) error {
	switch {
	case l.Graph == nil:
		return errors.New("no graph")
	case l.Graph.Program() != b.program:
		return errors.New("its graph is of another program")
	}
	want := make([]ir.Spec, 0, len(before)+len(l.Inputs)+len(l.Params))
	for _, t := range before {
		want = append(want, t.Spec())
	}
	for k, t := range l.Inputs {
		if t == nil || t.Graph() != b.main.Graph {
			return fmt.Errorf("input %d is no tensor of the main graph", k)
		}
		s, err := b.microSpec(t)
		if err != nil {
			return fmt.Errorf("input %d is %w", k, err)
		}
		want = append(want, s)
	}
	for k, v := range l.Params {
		switch {
		case v == nil || v.program != b.program:
			return fmt.Errorf("parameter %d is no variable of the program", k)
		case v.spec.DType != tensor.F32:
			return fmt.Errorf("parameter %d is of %v, want float32", k, v.spec.DType)
		case v.plan.group.Groups() > 1:
			return fmt.Errorf("parameter %d has %d groups, want one tensor for all replicas", k, v.plan.group.Groups())
		case b.plan.shards == 0:
			b.sharding, b.plan = v.sharding, v.plan
		case v.plan != b.plan:
			return fmt.Errorf("parameter %d has another Sharding than the first of the model", k)
		}
		want = append(want, v.spec)
	}
	in := l.Graph.Inputs()
	if len(in) != len(want) {
		return fmt.Errorf("its graph has %d inputs, want %d: %d outputs of the layer before, %d Inputs, %d Params",
			len(in), len(want), len(before), len(l.Inputs), len(l.Params))
	}
	for k, t := range in {
		if !t.Spec().Equal(want[k]) {
			return fmt.Errorf("input %d of its graph is %v, and is given %v", k, t.Spec(), want[k])
		}
	}
	return nil
}

// scalarOf returns an error unless a tensor is a scalar of the main graph.
func scalarOf(name string, t *ir.Tensor, p *ir.Program, d tensor.DType) error {
	if t == nil || t.Graph() != p.Main() || t.DType() != d || len(t.Shape()) != 0 {
		return fmt.Errorf("the %s is not a scalar of %v in the main graph", name, d)
	}
	return nil
}
