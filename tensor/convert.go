package tensor

import (
	"fmt"
	"math"

	"gogcl.dev/internal/kernel"
)

// Convert makes the elements of dst those of src, in the type of dst. Both are of one shape, and share no memory.
//
//	float to float       rounded once to nearest even; infinite if too large
//	integer to float     the same
//	float to integer     rounded toward zero; the least or largest integer if too small or large; 0 for NaN
//	integer to integer   the lower bits, as Go has it: they wrap
//	bool to number       1 for true, 0 for false
//	number to bool       true unless 0; NaN is true
//
// It allocates nothing in steady state, but for more than 64 calls at once. Errors: a tensor that is nil or the zero
// Tensor, and shapes that differ.
func Convert(dst, src *Tensor) error {
	if err := checkConvert(dst, src); err != nil {
		return err
	}
	convert(dst.dtype, src.dtype, dst.data, src.data)
	return nil
}

// ConvertChecked is Convert, but for elements that the type of dst does not have: of an integer type a number that is
// no integer, or too small or large; of a float type a number that would become infinite; of bool what is not 0 or 1.
// The first of them is an error, which names it. dst then holds anything. It allocates 16 KiB.
func ConvertChecked(dst, src *Tensor) error {
	if err := checkConvert(dst, src); err != nil {
		return err
	}
	was, is := new([blockElements]float64), new([blockElements]float64)
	s, d := src.dtype.Size(), dst.dtype.Size()
	for at := 0; at < src.Len(); at += blockElements {
		n := min(blockElements, src.Len()-at)
		from, to := src.data[at*s:(at+n)*s], dst.data[at*d:(at+n)*d]
		convert(dst.dtype, src.dtype, to, from)
		convert(F64, src.dtype, Bytes(was[:n]), from)
		convert(F64, dst.dtype, Bytes(is[:n]), to)
		for i, v := range was[:n] {
			if !kept(v, is[i], src.dtype, dst.dtype) {
				return fmt.Errorf("tensor: element %d, %v, is no %v", at+i, v, dst.dtype)
			}
		}
	}
	return nil
}

// kept reports whether a number of one type, which has become another of a second, is one of the second.
func kept(was, is float64, from, to DType) bool {
	switch {
	case to.IsFloat():
		return !math.IsInf(is, 0) || math.IsInf(was, 0)
	case from.IsFloat() && was >= 1<<63: // the largest int64 is the same float64
		return to == U64 && was < 1<<64
	}
	return was == is
}

func checkConvert(dst, src *Tensor) error {
	switch {
	case dst == nil || src == nil || !dst.dtype.Valid() || !src.dtype.Valid():
		return fmt.Errorf("tensor: convert from or to no tensor, want one of New, FromSlice, Scalar or View")
	case !dst.shape.Equal(src.shape):
		return fmt.Errorf("tensor: convert %v of shape %v to shape %v, want one shape", src.dtype, src.shape, dst.shape)
	}
	return nil
}

// blockElements is how many elements are converted by way of another type at a time.
const blockElements = 1024

// block is where they are float32.
type block [blockElements]float32

// blocks are those that nobody uses: 256 KiB at most, which the garbage collector leaves alone.
var blocks = make(chan *block, 64)

func takeBlock() *block {
	select {
	case b := <-blocks:
		return b
	default:
		return new(block)
	}
}

func (b *block) give() {
	select {
	case blocks <- b:
	default:
	}
}

// integers are the elements that are integers.
type integers interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// numbers are what Go computes with.
type numbers interface{ integers | float32 | float64 }

// convert is Convert of the memory of elements. Where there is a loop of package kernel, it is taken.
func convert(to, from DType, dst, src []byte) {
	switch widen, narrow := kernel.Widen(kernel.Type(from)), kernel.Narrow(kernel.Type(to)); {
	case to == from:
		copy(dst, src)
	case to == F32 && widen != nil:
		widen(dst, src)
	case from == F32 && narrow != nil:
		narrow(dst, src)
	case widen != nil:
		wide := takeBlock()
		defer wide.give()
		for size := to.Size(); len(src) > 0; {
			n := min(blockElements, len(src)/2)
			widen(Bytes(wide[:n]), src[:2*n])
			convert(to, F32, dst[:n*size], Bytes(wide[:n]))
			dst, src = dst[n*size:], src[2*n:]
		}
	default:
		convertEach(to, from, dst, src)
	}
}

// convertEach is convert of what is no 16-bit float.
func convertEach(to, from DType, dst, src []byte) {
	switch from {
	case F32:
		ofFloat[float32](to, dst, src)
	case F64:
		ofFloat[float64](to, dst, src)
	case Bool, U8:
		ofInteger[uint8](to, dst, src)
	case U16:
		ofInteger[uint16](to, dst, src)
	case U32:
		ofInteger[uint32](to, dst, src)
	case U64:
		ofInteger[uint64](to, dst, src)
	case I8:
		ofInteger[int8](to, dst, src)
	case I16:
		ofInteger[int16](to, dst, src)
	case I32:
		ofInteger[int32](to, dst, src)
	case I64:
		ofInteger[int64](to, dst, src)
	}
}

func ofInteger[S integers](to DType, dst, src []byte) {
	v := elements[S](src)
	switch to {
	case F16, BF16:
		narrow(to, dst, v, oddOfIntegers[S])
	case F32:
		toNumbers[float32](dst, v)
	case F64:
		toNumbers[float64](dst, v)
	case Bool:
		toBools(dst, v)
	case I8, U8:
		toNumbers[uint8](dst, v)
	case I16, U16:
		toNumbers[uint16](dst, v)
	case I32, U32:
		toNumbers[uint32](dst, v)
	case I64:
		toNumbers[int64](dst, v)
	case U64:
		toNumbers[uint64](dst, v)
	}
}

func ofFloat[S float32 | float64](to DType, dst, src []byte) {
	v := elements[S](src)
	switch to {
	case F16, BF16:
		narrow(to, dst, v, oddOfFloats[S])
	case F32:
		toNumbers[float32](dst, v)
	case F64:
		toNumbers[float64](dst, v)
	case Bool:
		toBools(dst, v)
	case I8:
		truncate[int8](to, dst, v)
	case I16:
		truncate[int16](to, dst, v)
	case I32:
		truncate[int32](to, dst, v)
	case I64:
		truncate[int64](to, dst, v)
	case U8:
		truncate[uint8](to, dst, v)
	case U16:
		truncate[uint16](to, dst, v)
	case U32:
		truncate[uint32](to, dst, v)
	case U64:
		truncate[uint64](to, dst, v)
	}
}

// narrow makes 16-bit floats by way of float32s that can be rounded once more.
func narrow[S numbers](to DType, dst []byte, v []S, odd func(d []float32, v []S)) {
	wide, round := takeBlock(), kernel.Narrow(kernel.Type(to))
	defer wide.give()
	for len(v) > 0 {
		n := min(blockElements, len(v))
		odd(wide[:n], v[:n])
		round(dst[:2*n], Bytes(wide[:n]))
		dst, v = dst[2*n:], v[n:]
	}
}

func oddOfIntegers[S integers](d []float32, v []S) {
	for i, x := range v {
		d[i] = kernel.OddF32OfInt(x)
	}
}

func oddOfFloats[S float32 | float64](d []float32, v []S) {
	for i, x := range v {
		d[i] = kernel.OddF32(float64(x))
	}
}

func toNumbers[D, S numbers](dst []byte, v []S) {
	d := elements[D](dst)[:len(v)]
	for i, x := range v {
		d[i] = D(x)
	}
}

func toBools[S numbers](dst []byte, v []S) {
	dst = dst[:len(v)]
	for i, x := range v {
		var is byte
		if x != 0 {
			is = 1
		}
		dst[i] = is
	}
}

// truncate rounds toward zero and keeps within the type.
func truncate[D integers, S float32 | float64](to DType, dst []byte, v []S) {
	d := elements[D](dst)[:len(v)]
	lo, above := 0.0, math.Ldexp(1, 8*to.Size())
	if to.IsSigned() {
		lo, above = -above/2, above/2
	}
	least := D(lo)
	most := least - 1 // wraps
	for i, x := range v {
		switch x := float64(x); {
		case x != x:
			d[i] = 0
		case x <= lo:
			d[i] = least
		case x >= above:
			d[i] = most
		default:
			d[i] = D(x)
		}
	}
}
