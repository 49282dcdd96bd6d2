package ops

import (
	"errors"
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// broadcast returns the shape that all inputs have when dimensions of 1, and those that are missing in front, are
// repeated to fit the others.
func broadcast(in ...ir.Spec) (tensor.Shape, error) {
	rank := 0
	for _, s := range in {
		rank = max(rank, len(s.Shape))
	}
	out := make(tensor.Shape, rank)
	for i := range out {
		out[i] = 1
	}
	for k, s := range in {
		skip := rank - len(s.Shape)
		for i, n := range s.Shape {
			switch at := &out[skip+i]; {
			case n == *at || n == 1:
			case *at == 1:
				*at = n
			default:
				other, own := 0, 0 // the input that the dimension is from, and which of its own it is
				for other = range in[:k] {
					own = skip + i - rank + len(in[other].Shape)
					if own >= 0 && in[other].Shape[own] == *at {
						break
					}
				}
				return nil, fmt.Errorf("dimension %d of input %d, of shape %v, is %d, and dimension %d of input %d, "+
					"of shape %v, is %d: "+
					"shapes are matched from their last dimensions on, which must be equal, or one of them 1",
					i, k, s.Shape, n, own, other, in[other].Shape, *at)
			}
		}
	}
	return out, out.Validate()
}

// inferBroadcast is the rule of inputs of one of some types, which are broadcast: the result is of type out, or if that
// is 0 of theirs.
func inferBroadcast(types []tensor.DType, out tensor.DType, in []ir.Spec) ([]ir.Spec, error) {
	d, err := sameType(types, in...)
	if err != nil {
		return nil, err
	}
	if out != 0 {
		d = out
	}
	shape, err := broadcast(in...)
	return []ir.Spec{{Shape: shape, DType: d}}, err
}

// like is the rule of a result like the first input.
func like(in []ir.Spec) ([]ir.Spec, error) { return in[:1], nil }

// broadcastsTo reports whether a tensor of shape s can be repeated to be of shape to.
func broadcastsTo(s, to tensor.Shape) bool {
	if len(s) > len(to) {
		return false
	}
	for d, extent := range s {
		if extent != 1 && extent != to[len(to)-len(s)+d] {
			return false
		}
	}
	return true
}

// stridesOf is, for each dimension, how far apart neighbours are, in elements.
func stridesOf(s tensor.Shape) []int {
	strides, step := make([]int, len(s)), 1
	for d := len(s) - 1; d >= 0; d-- {
		strides[d] = step
		step *= s[d]
	}
	return strides
}

// broadcastStrides are those of a tensor of shape s as if it were of shape to: 0 where it is repeated. Dimensions are
// matched from the last on.
func broadcastStrides(s, to tensor.Shape) []int {
	own, strides := stridesOf(s), make([]int, len(to))
	for d := range s {
		if s[d] != 1 {
			strides[len(to)-len(s)+d] = own[d]
		}
	}
	return strides
}

// axisOf is an axis counted from the first; a negative one counts from the end.
func axisOf(axis, rank int) (int, error) {
	if axis < -rank || axis >= rank {
		if rank == 0 {
			return 0, fmt.Errorf("axis %d of a scalar, which has none", axis)
		}
		return 0, fmt.Errorf("axis %d of %d dimensions, want %d to %d", axis, rank, -rank, rank-1)
	}
	if axis < 0 {
		axis += rank
	}
	return axis, nil
}

// lastDimension is the extent of the last dimension, and how many rows of it there are.
func lastDimension(s tensor.Shape) (rows, width int, err error) {
	if len(s) == 0 {
		return 0, 0, errors.New("a scalar, want a tensor of a dimension or more")
	}
	rows, err = s[:len(s)-1].Elements()
	return rows, s[len(s)-1], err
}

// width is the extent of a tensor's last dimension.
func width(t *tensor.Tensor) int { return t.Dim(t.Rank() - 1) }
