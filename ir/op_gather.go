package ir

import (
	"errors"
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// GatherRows takes rows of a table by their numbers: element i of the result is table[indices[i]]. table is of any type
// and has a dimension or more, of which the first counts the rows; indices is of int32 or uint32, in any shape. The
// result's shape is that of indices and then that of a row. Only table has a gradient: zeros, to which the gradients of
// the rows are added in the order of indices, in float32 for floats of 16 bits. Errors: other types, a scalar as table;
// when it runs, an index that is no row.
func GatherRows(table, indices *Tensor) *Tensor {
	return Apply1(gatherOp{}, nil, table, indices)
}

type gatherOp struct{}

func (gatherOp) Name() string { return "gather rows" }

func (gatherOp) Infer(in []Spec) ([]Spec, error) {
	if err := checkIndices("indices", in[1]); err != nil {
		return nil, err
	}
	if len(in[0].Shape) == 0 {
		return nil, errors.New("the table is a scalar, want a dimension or more")
	}
	shape := append(in[1].Shape.Clone(), in[0].Shape[1:]...)
	return []Spec{{Shape: shape, DType: in[0].DType}}, shape.Validate()
}

func (gatherOp) Bind(m *Memory) (func() error, error) {
	dst, table := m.Out[0].Bytes(), rowsOf(m.In[0], m.In[1])
	return func() error {
		for i := range table.len() {
			row, err := table.row(i)
			if err != nil {
				return err
			}
			copy(dst[i*table.bytes:], row)
		}
		return nil
	}, nil
}

// rows are those of a table, by indices.
type rows struct {
	indices
	table []byte
	count int
	bytes int // of one
}

func rowsOf(table, numbers *tensor.Tensor) *rows {
	r := &rows{indices: indicesOf(numbers), table: table.Bytes(), count: table.Dim(0)}
	if r.count > 0 {
		r.bytes = len(r.table) / r.count
	}
	return r
}

// row is that of index i.
func (r *rows) row(i int) ([]byte, error) {
	k := r.at(i)
	if k < 0 || k >= int64(r.count) {
		return nil, fmt.Errorf("index %d is %d, and the table has %d rows", i, k, r.count)
	}
	return r.table[int(k)*r.bytes:][:r.bytes], nil
}

// Gradient implements Differentiable.
func (gatherOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Apply1(&scatterAddOp{b.InSpec(0).Shape}, nil, b.Grad(0), b.In(1)), nil}
}

// scatterAddOp adds rows to those of a table of zeros that has this shape.
type scatterAddOp struct{ shape tensor.Shape }

func (o *scatterAddOp) Name() string { return "scatter add rows" }

func (o *scatterAddOp) Infer(in []Spec) ([]Spec, error) {
	return []Spec{{Shape: o.shape, DType: in[0].DType}}, nil
}

func (o *scatterAddOp) ScratchBytes(in []Spec) int { return wideBytes(o, in) }

func (o *scatterAddOp) Bind(m *Memory) (func() error, error) {
	return bindWide(m, bindScatterAdd, bindScatterAdd)
}

func bindScatterAdd(m *Memory) (func() error, error) {
	src, dst, table := m.In[0].Bytes(), m.Out[0].Bytes(), rowsOf(m.Out[0], m.In[1])
	add := kernel.Binary(kernel.Add, kernel.Type(m.Out[0].DType()))
	return func() error {
		clear(dst)
		for i := range table.len() {
			row, err := table.row(i)
			if err != nil {
				return err
			}
			add(row, row, src[i*table.bytes:][:table.bytes])
		}
		return nil
	}, nil
}

// Gradient implements Differentiable.
func (o *scatterAddOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{GatherRows(b.Grad(0), b.In(1)), nil}
}
