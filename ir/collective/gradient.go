package collective

import (
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// gradients give every replica what all of them do with the reduction, as far as it has had a part in that.
func (a allReduce) gradients(b *ir.Backward, c Comm, inputs []int) (grads []*ir.Tensor) {
	var whole []*ir.Tensor // the gradients of what is reduced
	for _, i := range inputs {
		whole = append(whole, b.Grad(i))
	}
	operator := a.operator
	if err := differentiable(operator); err != nil {
		b.Fail(err)
		return nil
	}
	switch {
	case b.IdenticalLosses() || !operator.Combines():
	case operator.Divides():
		whole, operator = c.AllReduceMany(whole, gcl.Mean), gcl.Add // nothing more is to be done
	default:
		whole = c.AllReduceMany(whole, gcl.Add)
	}
	for k, i := range inputs {
		grads = append(grads, reduced(b, c, operator, i, whole[k], func() *ir.Tensor { return b.Out(i) }))
	}
	return grads
}

// gradients are as of an all-reduce of which each replica then takes its part. Of the other parts it has no gradient,
// so that all of them together are to be gathered and not to be summed.
func (a reduceScatter) gradients(b *ir.Backward, c Comm, inputs []int) []*ir.Tensor {
	operator := a.operator
	if err := differentiable(operator); err != nil {
		b.Fail(err)
		return nil
	}
	var grads, parts []*ir.Tensor
	var shapes []tensor.Shape
	for _, i := range inputs {
		parts, shapes = append(parts, b.Grad(i)), append(shapes, b.InSpec(i).Shape)
	}
	if !operator.Combines() && !b.IdenticalLosses() {
		for k, t := range parts {
			grads = append(grads, c.applyAlone(part{shapes[k]}, t))
		}
		return grads
	}
	whole := c.AllGatherShardsMany(parts, shapes)
	for k, i := range inputs {
		grads = append(grads, reduced(b, c, operator, i, whole[k], func() *ir.Tensor {
			return c.AllGatherShards(b.Out(i), shapes[k]...)
		}))
	}
	return grads
}

// differentiable returns an error if a reduction has no gradient.
func differentiable(operator gcl.Operator) error {
	row, known := derivatives[operator]
	switch {
	case !known:
		return fmt.Errorf("the operator %v has no gradient", operator)
	case row.none != "":
		return fmt.Errorf("the operator %v has no gradient: %s", operator, row.none)
	}
	return nil
}

// derivative is the mathematics of an operator's gradient.
type derivative struct {
	none string // why there is no gradient

	// input is the gradient of input i of a reduction. whole is that of its output, and y returns the output.
	input func(b *ir.Backward, c Comm, operator gcl.Operator, i int, whole *ir.Tensor, y func() *ir.Tensor) *ir.Tensor
}

// derivatives has a row for each operator. Those of bool are never asked for a gradient.
var derivatives = map[gcl.Operator]derivative{
	gcl.Add:        {input: passOn},
	gcl.Mean:       {input: share},
	gcl.Mul:        {none: "it would divide by the inputs"},
	gcl.Min:        {input: toWinner},
	gcl.Max:        {input: toWinner},
	gcl.LogicalAnd: {input: passOn},
	gcl.LogicalOr:  {input: passOn},
	gcl.SquareAdd:  {input: twiceInput},
	gcl.Local:      {input: passOn},
}

// reduced is the gradient of input i of a reduction, given that of the whole reduction and what that is.
func reduced(b *ir.Backward, c Comm, operator gcl.Operator, i int, whole *ir.Tensor, y func() *ir.Tensor) *ir.Tensor {
	return derivatives[operator].input(b, c, operator, i, whole, y)
}

// passOn: every input counts as it is.
func passOn(_ *ir.Backward, _ Comm, _ gcl.Operator, _ int, whole *ir.Tensor, _ func() *ir.Tensor) *ir.Tensor {
	return whole
}

// share: of a group of G, every input counts one G-th.
func share(_ *ir.Backward, c Comm, operator gcl.Operator, _ int, whole *ir.Tensor, _ func() *ir.Tensor) *ir.Tensor {
	return c.applyAlone(weighted{operator}, whole)
}

// twiceInput: the derivative of a square.
func twiceInput(b *ir.Backward, c Comm, operator gcl.Operator, i int, whole *ir.Tensor,
	_ func() *ir.Tensor) *ir.Tensor {
	return c.applyAlone(weighted{operator}, whole, b.In(i))
}

// toWinner: the first rank whose input is the output has the gradient.
func toWinner(b *ir.Backward, c Comm, _ gcl.Operator, i int, whole *ir.Tensor, y func() *ir.Tensor) *ir.Tensor {
	claims := c.applyAlone(claim{}, b.In(i), y())
	return c.applyAlone(won{}, whole, claims, c.AllReduce(claims, gcl.Min))
}
