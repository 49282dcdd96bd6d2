package collective

import (
	"fmt"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// This file holds what gradients need beside collectives: operations that send nothing, but depend on a replica's rank
// or on the size of its group.

// part is the gradient of a Local reduce-scatter: the input is the replica's part of the output, and the rest zeros.
type part struct{ shape tensor.Shape }

func (a part) Name() string { return "own part in zeros" }

func (a part) infer(in []ir.Spec, _ int) ([]ir.Spec, error) {
	if err := one(in); err != nil {
		return nil, err
	}
	return valid(in[0].DType, a.shape...)
}

func (a part) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	dst, src := m.Out[0].Bytes(), m.In[0].Bytes()
	if have, want := m.In[0].Len(), chunks.PerRank(m.Out[0].Len(), c.Size()); have != want {
		return nil, fmt.Errorf("a part of %d elements, want %d of %d over %d ranks",
			have, want, m.Out[0].Len(), c.Size())
	}
	lo := min(c.Rank()*len(src), len(dst))
	hi := min(lo+len(src), len(dst))
	return func() error {
		clear(dst[:lo])
		copy(dst[lo:hi], src)
		clear(dst[hi:])
		return nil
	}, nil
}

// gradient takes the own part: of what is done with the zeros nothing comes back.
func (a part) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	return c.ownParts(b, gcl.Local, []int{0})
}

// weighted is what an input of a reduction gets of the gradient of that. An operator that divides leaves each input its
// share. One that squares leaves twice as much as the input, which is the second input of weighted. In a group of one,
// where nothing is divided or squared, an input gets all of it.
type weighted struct{ operator gcl.Operator }

func (a weighted) Name() string   { return "gradient weight" }
func (a weighted) String() string { return a.operator.String() }

func (a weighted) infer(in []ir.Spec, _ int) ([]ir.Spec, error) {
	want := 1
	if a.operator.Squares() {
		want = 2
	}
	if len(in) != want || !in[0].DType.IsFloat() || !in[0].Equal(in[want-1]) {
		return nil, fmt.Errorf("want floats, %d tensors alike", want)
	}
	return in[:1], nil
}

func (a weighted) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	switch m.Out[0].DType() {
	case tensor.F64:
		return bindWeighted(a, m, c, same[float64], same[float64])
	case tensor.F32:
		return bindWeighted(a, m, c, same[float32], same[float32])
	case tensor.F16:
		return bindWeighted(a, m, c, tensor.Float16.Float32, tensor.Float16FromFloat32)
	default:
		return bindWeighted(a, m, c, tensor.BFloat16.Float32, tensor.BFloat16FromFloat32)
	}
}

func same[T any](v T) T { return v }

// bindWeighted computes elements of type T in type F.
func bindWeighted[T tensor.Element, F float32 | float64](a weighted, m *ir.Memory, c *gcl.Comm, wide func(T) F,
	narrow func(F) T) (func() error, error) {
	dst, err := tensor.Of[T](m.Out[0])
	if err != nil {
		return nil, err
	}
	grad, err := tensor.Of[T](m.In[0])
	if err != nil {
		return nil, err
	}
	x, err := tensor.Of[T](m.In[len(m.In)-1])
	if err != nil {
		return nil, err
	}
	ranks := F(c.Size())
	return func() error {
		switch {
		case c.Size() == 1:
			copy(dst, grad)
		case a.operator.Squares():
			for i, g := range grad {
				dst[i] = narrow(2 * wide(x[i]) * wide(g))
			}
		default:
			for i, g := range grad {
				dst[i] = narrow(wide(g) / ranks)
			}
		}
		return nil
	}, nil
}

func (a weighted) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	if a.operator.Squares() {
		b.Fail(fmt.Errorf("there is no gradient of that of %v", a.operator))
		return nil
	}
	return []*ir.Tensor{c.applyAlone(a, b.Grad(0))}
}
