package ir

import (
	"encoding/binary"
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

// turnOp takes from what a loop has kept of every turn that of one, whose number is its second input; or of all entries
// of a buffer one.
type turnOp struct{}

func (turnOp) Name() string { return "turn" }

// checkRow looks at a number of a row.
func checkRow(s Spec) error {
	switch s.DType {
	case tensor.I32, tensor.I64, tensor.U32:
		if len(s.Shape) == 0 {
			return nil
		}
	}
	return errors.New("want a scalar of int32, int64 or uint32 for the number")
}

func (turnOp) Infer(in []Spec) ([]Spec, error) {
	if len(in[0].Shape) == 0 {
		return nil, errors.New("want a tensor of a dimension or more")
	}
	return []Spec{{Shape: in[0].Shape[1:], DType: in[0].DType}}, checkRow(in[1])
}

// rowIn reads the number of one of so many rows.
func rowIn(t *tensor.Tensor, rows int) func() (int, error) {
	number := t.Bytes()
	return func() (int, error) {
		var k int64
		switch e := binary.NativeEndian; t.DType() {
		case tensor.I32:
			k = int64(int32(e.Uint32(number)))
		case tensor.I64:
			k = int64(e.Uint64(number))
		default:
			k = int64(e.Uint32(number))
		}
		if k < 0 || k >= int64(rows) {
			return 0, fmt.Errorf("number %v of %d", k, rows)
		}
		return int(k), nil
	}
}

// bindRow binds what is done with one of so many rows, whose number is the second input.
func bindRow(m *Memory, rows int, do func(dst, src []byte, k int)) (func() error, error) {
	dst, src, row := m.Out[0].Bytes(), m.In[0].Bytes(), rowIn(m.In[1], rows)
	return func() error {
		k, err := row()
		if err == nil {
			do(dst, src, k)
		}
		return err
	}, nil
}

func (turnOp) Bind(m *Memory) (func() error, error) {
	return bindRow(m, m.In[0].Dim(0), func(dst, src []byte, k int) { copy(dst, src[k*len(dst):]) })
}

// Gradient implements Differentiable.
func (turnOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Apply1(rowOp{b.InSpec(0).Shape[0]}, nil, b.Grad(0), b.In(1)), nil}
}

// rowOp makes so many rows of zeros, but for the one that is its first input, whose number is its second.
type rowOp struct{ rows int }

func (rowOp) Name() string { return "row" }

func (o rowOp) Infer(in []Spec) ([]Spec, error) {
	return []Spec{{Shape: append(tensor.Shape{o.rows}, in[0].Shape...), DType: in[0].DType}}, checkRow(in[1])
}

func (o rowOp) Bind(m *Memory) (func() error, error) {
	return bindRow(m, o.rows, func(dst, src []byte, k int) {
		clear(dst)
		copy(dst[k*len(src):], src)
	})
}

// Gradient implements Differentiable.
func (rowOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Apply1(turnOp{}, nil, b.Grad(0), b.In(1)), nil}
}

// withoutRowOp is its first input with zeros in the row whose number is its second.
type withoutRowOp struct{}

func (withoutRowOp) Name() string { return "without row" }

func (withoutRowOp) Infer(in []Spec) ([]Spec, error) {
	if len(in[0].Shape) == 0 {
		return nil, errors.New("want a tensor of a dimension or more")
	}
	return in[:1], checkRow(in[1])
}

func (withoutRowOp) Bind(m *Memory) (func() error, error) {
	rows := m.In[0].Dim(0)
	return bindRow(m, rows, func(dst, src []byte, k int) {
		size := len(dst) / rows
		copy(dst, src)
		clear(dst[k*size : (k+1)*size])
	})
}

// Gradient implements Differentiable.
func (withoutRowOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Apply1(withoutRowOp{}, nil, b.Grad(0), b.In(1)), nil}
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
