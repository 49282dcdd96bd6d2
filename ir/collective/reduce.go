package collective

import (
	"fmt"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// AllReduce returns the reduction of t over the group: the same bits on every replica. Errors: an operator that does
// not take the element type.
func (c Comm) AllReduce(t *ir.Tensor, operator gcl.Operator) *ir.Tensor {
	return c.apply(allReduce{operator}, t)
}

// AllReduceInPlace is AllReduce with the result in the memory of t, of which it is the new value: an accumulator's or a
// variable's. It has no gradient.
func (c Comm) AllReduceInPlace(t *ir.Tensor, operator gcl.Operator) *ir.Tensor {
	return c.applyInPlace(allReduce{operator}, t)[0]
}

// AllReduceMany is AllReduce of each tensor, all in one set of messages. They may differ in shape and element type, and
// are of one graph. Of none it returns none.
func (c Comm) AllReduceMany(tensors []*ir.Tensor, operator gcl.Operator) []*ir.Tensor {
	return c.applySeveral(alike(allReduce{operator}, tensors), tensors)
}

// AllReduceManyInPlace is AllReduceMany with the results in the memory of the tensors, of which they are the new
// values. It has no gradient. A tensor that is given twice is an error.
func (c Comm) AllReduceManyInPlace(tensors []*ir.Tensor, operator gcl.Operator) []*ir.Tensor {
	return c.applyInPlace(allReduce{operator}, tensors...)
}

// ReduceScatter returns the replica's part of the reduction of t, which has one dimension, over the group: of n
// elements and G ranks, c = ceil(n/G) from rank*c on, with zeros past n. Errors: another number of dimensions, an
// operator that does not take the element type.
func (c Comm) ReduceScatter(t *ir.Tensor, operator gcl.Operator) *ir.Tensor {
	return c.apply(reduceScatter{operator: operator}, t)
}

// ReduceScatterShards is ReduceScatter of a tensor of any shape, as if it were reshaped to one dimension first.
func (c Comm) ReduceScatterShards(t *ir.Tensor, operator gcl.Operator) *ir.Tensor {
	return c.apply(reduceScatter{operator: operator, flat: true}, t)
}

type allReduce struct{ operator gcl.Operator }

func (a allReduce) Name() string   { return schedule.AllReduce.String() }
func (a allReduce) String() string { return a.operator.String() }

func (a allReduce) call() (schedule.Collective, gcl.Operator, int) {
	return schedule.AllReduce, a.operator, 0
}

func (a allReduce) inferOne(s ir.Spec, _ int) ([]ir.Spec, error) {
	return []ir.Spec{s}, a.operator.Accepts(s.DType)
}

// reduceScatter gives each replica its part of a reduction.
type reduceScatter struct {
	operator gcl.Operator
	flat     bool // the input may have any shape
	shaped   bool // the output has the shape that follows, of as many elements as a part has, not one dimension
	shape    tensor.Shape
}

func (a reduceScatter) Name() string   { return schedule.ReduceScatter.String() }
func (a reduceScatter) String() string { return a.operator.String() }

func (a reduceScatter) call() (schedule.Collective, gcl.Operator, int) {
	return schedule.ReduceScatter, a.operator, 0
}

func (a reduceScatter) inferOne(s ir.Spec, ranks int) ([]ir.Spec, error) {
	if !a.flat && len(s.Shape) != 1 {
		return nil, fmt.Errorf("a reduce-scatter takes one dimension, not the shape %v", s.Shape)
	}
	if err := a.operator.Accepts(s.DType); err != nil {
		return nil, err
	}
	if a.shaped {
		return valid(s.DType, a.shape...)
	}
	return valid(s.DType, chunks.PerRank(s.Elements(), ranks))
}
