package slice

import (
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// inRangeOp is slices, its first input, with zeros for those that have an offset, its second input, out of range of a
// table: what an update leaves out may be anything, infinite too. It is linear, and its own adjoint.
type inRangeOp struct {
	Form
	table ir.Spec
}

// Name implements ir.Op.
func (o *inRangeOp) Name() string { return o.Kind.String() + " update, in range" }

// Infer implements ir.Op.
func (o *inRangeOp) Infer(in []ir.Spec) ([]ir.Spec, error) { return in[:1], nil }

// Bind implements ir.Op.
func (o *inRangeOp) Bind(m *ir.Memory) (func() error, error) {
	dst, src, offsets := m.Out[0].Bytes(), m.In[0].Bytes(), bitsOf[uint32](m.In[1])
	signed := m.In[1].DType() == tensor.I32
	shape, dims := o.within(o.table), o.Dims
	each := o.counter(ir.SpecOf(m.In[0]), ir.SpecOf(m.In[1])).each * m.In[0].DType().Size() // bytes of a slice
	return func() error {
		copy(dst, src)
		for i, at := range offsets {
			k := i % len(dims)
			if uint64(at) < uint64(shape[dims[k]]) && !(signed && int32(at) < 0) {
				continue
			}
			row := i / len(dims) * each
			clear(dst[row : row+each])
		}
		return nil
	}, nil
}

// Gradient implements ir.Differentiable.
func (o *inRangeOp) Gradient(b *ir.Backward) []*ir.Tensor {
	return []*ir.Tensor{ir.Apply1(o, nil, b.Grad(0), b.In(1)), nil}
}
