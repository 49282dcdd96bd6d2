package collective

import (
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// call is a collective of gcl on one tensor, whose shape does not matter.
type call struct {
	collective schedule.Collective
	operator   gcl.Operator
	root       int
	dst, src   *tensor.Tensor
}

// bind returns what carries out the call.
func (k call) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	dst, src, err := k.shaped(c.Size())
	if err != nil {
		return nil, err
	}
	b := c.Batch(k.collective, k.operator, k.root)
	b.AppendTensor(dst, src)
	return func() error { return b.Run(m.Context()) }, nil
}

// shaped is the two tensors in the shapes that the collective has on tensors.
func (k call) shaped(ranks int) (dst, src *tensor.Tensor, err error) {
	from, to := []int{k.src.Len()}, []int{k.dst.Len()}
	switch contract := k.collective.Contract(); {
	case contract.Input == schedule.Blocks:
		from, to = []int{ranks, k.src.Len() / ranks}, []int{ranks, k.dst.Len() / ranks}
	case contract.Input == schedule.Own:
		to = []int{ranks, k.dst.Len() / ranks}
	}
	if src, err = k.src.Reshape(from...); err != nil {
		return nil, nil, err
	}
	dst, err = k.dst.Reshape(to...)
	return dst, src, err
}
