package collective

import (
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
)

// gradient gives every replica what all of them do with the reduction, as far as it has had a part in that.
func (a allReduce) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	grads := make([]*ir.Tensor, b.Inputs())
	var floats []int
	var whole []*ir.Tensor // the gradients of what is reduced
	for i := range grads {
		if b.InSpec(i).DType.IsFloat() {
			floats, whole = append(floats, i), append(whole, b.Grad(i))
		}
	}
	switch {
	case b.IdenticalLosses() || a.operator == gcl.Local:
	case a.operator == gcl.Mean:
		whole = c.AllReduceMany(whole, gcl.Mean)
	default:
		whole = c.AllReduceMany(whole, gcl.Add)
	}
	for k, i := range floats {
		if a.operator == gcl.Mean && !b.IdenticalLosses() {
			grads[i] = whole[k]
			continue
		}
		grads[i] = reduced(b, c, a.operator, i, whole[k], func() *ir.Tensor { return b.Out(i) })
	}
	return grads
}

// gradient is that of an all-reduce of which each replica then takes its part: of the other parts it has no gradient, so
// that all of them together are to be gathered and not to be summed.
func (a reduceScatter) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	shape := b.InSpec(0).Shape
	if a.operator == gcl.Local && !b.IdenticalLosses() {
		return []*ir.Tensor{c.applyAlone(part{shape}, b.Grad(0))}
	}
	whole := c.AllGatherShards(b.Grad(0), shape...)
	y := func() *ir.Tensor { return c.AllGatherShards(b.Out(0), shape...) }
	return []*ir.Tensor{reduced(b, c, a.operator, 0, whole, y)}
}

// reduced is the gradient of input i of a reduction, given that of the whole reduction and what that is.
func reduced(b *ir.Backward, c Comm, operator gcl.Operator, i int, whole *ir.Tensor, y func() *ir.Tensor) *ir.Tensor {
	switch operator {
	case gcl.Add, gcl.Local:
		return whole
	case gcl.Mean:
		return c.applyAlone(weighted{operator}, whole)
	case gcl.SquareAdd:
		return c.applyAlone(weighted{operator}, whole, b.In(i))
	}
	b.Fail(fmt.Errorf("the operator %v has no gradient", operator))
	return nil
}
