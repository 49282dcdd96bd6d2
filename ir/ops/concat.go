package ops

import (
	"fmt"

	"gogcl.dev/ir"
)

// Concat joins tensors of one type, which may be any, along an axis; a negative one counts from the end. Their other
// extents are equal. Errors: an axis that they do not have, different types or shapes. Of no tensors it is a tensor
// that stands for an error, but knows no program that could return one.
func Concat(axis int, ts ...*ir.Tensor) *ir.Tensor {
	return (&row{
		name:  "concat",
		infer: func(in []ir.Spec) ([]ir.Spec, error) { return inferConcat(in, axis) },
		bind:  func(m *ir.Memory) (func() error, error) { return bindConcat(m, axis) },
		back: func(b *ir.Backward) []*ir.Tensor { // to each its part
			var out []*ir.Tensor
			for i, at := 0, 0; i < b.Inputs(); i++ {
				s := b.InSpec(i).Shape
				axis, err := axisOf(axis, len(s))
				if err != nil { // infer has found none
					return nil
				}
				out = append(out, SliceAxis(b.Grad(0), axis, at, at+s[axis]))
				at += s[axis]
			}
			return out
		},
	}).of(ts...)
}

func inferConcat(in []ir.Spec, axis int) ([]ir.Spec, error) {
	shape := in[0].Shape.Clone()
	axis, err := axisOf(axis, len(shape))
	if err != nil {
		return nil, err
	}
	for i, s := range in[1:] {
		if s.DType != in[0].DType {
			return nil, fmt.Errorf("input %d is of %v, want %v as input 0 is", i+1, s.DType, in[0].DType)
		}
		if len(s.Shape) != len(shape) {
			return nil, fmt.Errorf("input %d has %d dimensions, want %d as input 0 has", i+1, len(s.Shape), len(shape))
		}
		for d, extent := range s.Shape {
			if d == axis {
				shape[d] += extent
			} else if extent != shape[d] {
				return nil, fmt.Errorf("input %d has %d in dimension %d, want %d as input 0 has",
					i+1, extent, d, shape[d])
			}
		}
	}
	return []ir.Spec{{Shape: shape, DType: in[0].DType}}, shape.Validate()
}

func bindConcat(m *ir.Memory, axis int) (func() error, error) {
	shape, dst := m.Out[0].Shape(), m.Out[0].Bytes()
	axis, err := axisOf(axis, len(shape))
	if err != nil {
		return nil, err
	}
	starts := make([]int, len(shape))
	var parts []*box
	var srcs [][]byte
	for _, t := range m.In {
		parts = append(parts, newBox(shape, starts, t.Shape(), t.DType().Size()))
		srcs = append(srcs, t.Bytes())
		starts[axis] += t.Dim(axis)
	}
	return func() error {
		for i, part := range parts {
			part.put(dst, srcs[i])
		}
		return nil
	}, nil
}
