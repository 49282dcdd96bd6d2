package ir

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gogcl.dev/internal/kernel"
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

// number is what is computed in.
type number interface {
	int32 | int64 | uint32 | float32 | float64
}

type signed interface {
	int32 | int64 | float32 | float64
}

type float interface{ float32 | float64 }

// The element types that operations take.
var (
	floatTypes  = []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64}
	signedTypes = append(slices.Clone(floatTypes), tensor.I32, tensor.I64)
	numberTypes = append(slices.Clone(signedTypes), tensor.U32)
	valueTypes  = append(slices.Clone(numberTypes), tensor.Bool)
	boolTypes   = []tensor.DType{tensor.Bool}
)

// takes returns an error if an element type is none of those.
func takes(types []tensor.DType, d tensor.DType) error {
	if slices.Contains(types, d) {
		return nil
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	last := len(names) - 1
	if last > 0 {
		names = append(names[:last-1], names[last-1]+" or "+names[last])
	}
	return fmt.Errorf("element type %v, want %s", d, strings.Join(names, ", "))
}

// sameType returns the element type that all inputs have, one of those, or an error.
func sameType(types []tensor.DType, in ...Spec) (tensor.DType, error) {
	for _, s := range in {
		if s.DType != in[0].DType {
			return 0, fmt.Errorf("element types %v and %v, want the same: Cast makes them so", in[0].DType, s.DType)
		}
	}
	return in[0].DType, takes(types, in[0].DType)
}

// broadcast returns the shape that all inputs have when dimensions of 1, and those that are missing in front, are
// repeated to fit the others.
func broadcast(in ...Spec) (tensor.Shape, error) {
	rank := 0
	for _, s := range in {
		rank = max(rank, len(s.Shape))
	}
	out := make(tensor.Shape, rank)
	for i := range out {
		out[i] = 1
	}
	for k, s := range in {
		skip := rank - len(s.Shape)
		for i, n := range s.Shape {
			switch at := &out[skip+i]; {
			case n == *at || n == 1:
			case *at == 1:
				*at = n
			default:
				other, own := 0, 0 // the input that the dimension is from, and which of its own it is
				for other = range in[:k] {
					own = skip + i - rank + len(in[other].Shape)
					if own >= 0 && in[other].Shape[own] == *at {
						break
					}
				}
				return nil, fmt.Errorf("dimension %d of input %d, of shape %v, is %d, and dimension %d of input %d, "+
					"of shape %v, is %d: "+
					"shapes are matched from their last dimensions on, which must be equal, or one of them 1",
					i, k, s.Shape, n, own, other, in[other].Shape, *at)
			}
		}
	}
	return out, out.Validate()
}

// walk goes through the elements of one tensor in the order of those of another shape, to which it is broadcast. They
// come in runs: of elements side by side, or of one element again and again.
type walk struct {
	length  int   // of a run
	step    int   // from element to element of a run: 1 or 0
	extents []int // of the dimensions outside a run, the outermost first
	strides []int // from one index to the next in each of them

	index []int
	run   int // where the run in progress begins
	left  int // elements that it still has
}

// newWalk makes a walk, which begins with rewind.
func newWalk(from, to tensor.Shape) walk {
	type dimension struct{ extent, stride int }
	var dims []dimension // innermost first
	stride := 1
	for i := len(to) - 1; i >= 0; i-- {
		own := 1
		if k := i - (len(to) - len(from)); k >= 0 {
			own = from[k]
		}
		if to[i] == 1 {
			continue
		}
		d := dimension{to[i], stride}
		if own == 1 {
			d.stride = 0
		}
		stride *= own
		if k := len(dims) - 1; k >= 0 && d.stride == dims[k].stride*dims[k].extent {
			dims[k].extent *= d.extent
			continue
		}
		dims = append(dims, d)
	}
	w := walk{length: 1, step: 1}
	if len(dims) > 0 {
		w.length, w.step = dims[0].extent, dims[0].stride
		dims = dims[1:]
	}
	for _, d := range slices.Backward(dims) {
		w.extents, w.strides = append(w.extents, d.extent), append(w.strides, d.stride)
	}
	w.index = make([]int, len(dims))
	return w
}

func (w *walk) rewind() {
	clear(w.index)
	w.run, w.left = 0, w.length
}

// at is where the next element is.
func (w *walk) at() int { return w.run + w.step*(w.length-w.left) }

// advance goes on by n elements, no more than are left in the run.
func (w *walk) advance(n int) {
	if w.left -= n; w.left > 0 {
		return
	}
	w.left = w.length
	for d := len(w.index) - 1; d >= 0; d-- {
		w.index[d]++
		w.run += w.strides[d]
		if w.index[d] < w.extents[d] {
			return
		}
		w.run -= w.strides[d] * w.extents[d]
		w.index[d] = 0
	}
}

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
func blockBytes(d tensor.DType) int { return roundUp(blockElements * computedSize(d)) }

// blocksBytes is the scratch that blocks of all inputs and an output take.
func blocksBytes(out tensor.DType, in ...Spec) int {
	n := blockBytes(out)
	for _, s := range in {
		n += blockBytes(s.DType)
	}
	return n
}

// cutter gives parts of an operation's scratch.
type cutter []byte

func (c *cutter) cut(n int) []byte {
	out := (*c)[:n:n]
	*c = (*c)[n:]
	return out
}

func (c *cutter) block(t *tensor.Tensor) []byte {
	n := blockElements * computedSize(t.DType())
	return c.cut(roundUp(n))[:n]
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

// canonicalNaN is what every NaN that is computed becomes, as package kernel has it: which of their bits processors set
// differs.
var canonicalNaN = math.Float64frombits(0x7ff8000000000000)

// canonical is v, or the canonical NaN for any NaN.
func canonical[T number](v T) T {
	if v != v {
		return T(canonicalNaN)
	}
	return v
}

// numberOf returns a scalar of an element type with the value of v. It is an error if an integer type cannot hold v
// exactly, or v is finite and a float type has only infinity for it.
func numberOf(d tensor.DType, v float64) (*tensor.Tensor, error) {
	finite := !math.IsInf(v, 0)
	var out *tensor.Tensor
	ok := true
	switch d {
	case tensor.F16:
		h := tensor.Float16FromFloat32(kernel.OddF32(v))
		out, ok = tensor.Scalar(h), !h.IsInf(0) || !finite
	case tensor.BF16:
		h := tensor.BFloat16FromFloat32(kernel.OddF32(v))
		out, ok = tensor.Scalar(h), !h.IsInf(0) || !finite
	case tensor.F32:
		out, ok = tensor.Scalar(float32(v)), !math.IsInf(float64(float32(v)), 0) || !finite
	case tensor.F64:
		out = tensor.Scalar(v)
	default:
		lo, hi := integerRange(d)
		if v != math.Trunc(v) || !(v >= lo && v < hi) {
			return nil, fmt.Errorf("the number %v, want one that %v can hold", v, d)
		}
		switch d {
		case tensor.I32:
			out = tensor.Scalar(int32(v))
		case tensor.I64:
			out = tensor.Scalar(int64(v))
		case tensor.U32:
			out = tensor.Scalar(uint32(v))
		default:
			return nil, takes(numberTypes, d)
		}
	}
	if !ok {
		return nil, fmt.Errorf("the number %v, want one that %v can hold: it would become infinite", v, d)
	}
	return out, nil
}

// integerRange is the least value of an integer type, and the first that is too large.
func integerRange(d tensor.DType) (lo, hi float64) {
	bits := 8 * d.Size()
	if d.IsSigned() {
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
	}
	return 0, math.Ldexp(1, bits)
}

// wrapInput says what an error is about, if there is one.
func wrapInput(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
