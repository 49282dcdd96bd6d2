package ir

import (
	"fmt"
	"slices"

	"gogcl.dev/tensor"
)

// Slice is a part of a tensor of any type: in dimension d, what is from starts[d] to before ends[d]. Errors: not one
// start and one end for each dimension, or not 0 <= start <= end <= extent.
func Slice(t *Tensor, starts, ends []int) *Tensor {
	return Apply1(&sliceOp{slices.Clone(starts), slices.Clone(ends)}, nil, t)
}

// SliceAxis is Slice in one dimension; a negative axis counts from the end.
func SliceAxis(t *Tensor, axis, start, end int) *Tensor {
	return Apply1(&sliceAxisOp{axis, start, end}, nil, t)
}

type sliceOp struct{ starts, ends []int }

func (o *sliceOp) Name() string { return "slice" }

func (o *sliceOp) Infer(in []Spec) ([]Spec, error) {
	s := in[0].Shape
	if len(o.starts) != len(s) || len(o.ends) != len(s) {
		return nil, fmt.Errorf("%d starts and %d ends for %d dimensions, want one of each",
			len(o.starts), len(o.ends), len(s))
	}
	shape := make(tensor.Shape, len(s))
	for d, extent := range s {
		lo, hi := o.starts[d], o.ends[d]
		if lo < 0 || hi < lo || hi > extent {
			return nil, fmt.Errorf("from %d to %d in dimension %d, want 0 <= start <= end <= %d", lo, hi, d, extent)
		}
		shape[d] = hi - lo
	}
	return []Spec{{Shape: shape, DType: in[0].DType}}, nil
}

func (o *sliceOp) Bind(m *Memory) (func() error, error) {
	part := newBox(m.In[0].Shape(), o.starts, m.Out[0].Shape(), m.In[0].DType().Size())
	dst, src := m.Out[0].Bytes(), m.In[0].Bytes()
	return func() error {
		part.take(dst, src)
		return nil
	}, nil
}

// Gradient implements Differentiable: zeros but for the part.
func (o *sliceOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Apply1(&placeOp{o.starts, b.InSpec(0).Shape}, nil, b.Grad(0))}
}

// sliceAxisOp is sliceOp in one dimension of however many there are.
type sliceAxisOp struct{ axis, start, end int }

func (o *sliceAxisOp) Name() string { return "slice" }

func (o *sliceAxisOp) whole(s tensor.Shape) (*sliceOp, error) {
	axis, err := axisOf(o.axis, len(s))
	if err != nil {
		return nil, err
	}
	whole := &sliceOp{make([]int, len(s)), s.Clone()}
	whole.starts[axis], whole.ends[axis] = o.start, o.end
	return whole, nil
}

func (o *sliceAxisOp) Infer(in []Spec) ([]Spec, error) {
	whole, err := o.whole(in[0].Shape)
	if err != nil {
		return nil, err
	}
	return whole.Infer(in)
}

func (o *sliceAxisOp) Bind(m *Memory) (func() error, error) {
	whole, err := o.whole(m.In[0].Shape())
	if err != nil {
		return nil, err
	}
	return whole.Bind(m)
}

// Gradient implements Differentiable.
func (o *sliceAxisOp) Gradient(b *Backward) []*Tensor {
	whole, err := o.whole(b.InSpec(0).Shape)
	if err != nil { // Infer has found none
		return nil
	}
	return whole.Gradient(b)
}

// placeOp puts a tensor into zeros of a shape.
type placeOp struct {
	starts []int
	shape  tensor.Shape
}

func (o *placeOp) Name() string { return "place" }

func (o *placeOp) Infer(in []Spec) ([]Spec, error) {
	return []Spec{{Shape: o.shape, DType: in[0].DType}}, nil
}

func (o *placeOp) Bind(m *Memory) (func() error, error) {
	part := newBox(o.shape, o.starts, m.In[0].Shape(), m.In[0].DType().Size())
	dst, src := m.Out[0].Bytes(), m.In[0].Bytes()
	return func() error {
		clear(dst)
		part.put(dst, src)
		return nil
	}, nil
}

// Gradient implements Differentiable.
func (o *placeOp) Gradient(b *Backward) []*Tensor {
	ends := b.InSpec(0).Shape
	for d := range ends {
		ends[d] += o.starts[d]
	}
	return []*Tensor{Slice(b.Grad(0), o.starts, ends)}
}
