package kernel

import (
	"fmt"
	"math"
	"math/bits"
)

// Rows says where the rows lie that AddRows works on: row r of dst begins DstStride x r bytes from its start, and row r
// of src SrcStride x r bytes. Each has Bytes bytes of src's type. Of dst no two rows overlap, unless they are the same.
type Rows struct {
	Bytes                int
	DstStride, SrcStride int
}

// AddRows returns the loop
//
//	for _, p := range pairs { // in this order
//		for i := range the elements of a row { dst[row p>>32][i] += scale * src[row uint32(p)][i] }
//	}
//
// or nil when t is not a number. The product is rounded, then the sum; with 16-bit floats both are rounded to float32,
// and the sum then to t. scale holds the bits of a t, or with 16-bit floats those of a float32. A pair of a row outside
// dst or src panics before anything is written.
func AddRows(t Type) func(dst, src []byte, pairs []uint64, at Rows, scale uint64) {
	return at(&chosen.addRows, t)
}

// AddWideRows is AddRows with float32s in dst, which are added to and not rounded to t; nil when t is not a 16-bit
// float. Rows of dst have 2*Bytes bytes.
func AddWideRows(t Type) func(dst, src []byte, pairs []uint64, at Rows, scale uint64) {
	return at(&chosen.addWideRows, t)
}

// CopyRows is the loop
//
//	for _, p := range pairs { copy(dst row p>>32, src row uint32(p)) } // in this order
//
// A pair of a row outside dst or src panics before anything is written.
func CopyRows(dst, src []byte, pairs []uint64, at Rows) { chosen.copyRows(dst, src, pairs, at) }

func goCopyRows(dst, src []byte, pairs []uint64, at Rows) {
	at.check(dst, src, pairs, 1)
	for _, p := range pairs {
		copy(dst[int(p>>32)*at.DstStride:][:at.Bytes], src[int(p&math.MaxUint32)*at.SrcStride:])
	}
}

// rowsLoop is a loop over pairs of rows.
type rowsLoop = func(dst, src []byte, pairs []uint64, at Rows, scale uint64)

// check panics if a pair names a row outside dst or src. wide is how many times as long dst's rows are.
func (at Rows) check(dst, src []byte, pairs []uint64, wide int) {
	if len(pairs) == 0 || at.Bytes == 0 {
		return
	}
	var d, s uint64
	for _, p := range pairs {
		d, s = max(d, p>>32), max(s, p&math.MaxUint32)
	}
	if !inside(d, at.DstStride, wide*at.Bytes, len(dst)) || !inside(s, at.SrcStride, at.Bytes, len(src)) {
		panic(fmt.Sprintf("kernel: rows %d of %d bytes and %d of %d do not fit %+v", d, len(dst), s, len(src), at))
	}
}

// inside reports whether row r of so many bytes ends before length.
func inside(r uint64, stride, bytes, length int) bool {
	hi, lo := bits.Mul64(r, uint64(stride))
	return stride >= 0 && bytes >= 0 && bytes <= length && hi == 0 && lo <= uint64(length-bytes)
}

// goAddRows is AddRows in plain Go, or nil.
func goAddRows(t Type) rowsLoop {
	switch t {
	case Int8:
		return addRowsLoop[int8]
	case Int16:
		return addRowsLoop[int16]
	case Int32:
		return addRowsLoop[int32]
	case Int64:
		return addRowsLoop[int64]
	case Uint8:
		return addRowsLoop[uint8]
	case Uint16:
		return addRowsLoop[uint16]
	case Uint32:
		return addRowsLoop[uint32]
	case Uint64:
		return addRowsLoop[uint64]
	case Float32:
		return addRowsLoop[float32]
	case Float64:
		return addRowsLoop[float64]
	case Float16, BFloat16:
		return func(dst, src []byte, pairs []uint64, at Rows, scale uint64) {
			addHalfRows(t, false, dst, src, pairs, at, scale)
		}
	}
	return nil
}

// goAddWideRows is AddWideRows in plain Go, or nil.
func goAddWideRows(t Type) rowsLoop {
	if t != Float16 && t != BFloat16 {
		return nil
	}
	return func(dst, src []byte, pairs []uint64, at Rows, scale uint64) {
		addHalfRows(t, true, dst, src, pairs, at, scale)
	}
}

func addRowsLoop[T number](dst, src []byte, pairs []uint64, at Rows, scale uint64) {
	at.check(dst, src, pairs, 1)
	by := fromBits[T](scale)
	for _, p := range pairs {
		d := view[T](dst[int(p>>32)*at.DstStride:][:at.Bytes])
		addScaled(d, view[T](src[int(p&math.MaxUint32)*at.SrcStride:][:at.Bytes]), by)
	}
}

// addScaled is
//
//	for i := range dst { dst[i] += scale * src[i] } // a NaN made canonical
func addScaled[T number](dst, src []T, scale T) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = canonical(dst[i] + T(scale*src[i])) // the conversion keeps the product from being fused with the sum
	}
}

// fromBits is the element with these bits.
func fromBits[T number](b uint64) T {
	var t T
	switch p := any(&t).(type) {
	case *float32:
		*p = math.Float32frombits(uint32(b))
	case *float64:
		*p = math.Float64frombits(b)
	default:
		t = T(b)
	}
	return t
}

// addHalfRows has rows of 16-bit floats in src, and in dst the same, or with wide float32s.
func addHalfRows(t Type, wide bool, dst, src []byte, pairs []uint64, at Rows, scale uint64) {
	size := 2
	if wide {
		size = 4
	}
	at.check(dst, src, pairs, size/2)
	by := math.Float32frombits(uint32(scale))
	var x, y [halfBlock]float32
	for _, p := range pairs {
		d := dst[int(p>>32)*at.DstStride:][:at.Bytes/2*size]
		s := view[uint16](src[int(p&math.MaxUint32)*at.SrcStride:][:at.Bytes])
		for len(s) > 0 {
			n := min(len(s), halfBlock)
			widen16(t, y[:n], s[:n])
			if wide {
				addScaled(view[float32](d[:4*n]), y[:n], by)
			} else {
				packed := view[uint16](d[:2*n])
				widen16(t, x[:n], packed)
				addScaled(x[:n], y[:n], by)
				narrow16(t, packed, x[:n])
			}
			s, d = s[n:], d[n*size:]
		}
	}
}
