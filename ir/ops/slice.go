package ops

import (
	"fmt"
	"slices"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Slice is a part of a tensor of any type: in dimension d, what is from starts[d] to before ends[d]. Errors: not one
// start and one end for each dimension, or not 0 <= start <= end <= extent.
func Slice(t *ir.Tensor, starts, ends []int) *ir.Tensor {
	starts, ends = slices.Clone(starts), slices.Clone(ends)
	return slice(t, func(tensor.Shape) ([]int, []int, error) { return starts, ends, nil })
}

// SliceAxis is Slice in one dimension; a negative axis counts from the end.
func SliceAxis(t *ir.Tensor, axis, start, end int) *ir.Tensor {
	return slice(t, func(s tensor.Shape) (starts, ends []int, err error) {
		axis, err := axisOf(axis, len(s))
		if err != nil {
			return nil, nil, err
		}
		starts, ends = make([]int, len(s)), s.Clone()
		starts[axis], ends[axis] = start, end
		return starts, ends, nil
	})
}

// slice is a part of a tensor, given where it is in one of some shape.
func slice(t *ir.Tensor, part func(s tensor.Shape) (starts, ends []int, err error)) *ir.Tensor {
	return (&row{
		name: "slice",
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			s := in[0].Shape
			starts, ends, err := part(s)
			if err != nil {
				return nil, err
			}
			if len(starts) != len(s) || len(ends) != len(s) {
				return nil, fmt.Errorf("%d starts and %d ends for %d dimensions, want one of each",
					len(starts), len(ends), len(s))
			}
			shape := make(tensor.Shape, len(s))
			for d, extent := range s {
				lo, hi := starts[d], ends[d]
				if lo < 0 || hi < lo || hi > extent {
					return nil, fmt.Errorf("from %d to %d in dimension %d, want 0 <= start <= end <= %d", lo, hi, d,
						extent)
				}
				shape[d] = hi - lo
			}
			return []ir.Spec{{Shape: shape, DType: in[0].DType}}, nil
		},
		bind: func(m *ir.Memory) (func() error, error) {
			starts, _, err := part(m.In[0].Shape())
			if err != nil {
				return nil, err
			}
			part := newBox(m.In[0].Shape(), starts, m.Out[0].Shape(), m.In[0].DType().Size())
			dst, src := m.Out[0].Bytes(), m.In[0].Bytes()
			return func() error {
				part.take(dst, src)
				return nil
			}, nil
		},
		back: func(b *ir.Backward) []*ir.Tensor {
			starts, _, err := part(b.InSpec(0).Shape)
			if err != nil { // infer has found none
				return nil
			}
			return []*ir.Tensor{place(b.Grad(0), starts, b.InSpec(0).Shape)}
		},
	}).of(t)
}

// place puts a tensor into zeros of a shape.
func place(t *ir.Tensor, starts []int, shape tensor.Shape) *ir.Tensor {
	return (&row{
		name:  "place",
		infer: func(in []ir.Spec) ([]ir.Spec, error) { return []ir.Spec{{Shape: shape, DType: in[0].DType}}, nil },
		bind: func(m *ir.Memory) (func() error, error) {
			part := newBox(shape, starts, m.In[0].Shape(), m.In[0].DType().Size())
			dst, src := m.Out[0].Bytes(), m.In[0].Bytes()
			return func() error {
				clear(dst)
				part.put(dst, src)
				return nil
			}, nil
		},
		back: func(b *ir.Backward) []*ir.Tensor {
			ends := b.InSpec(0).Shape
			for d := range ends {
				ends[d] += starts[d]
			}
			return []*ir.Tensor{Slice(b.Grad(0), starts, ends)}
		},
	}).of(t)
}
