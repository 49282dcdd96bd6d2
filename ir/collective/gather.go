package collective

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// AllGather returns the tensors of all replicas of the group, by rank: of a shape S, (G, S...).
func (c Comm) AllGather(t *ir.Tensor) *ir.Tensor { return c.apply(allGather{}, t) }

// AllGatherConcat returns the tensors of all replicas of the group joined along the first dimension, by rank: of a
// shape (d, S...), (G*d, S...). A tensor without dimensions is an error.
func (c Comm) AllGatherConcat(t *ir.Tensor) *ir.Tensor { return c.apply(allGather{concat: true}, t) }

// AllGatherShards undoes ReduceScatterShards: it returns the tensor, of the given shape, of which each replica has its
// part, without the zeros that the last parts may end with. t has ceil(n/G) elements, n being the shape's; any other
// number is an error.
func (c Comm) AllGatherShards(t *ir.Tensor, shape ...int) *ir.Tensor {
	return c.apply(allGather{shards: true, shape: slices.Clone(shape)}, t)
}

type allGather struct {
	concat bool // no dimension is added
	shards bool
	shape  tensor.Shape // of the output, for shards
}

func (a allGather) Name() string { return schedule.AllGather.String() }

func (a allGather) call() (schedule.Collective, gcl.Operator, int) { return schedule.AllGather, 0, 0 }

func (a allGather) inferOne(s ir.Spec, ranks int) ([]ir.Spec, error) {
	switch {
	case a.shards:
		n, err := a.shape.Elements()
		if err != nil {
			return nil, err
		}
		if want := chunks.PerRank(n, ranks); s.Elements() != want {
			return nil, fmt.Errorf("parts of %d elements, want %d: %d elements of shape %v over %d ranks",
				s.Elements(), want, n, a.shape, ranks)
		}
		return valid(s.DType, a.shape...)
	case a.concat:
		if len(s.Shape) == 0 {
			return nil, errors.New("a tensor without dimensions cannot be joined along the first")
		}
		return valid(s.DType, append([]int{ranks * s.Shape[0]}, s.Shape[1:]...)...)
	}
	return valid(s.DType, append([]int{ranks}, s.Shape...)...)
}

// padded is the size in bytes of all parts together, if that is more than that of the output; else 0.
func (a allGather) padded(part ir.Spec, ranks int) int {
	if n, _ := a.shape.Elements(); !a.shards || n == part.Elements()*ranks {
		return 0
	}
	return part.Bytes() * ranks
}

// gradients sum what all replicas do with each part, or are the own part of what is done with the whole.
func (a allGather) gradients(b *ir.Backward, c Comm, inputs []int) []*ir.Tensor {
	operator := gcl.Add
	if b.IdenticalLosses() {
		operator = gcl.Local
	}
	return c.ownParts(b, operator, inputs)
}

// ownParts reduces gradients and takes the parts that belong to the inputs of the same numbers.
func (c Comm) ownParts(b *ir.Backward, operator gcl.Operator, inputs []int) []*ir.Tensor {
	a := several{kind: reduceScatter{operator: operator, flat: true}}
	var grads []*ir.Tensor
	for _, i := range inputs {
		a.of = append(a.of, reduceScatter{operator: operator, flat: true, shaped: true, shape: b.InSpec(i).Shape})
		grads = append(grads, b.Grad(i))
	}
	return c.applySeveral(a, grads)
}
