package collective

import (
	"errors"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// This file holds the gradient of Min and Max: each element's goes to the first rank that has the result. A rank claims
// what it has by its number, others by the number of ranks; the least claim wins.

// claim says, for each element of the input, the rank, if it is the result, which is the second input.
type claim struct{}

func (a claim) Name() string { return "claim" }

func (a claim) infer(in []ir.Spec, _ int) ([]ir.Spec, error) {
	if len(in) != 2 || !in[0].DType.IsFloat() || !in[0].Equal(in[1]) {
		return nil, errors.New("want floats, 2 tensors alike")
	}
	return valid(tensor.I32, in[0].Shape...)
}

func (a claim) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	switch m.In[0].DType() {
	case tensor.F64:
		return bindClaim(m, c, same[float64])
	case tensor.F32:
		return bindClaim(m, c, same[float32])
	case tensor.F16:
		return bindClaim(m, c, tensor.Float16.Float32)
	default:
		return bindClaim(m, c, tensor.BFloat16.Float32)
	}
}

func bindClaim[T tensor.Element, F float32 | float64](m *ir.Memory, c *gcl.Comm, wide func(T) F) (func() error, error) {
	dst, err := tensor.Of[int32](m.Out[0])
	if err != nil {
		return nil, err
	}
	in, err := tensor.Of[T](m.In[0])
	if err != nil {
		return nil, err
	}
	result, err := tensor.Of[T](m.In[1])
	if err != nil {
		return nil, err
	}
	own, none := int32(c.Rank()), int32(c.Size())
	return func() error {
		for i, v := range in {
			x, y := wide(v), wide(result[i])
			if x == y || x != x && y != y {
				dst[i] = own
			} else {
				dst[i] = none
			}
		}
		return nil
	}, nil
}

// gradient is none: claims are integers.
func (a claim) gradient(b *ir.Backward, _ Comm) []*ir.Tensor { return []*ir.Tensor{nil, nil} }

// won is the first input where this rank's claims, the second input, are the winning ones, which are the third, and
// zero elsewhere.
type won struct{}

func (a won) Name() string { return "won" }

func (a won) infer(in []ir.Spec, _ int) ([]ir.Spec, error) {
	if len(in) != 3 || !in[0].DType.IsFloat() || in[1].DType != tensor.I32 || !in[1].Equal(in[2]) ||
		!in[0].Shape.Equal(in[1].Shape) {
		return nil, errors.New("want floats and two of int32 alike")
	}
	return in[:1], nil
}

func (a won) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	own, err := tensor.Of[int32](m.In[1])
	if err != nil {
		return nil, err
	}
	winning, err := tensor.Of[int32](m.In[2])
	if err != nil {
		return nil, err
	}
	dst, src, size, none := m.Out[0].Bytes(), m.In[0].Bytes(), m.In[0].DType().Size(), int32(c.Size())
	return func() error {
		for i, w := range winning {
			if lo, hi := i*size, (i+1)*size; own[i] == w && w < none {
				copy(dst[lo:hi], src[lo:hi])
			} else {
				clear(dst[lo:hi])
			}
		}
		return nil
	}, nil
}

func (a won) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	return []*ir.Tensor{c.applyAlone(a, b.Grad(0), b.In(1), b.In(2)), nil, nil}
}
