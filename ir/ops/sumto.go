package ops

import (
	"errors"
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// sumTo undoes broadcasting: it sums t, of floats, over the dimensions in which a tensor of the given shape has been
// repeated to t's. Elements are folded in the order in which they lie, those that lie side by side in four lanes;
// 16-bit floats are rounded once.
func sumTo(t *ir.Tensor, shape tensor.Shape) *ir.Tensor {
	if t == nil || t.Shape().Equal(shape) {
		return t
	}
	return sumToRow(shape).of(t)
}

func sumToRow(shape tensor.Shape) *row {
	return &row{
		name: "sum to", says: fmt.Sprintf("sum to %v", shape),
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if err := takes(floatTypes, in[0].DType); err != nil {
				return nil, err
			}
			if !broadcastsTo(shape, in[0].Shape) {
				return nil, fmt.Errorf("the sum in shape %v, want one that can be repeated to %v", shape, in[0].Shape)
			}
			return []ir.Spec{{Shape: shape, DType: in[0].DType}}, nil
		},
		// A block of the input, and for 16-bit floats all of the output as float32.
		scratch: func(in []ir.Spec) int {
			n := blockBytes(in[0].DType)
			if in[0].DType.Size() == 2 {
				n += 4 * ir.Spec{Shape: shape, DType: in[0].DType}.Elements()
			}
			return n
		},
		bind: func(m *ir.Memory) (func() error, error) {
			if m.In[0].DType() == tensor.F64 {
				return bindSumTo[float64](m)
			}
			return bindSumTo[float32](m)
		},
		back: func(b *ir.Backward) []*ir.Tensor {
			return []*ir.Tensor{Expand(b.Grad(0), b.InSpec(0).Shape...)}
		},
	}
}

func bindSumTo[T float](m *ir.Memory) (func() error, error) {
	src, dst := m.In[0], m.Out[0]
	c := cutter(m.Scratch)
	x, err1 := newReader[T](src, src.Shape(), c.block(src))
	sums := dst.Bytes()
	narrow := kernel.Narrow(kernel.Type(dst.DType()))
	if narrow != nil {
		sums = c.cut(4 * dst.Len())
	}
	acc, err2 := tensor.FromBytes[T](sums)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	w, total, fold := newWalk(dst.Shape(), src.Shape()), src.Len(), folded[T](kernel.Add)
	return func() error {
		clear(acc)
		x.rewind()
		w.rewind()
		for done := 0; done < total; {
			n, at := min(w.left, blockElements), w.at()
			v := x.take(n)
			if w.step == 1 {
				fold(acc[at:at+n], acc[at:at+n], v)
			} else {
				acc[at] = canonical(acc[at] + sumRun[T, T](v))
			}
			w.advance(n)
			done += n
		}
		if narrow != nil {
			narrow(dst.Bytes(), sums)
		}
		return nil
	}, nil
}
