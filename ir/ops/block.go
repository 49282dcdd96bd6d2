package ops

import (
	"errors"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Element by element, computation goes by blocks: each operand gives its next block as a slice of what is computed in,
// which is memory of the tensor itself where that has the elements side by side, and else a copy in the operation's
// scratch: of 16-bit floats as float32, and of what broadcasting repeats. A loop over slices does the rest.
//
//	float16, bfloat16   computed in float32, and rounded once for each operation
//	others              computed in their own type

// blockElements is how many elements a block has: three blocks of float32 are 12 KiB, a part of a first-level cache,
// and a call for each block costs less than a hundredth of its time.
const blockElements = 1024

// reader gives a tensor's elements, broadcast to a shape, in blocks.
type reader[C tensor.Element] struct {
	walk  walk
	data  []C                   // the tensor's, unless widen is there
	raw   []byte                // the tensor's
	widen func(dst, src []byte) // of 16-bit floats
	block []C

	filled int // so many elements of block are repetitions
	of     int // of this element
}

// newReader makes a reader, with scratch for a block.
func newReader[C tensor.Element](t *tensor.Tensor, to tensor.Shape, scratch []byte) (*reader[C], error) {
	r := &reader[C]{walk: newWalk(t.Shape(), to), raw: t.Bytes()}
	if tensor.DTypeOf[C]() == tensor.F32 {
		r.widen = kernel.Widen(kernel.Type(t.DType()))
	}
	var err error
	if r.widen == nil {
		if r.data, err = tensor.FromBytes[C](r.raw); err != nil {
			return nil, err
		}
	}
	r.block, err = tensor.FromBytes[C](scratch)
	return r, err
}

func (r *reader[C]) rewind() {
	r.walk.rewind()
	r.filled = 0
}

// take returns the next n elements, which stay until the next call. n is no more than a block.
func (r *reader[C]) take(n int) []C {
	w := &r.walk
	at := w.at()
	if w.left >= n {
		if w.step == 1 && r.widen == nil {
			w.advance(n)
			return r.data[at : at+n]
		}
		if w.step == 0 && r.filled >= n && r.of == at {
			w.advance(n)
			return r.block[:n]
		}
	}
	for k := 0; k < n; {
		at = w.at()
		m := min(n-k, w.left)
		r.read(r.block[k:k+m], at, w.step)
		w.advance(m)
		r.filled, r.of = 0, at
		if k == 0 && w.step == 0 {
			r.filled = m
		}
		k += m
	}
	return r.block[:n]
}

// read puts elements into a block.
func (r *reader[C]) read(dst []C, at, step int) {
	one := dst
	if step == 0 {
		one = dst[:1]
	}
	if r.widen != nil {
		r.widen(tensor.Bytes(one), r.raw[2*at:2*(at+len(one))])
	} else {
		copy(one, r.data[at:at+len(one)])
	}
	if step == 0 {
		fill(dst)
	}
}

// fill repeats the first element: the first few one by one, and then all that there are at a time.
func fill[C tensor.Element](dst []C) {
	const few = 16
	v := dst[0]
	for i := range dst[:min(few, len(dst))] {
		dst[i] = v
	}
	for n := few; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// writer stores a tensor's elements in blocks.
type writer[D tensor.Element] struct {
	data   []D
	raw    []byte
	narrow func(dst, src []byte) // to 16-bit floats
	block  []D
}

func newWriter[D tensor.Element](t *tensor.Tensor, scratch []byte) (*writer[D], error) {
	w := &writer[D]{raw: t.Bytes()}
	var err error
	if tensor.DTypeOf[D]() == tensor.F32 {
		if w.narrow = kernel.Narrow(kernel.Type(t.DType())); w.narrow != nil {
			w.block, err = tensor.FromBytes[D](scratch)
			return w, err
		}
	}
	w.data, err = tensor.FromBytes[D](w.raw)
	return w, err
}

// room is where the n elements from at on are to be put, before done is called.
func (w *writer[D]) room(at, n int) []D {
	if w.narrow != nil {
		return w.block[:n]
	}
	return w.data[at : at+n]
}

func (w *writer[D]) done(at, n int) {
	if w.narrow != nil {
		w.narrow(w.raw[2*at:2*(at+n)], tensor.Bytes(w.block[:n]))
	}
}

// computedSize is how many bytes an element has when it is computed with.
func computedSize(d tensor.DType) int {
	if d == tensor.F16 || d == tensor.BF16 {
		return 4
	}
	return d.Size()
}

// blockBytes is the scratch that one block of a tensor takes.
func blockBytes(d tensor.DType) int { return kernel.Lines(blockElements * computedSize(d)) }

// blocksBytes is the scratch that blocks of all inputs and an output take.
func blocksBytes(out tensor.DType, in ...ir.Spec) int {
	n := blockBytes(out)
	for _, s := range in {
		n += blockBytes(s.DType)
	}
	return n
}

// blocksOfInput is that of blocks of all inputs and of an output like the first.
func blocksOfInput(in []ir.Spec) int { return blocksBytes(in[0].DType, in...) }

// cutter gives parts of an operation's scratch.
type cutter []byte

func (c *cutter) cut(n int) []byte {
	out := (*c)[:n:n]
	*c = (*c)[n:]
	return out
}

func (c *cutter) block(t *tensor.Tensor) []byte {
	n := blockElements * computedSize(t.DType())
	return c.cut(kernel.Lines(n))[:n]
}

// each1 runs a loop over the elements of dst and of a tensor that is broadcast to its shape.
func each1[D, C tensor.Element](dst, x *tensor.Tensor, scratch []byte, f func(d []D, x []C)) (func() error, error) {
	c := cutter(scratch)
	rx, err1 := newReader[C](x, dst.Shape(), c.block(x))
	wd, err2 := newWriter[D](dst, c.block(dst))
	total := dst.Len()
	return func() error {
		rx.rewind()
		for at := 0; at < total; at += blockElements {
			n := min(blockElements, total-at)
			f(wd.room(at, n), rx.take(n))
			wd.done(at, n)
		}
		return nil
	}, errors.Join(err1, err2)
}

// each2 runs a loop over the elements of dst and of two tensors that are broadcast to its shape.
func each2[D, C tensor.Element](dst, x, y *tensor.Tensor, scratch []byte, f func(d []D, x,
	y []C)) (func() error, error) {
	c, shape := cutter(scratch), dst.Shape()
	rx, err1 := newReader[C](x, shape, c.block(x))
	ry, err2 := newReader[C](y, shape, c.block(y))
	wd, err3 := newWriter[D](dst, c.block(dst))
	total := dst.Len()
	return func() error {
		rx.rewind()
		ry.rewind()
		for at := 0; at < total; at += blockElements {
			n := min(blockElements, total-at)
			f(wd.room(at, n), rx.take(n), ry.take(n))
			wd.done(at, n)
		}
		return nil
	}, errors.Join(err1, err2, err3)
}

// folded is the kernel's loop of an operator, over slices.
func folded[T tensor.Element](op kernel.Op) func(d, x, y []T) {
	fold := kernel.Binary(op, kernel.Type(tensor.DTypeOf[T]()))
	return func(d, x, y []T) { fold(tensor.Bytes(d), tensor.Bytes(x), tensor.Bytes(y)) }
}
