package slice

import (
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Slice is the slices of t at offsets: popops.DynamicSlice, MultiSlice or GroupedMultiSlice, by f's kind.
func (f Form) Slice(t, offsets *ir.Tensor) *ir.Tensor {
	return ir.Apply1(&takeOp{Form: f.own()}, nil, t, offsets)
}

// At is the form of single entries of dimension dim of t, and offsets that are known when the program is built, as a
// constant of shape (n, 1) in t's graph. One out of t's range is an error of the operations by the form, on whatever
// tensor. On one that is smaller, an offset may be out of range as any other.
//
//	f, at := slice.At(t, []int{3, 0, 3}, 1)
//	columns := f.Slice(t, at)
func At(t *ir.Tensor, offsets []int, dim int) (Form, *ir.Tensor) {
	f := Form{Kind: Multi, Dims: []int{dim}, Sizes: []int{1}}
	if t == nil || t.Graph() == nil {
		return f, nil
	}
	words := make([]uint32, len(offsets))
	shape := t.Shape()
	for i, o := range offsets {
		if dim >= 0 && dim < len(shape) && f.err == nil {
			f.err = checkOffset(i, o, shape[dim])
		}
		words[i] = uint32(o)
	}
	at, err := tensor.FromSlice(words, len(words), 1)
	if err != nil {
		f.err = err
		return f, nil
	}
	return f, t.Graph().Constant(at)
}

// takeOp has the inputs t and offsets.
type takeOp struct{ Form }

// Name implements ir.Op.
func (o *takeOp) Name() string { return o.Kind.String() + " slice" }

// String implements fmt.Stringer.
func (o *takeOp) String() string { return o.Name() + " " + o.text() }

// Infer implements ir.Op.
func (o *takeOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
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
	if o.Kind == Dynamic {
		v = put
	}
	t := b.InSpec(0)
	onto := &updateOp{Form: o.gradientForm(b, v, t, b.InSpec(1)), verb: v, zeros: &t}
	return []*ir.Tensor{ir.Apply1(onto, nil, b.Grad(0), b.In(1)), nil}
}
