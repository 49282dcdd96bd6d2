package ir

import (
	"errors"
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// sumTo undoes broadcasting: it sums t, of floats, over the dimensions in which a tensor of the given shape has been
// repeated to t's. Elements are folded in the order in which they lie, those that lie side by side in four lanes;
// 16-bit floats are rounded once.
func sumTo(t *Tensor, shape tensor.Shape) *Tensor {
	if t == nil || !t.failed() && t.sp.Shape.Equal(shape) {
		return t
	}
	return Apply1(&sumToOp{shape.Clone()}, nil, t)
}

type sumToOp struct{ shape tensor.Shape }

func (o *sumToOp) Name() string   { return "sum to" }
func (o *sumToOp) String() string { return fmt.Sprintf("sum to %v", o.shape) }

func (o *sumToOp) Infer(in []Spec) ([]Spec, error) {
	if err := takes(floatTypes, in[0].DType); err != nil {
		return nil, err
	}
	out := Spec{o.shape, in[0].DType}
	if shape, err := broadcast(in[0], out); err != nil || !shape.Equal(in[0].Shape) {
		return nil, fmt.Errorf("the sum in shape %v, want one that can be repeated to %v", o.shape, in[0].Shape)
	}
	return []Spec{out}, nil
}

// ScratchBytes: a block of the input, and for 16-bit floats all of the output as float32.
func (o *sumToOp) ScratchBytes(in []Spec) int {
	n := blockBytes(in[0].DType)
	if in[0].DType.Size() == 2 {
		n += 4 * Spec{o.shape, in[0].DType}.Elements()
	}
	return n
}

func (o *sumToOp) Bind(m *Memory) (func() error, error) {
	if m.In[0].DType() == tensor.F64 {
		return bindSumTo[float64](m)
	}
	return bindSumTo[float32](m)
}

func (o *sumToOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Expand(b.Grad(0), b.InSpec(0).Shape...)}
}

func bindSumTo[T float](m *Memory) (func() error, error) {
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
				acc[at] = canonical(acc[at] + sum(v))
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

// sum adds the elements in four lanes, and then those.
func sum[T float](x []T) T {
	var s0, s1, s2, s3 T
	for ; len(x) >= 4; x = x[4:] {
		s0 += x[0]
		s1 += x[1]
		s2 += x[2]
		s3 += x[3]
	}
	for _, v := range x {
		s0 += v
	}
	return (s0 + s1) + (s2 + s3)
}
