package collective

import (
	"errors"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
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
	operator := a.operator
	if err := differentiable(operator); err != nil {
		b.Fail(err)
		return nil
	}
	switch {
	case b.IdenticalLosses() || operator == gcl.Local:
	case operator == gcl.Mean:
		whole, operator = c.AllReduceMany(whole, gcl.Mean), gcl.Add // nothing more is to be done
	default:
		whole = c.AllReduceMany(whole, gcl.Add)
	}
	for k, i := range floats {
		grads[i] = reduced(b, c, operator, i, whole[k], func() *ir.Tensor { return b.Out(i) })
	}
	return grads
}

func (a reduceScatter) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	return scatterGradients(b, c, a.operator, []int{0})
}

// scatterGradients are those of reduce-scattered inputs: as of an all-reduce of which each replica then takes its part.
// Of the other parts it has no gradient, so that all of them together are to be gathered and not to be summed.
func scatterGradients(b *ir.Backward, c Comm, operator gcl.Operator, inputs []int) []*ir.Tensor {
	if err := differentiable(operator); err != nil {
		b.Fail(err)
		return nil
	}
	var grads, parts []*ir.Tensor
	var shapes []tensor.Shape
	for _, i := range inputs {
		parts, shapes = append(parts, b.Grad(i)), append(shapes, b.InSpec(i).Shape)
	}
	if operator == gcl.Local && !b.IdenticalLosses() {
		for k, t := range parts {
			grads = append(grads, c.applyAlone(part{shapes[k]}, t))
		}
		return grads
	}
	whole := c.allGatherShards(parts, shapes)
	for k, i := range inputs {
		grads = append(grads, reduced(b, c, operator, i, whole[k], func() *ir.Tensor { return c.AllGatherShards(b.Out(i), shapes[k]...) }))
	}
	return grads
}

// allGatherShards gathers tensors with as few operations as there can be.
func (c Comm) allGatherShards(parts []*ir.Tensor, shapes []tensor.Shape) []*ir.Tensor {
	if len(parts) == 1 {
		return []*ir.Tensor{c.AllGatherShards(parts[0], shapes[0]...)}
	}
	return c.AllGatherShardsMany(parts, shapes)
}

// differentiable returns an error if a reduction has no gradient.
func differentiable(operator gcl.Operator) error {
	if operator == gcl.Mul {
		return errors.New("the operator MUL has no gradient: it would divide by the inputs")
	}
	return nil
}

// reduced is the gradient of input i of a reduction, given that of the whole reduction and what that is.
func reduced(b *ir.Backward, c Comm, operator gcl.Operator, i int, whole *ir.Tensor, y func() *ir.Tensor) *ir.Tensor {
	switch operator {
	case gcl.Mean:
		return c.applyAlone(weighted{operator}, whole)
	case gcl.SquareAdd:
		return c.applyAlone(weighted{operator}, whole, b.In(i))
	case gcl.Min, gcl.Max:
		claims := c.applyAlone(claim{}, b.In(i), y())
		return c.applyAlone(won{}, whole, claims, c.AllReduce(claims, gcl.Min))
	}
	return whole
}
