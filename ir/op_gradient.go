package ir

import (
	"errors"
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// sumOp adds two gradients.
type sumOp struct{}

func (sumOp) Name() string { return "sum" }

func (sumOp) Infer(in []Spec) ([]Spec, error) {
	if !in[0].Equal(in[1]) || !in[0].DType.IsFloat() {
		return nil, errors.New("want two tensors of floats of one spec")
	}
	return in[:1], nil
}

func (sumOp) Bind(m *Memory) (func() error, error) {
	add := kernel.Binary(kernel.Add, kernel.Type(m.In[0].DType()))
	dst, a, b := m.Out[0].Bytes(), m.In[0].Bytes(), m.In[1].Bytes()
	return func() error {
		add(dst, a, b)
		return nil
	}, nil
}

// Gradient implements Differentiable.
func (sumOp) Gradient(b *Backward) []*Tensor { return []*Tensor{b.Grad(0), b.Grad(0)} }

// turnOp takes from what a loop has kept of every turn that of one, whose number is its second input.
type turnOp struct{}

func (turnOp) Name() string { return "turn" }

func (turnOp) Infer(in []Spec) ([]Spec, error) {
	if len(in[0].Shape) == 0 || in[1].DType != tensor.I32 || len(in[1].Shape) > 0 {
		return nil, errors.New("want a tensor of a dimension or more, and a scalar of int32")
	}
	return []Spec{{Shape: in[0].Shape[1:], DType: in[0].DType}}, nil
}

func (turnOp) Bind(m *Memory) (func() error, error) {
	turn, err := tensor.Of[int32](m.In[1])
	if err != nil {
		return nil, err
	}
	dst, src, count := m.Out[0].Bytes(), m.In[0].Bytes(), m.In[0].Dim(0)
	return func() error {
		k := int(turn[0])
		if k < 0 || k >= count {
			return fmt.Errorf("turn %d of %d", k, count)
		}
		copy(dst, src[k*len(dst):])
		return nil
	}, nil
}

// beforeOp is the number of the turn before.
type beforeOp struct{}

func (beforeOp) Name() string { return "turn before" }

func (beforeOp) Infer(in []Spec) ([]Spec, error) { return in, nil }

func (beforeOp) Bind(m *Memory) (func() error, error) {
	from, err := tensor.Of[int32](m.In[0])
	if err != nil {
		return nil, err
	}
	to, err := tensor.Of[int32](m.Out[0])
	if err != nil {
		return nil, err
	}
	return func() error {
		to[0] = from[0] - 1
		return nil
	}, nil
}
