package rts

import (
	"errors"
	"fmt"
	"math"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// GlobalNorm returns the Euclidean norm of tensors of which each replica has shards of one Sharding, as a scalar of
// float32, the same on all replicas of a group: the square root of the sum, over the replicas that have the tensors
// between them, of the squares of what each has, by one all-reduce of one number. A replica adds the squares of each
// shard as ReduceSum does, and then the sums in the order of the shards. Errors: no shards, element types that are not
// float32.
func (s Sharding) GlobalNorm(shards []*ir.Tensor) *ir.Tensor {
	if len(shards) == 0 {
		return ir.Apply1(refused{"global norm", errors.New("of no tensors")}, nil)
	}
	p, out := s.of("global norm", shards)
	if out != nil {
		return out[0]
	}
	var sum *ir.Tensor
	for i, t := range shards {
		if t != nil && t.Graph() != nil && t.DType().Valid() && t.DType() != tensor.F32 {
			return failed(shards, "global norm", fmt.Errorf("shard %d is of %v, want float32", i, t.DType()))[0]
		}
		squares := ops.ReduceSum(ops.Square(t))
		if sum == nil {
			sum = squares
		} else {
			sum = ops.Add(sum, squares)
		}
	}
	if p.shards > 1 {
		sum = p.gather.AllReduce(sum, gcl.Add)
	}
	return ops.Sqrt(sum)
}

// Clip returns the tensors, scaled by limit/norm if norm, a scalar of float32, is above limit: clipping by global norm
// as Pascanu, Mikolov and Bengio have it, "On the difficulty of training recurrent neural networks" (arXiv:1211.5063),
// algorithm 1. Where the norm is not above the limit they keep their bits. A norm that is no number makes all of them
// so, and one that is infinite, as that of gradients above 1e19 is, makes those that are finite 0. Errors: a limit
// that is not above 0, or not finite, as a float32.
func Clip(tensors []*ir.Tensor, norm *ir.Tensor, limit float64) []*ir.Tensor {
	if !validLimit(limit) {
		return failed(append(tensors[:len(tensors):len(tensors)], norm), "clip",
			fmt.Errorf("a limit of %v, want a finite number above 0", limit))[:len(tensors)]
	}
	if norm == nil || norm.Graph() == nil {
		return failed(tensors, "clip", errors.New("no norm"))
	}
	most := norm.Graph().Constant(tensor.Scalar(float32(limit)))
	one := norm.Graph().Constant(tensor.Scalar(float32(1)))
	factor := ops.Select(ops.LessEqual(norm, most), one, ops.Div(most, norm))
	out := make([]*ir.Tensor, len(tensors))
	for i, t := range tensors {
		out[i] = ops.Mul(t, factor)
	}
	return out
}

// validLimit reports whether a limit is finite and above 0 in float32.
func validLimit(limit float64) bool { return float32(limit) > 0 && limit <= math.MaxFloat32 }
