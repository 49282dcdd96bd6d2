package slice

import (
	"gogcl.dev/ir"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// DynamicSlice is the part of t that begins at offset and has sizes[k] in dimension dims[k]: see popops.DynamicSlice.
// offset has shape (d) or (d, workers). Errors when it runs: an offset out of range.
func DynamicSlice(t, offset *ir.Tensor, dims, sizes []int) *ir.Tensor {
	return takeSlices(newForm(single, dims, sizes, nil, popops.Options{}), t, offset)
}

// MultiSlice is several slices of t, by offsets of shape (n, d): see popops.MultiSlice. The result has shape (n, slice
// shape...). A look-up with an offset out of range gives zeros, or with ValidateIndices an error when it runs.
func MultiSlice(t, offsets *ir.Tensor, dims, sizes []int, plan *popops.Plan, options popops.Options) *ir.Tensor {
	return takeSlices(newForm(several, dims, sizes, plan, options), t, offsets)
}

// GroupedMultiSlice is MultiSlice for each group on its own: t, offsets and the result have the groups as first
// dimension, dims count without it. The plan must not be nil.
func GroupedMultiSlice(t, offsets *ir.Tensor, dims, sizes []int, plan *popops.Plan, options popops.Options) *ir.Tensor {
	return takeSlices(newForm(grouped, dims, sizes, plan, options), t, offsets)
}

// MultiSliceAt is MultiSlice in one dimension, by single entries, with offsets that are known when the program is
// built: one out of range is an error then.
func MultiSliceAt(t *ir.Tensor, offsets []int, dim int) *ir.Tensor {
	o := &takeOp{form: newForm(several, []int{dim}, []int{1}, nil, popops.Options{})}
	var at *ir.Tensor
	at, o.err = constantOffsets(t, offsets, dim)
	return ir.Apply1(o, nil, t, at)
}

func takeSlices(f form, t, offsets *ir.Tensor) *ir.Tensor {
	return ir.Apply1(&takeOp{form: f}, nil, t, offsets)
}

// takeOp has the inputs t and offsets.
type takeOp struct {
	form
	err error // known before it is applied
}

// Name implements ir.Op.
func (o *takeOp) Name() string { return o.kind.String() + " slice" }

// String implements fmt.Stringer.
func (o *takeOp) String() string { return o.Name() + " " + o.form.String() }

// Infer implements ir.Op.
func (o *takeOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
	if o.err != nil {
		return nil, o.err
	}
	out, err := o.slices(in[0], in[1])
	if err != nil {
		return nil, err
	}
	return []ir.Spec{out}, o.checkPlan(take, in[0], in[1])
}

// Bind implements ir.Op.
func (o *takeOp) Bind(m *ir.Memory) (func() error, error) {
	return o.bindTake(m.Out[0], m.In[0], m.In[1])
}

// Gradient implements ir.Differentiable.
func (o *takeOp) Gradient(b *ir.Backward) []*ir.Tensor {
	v := addTo
	if o.kind == single {
		v = put
	}
	t := b.InSpec(0)
	onto := &updateOp{form: o.gradientForm(b, v, t, b.InSpec(1)), verb: v, zeros: &t}
	return []*ir.Tensor{ir.Apply1(onto, nil, b.Grad(0), b.In(1)), nil}
}

// constantOffsets is offsets as a tensor of shape (n, 1) in t's graph, and what is wrong with them. t may be of no
// graph.
func constantOffsets(t *ir.Tensor, offsets []int, dim int) (*ir.Tensor, error) {
	if t == nil || t.Graph() == nil {
		return nil, nil
	}
	words := make([]uint32, len(offsets))
	shape := t.Shape()
	var wrong error
	for i, o := range offsets {
		if dim >= 0 && dim < len(shape) && wrong == nil {
			wrong = checkOffset(i, o, shape[dim])
		}
		words[i] = uint32(o)
	}
	at, err := tensor.FromSlice(words, len(words), 1)
	if err != nil {
		return nil, err
	}
	return t.Graph().Constant(at), wrong
}
