package kernel

import "unsafe"

// foldRange is a fold of the bytes from off to end.
type foldRange func(dsts, srcs [][]byte, off, end, by int)

// foldBlock is how many elements are folded at a time: they lie on the stack, which Go clears on each call, and all
// sources of a block are read before any destination is written.
const foldBlock = 128

// goFold is f in plain Go, or nil when there is no such operator on the type.
func goFold(f Fold) foldRange {
	number := f.Op >= Add && f.Op <= Max
	if f.Square && f.Op != Add {
		return nil
	}
	if f.Type == Bool && (f.Op == And || f.Op == Or) {
		return foldLoop[uint8](f)
	}
	if !number {
		return nil
	}
	switch f.Type {
	case Int8:
		return foldLoop[int8](f)
	case Int16:
		return foldLoop[int16](f)
	case Int32:
		return foldLoop[int32](f)
	case Int64:
		return foldLoop[int64](f)
	case Uint8:
		return foldLoop[uint8](f)
	case Uint16:
		return foldLoop[uint16](f)
	case Uint32:
		return foldLoop[uint32](f)
	case Uint64:
		return foldLoop[uint64](f)
	case Float32:
		return foldLoop[float32](f)
	case Float64:
		return foldLoop[float64](f)
	case Float16, BFloat16:
		return foldHalves(f)
	}
	return nil
}

// whole makes a loop over a range one over everything.
func (loop foldRange) whole() func(dsts, srcs [][]byte, by int, stream bool) {
	return func(dsts, srcs [][]byte, by int, _ bool) { loop(dsts, srcs, 0, foldLength(dsts, srcs), by) }
}

// foldLoop folds elements that Go can calculate with.
func foldLoop[T number](f Fold) foldRange {
	var zero T
	size := int(unsafe.Sizeof(zero))
	divides := f.Type == Float32 || f.Type == Float64
	return func(dsts, srcs [][]byte, off, end, by int) {
		if !divides {
			by = 1
		}
		if f.plainCopy(srcs, by) {
			copies(dsts, srcs[0], off, end)
			return
		}
		var acc, squares [foldBlock]T
		for off < end-size+1 {
			n := min(foldBlock, (end-off)/size)
			x := acc[:n]
			copy(x, view[T](srcs[0][off:off+n*size]))
			if f.Square {
				square(x, x)
			}
			for _, s := range srcs[1:] {
				y := view[T](s[off : off+n*size])
				if f.Square {
					square(squares[:n], y)
					y = squares[:n]
				}
				combine(f.Op, x, x, y)
			}
			if by > 1 {
				divide(x, x, by)
			}
			for _, d := range dsts {
				copy(view[T](d[off:off+n*size]), x)
			}
			off += n * size
		}
	}
}

// combine is dst = a op b.
func combine[T number](op Op, dst, a, b []T) {
	switch op {
	case Add:
		add(dst, a, b)
	case Mul:
		mul(dst, a, b)
	case Min:
		minimum(dst, a, b)
	case Max:
		maximum(dst, a, b)
	case And: // of Bool only, so T is uint8
		and(any(dst).([]uint8), any(a).([]uint8), any(b).([]uint8))
	case Or:
		or(any(dst).([]uint8), any(a).([]uint8), any(b).([]uint8))
	}
}

// foldHalves folds 16-bit floats by way of float32.
func foldHalves(f Fold) foldRange {
	return func(dsts, srcs [][]byte, off, end, by int) {
		if f.plainCopy(srcs, by) {
			copies(dsts, srcs[0], off, end)
			return
		}
		var acc, other [halfBlock]float32
		var packed [halfBlock]uint16
		for off < end-1 {
			n := min(halfBlock, (end-off)/2)
			x, y := acc[:n], other[:n]
			f.loadHalves(x, srcs[0], off)
			for _, s := range srcs[1:] {
				f.loadHalves(y, s, off)
				combine(f.Op, x, x, y)
				f.roundHalves(x)
			}
			if by > 1 {
				divide(x, x, by)
			}
			narrow16(f.Type, packed[:n], x)
			for _, d := range dsts {
				copy(view[uint16](d[off:off+2*n]), packed[:n])
			}
			off += 2 * n
		}
	}
}

// loadHalves is what a source brings to the fold.
func (f Fold) loadHalves(dst []float32, src []byte, off int) {
	widen16(f.Type, dst, view[uint16](src[off:off+2*len(dst)]))
	if f.Square {
		square(dst, dst)
		f.roundHalves(dst)
	}
}

// roundHalves makes each element one that the type has, unless the fold is Wide.
func (f Fold) roundHalves(x []float32) {
	if f.Wide {
		return
	}
	var packed [halfBlock]uint16
	narrow16(f.Type, packed[:len(x)], x)
	widen16(f.Type, x, packed[:len(x)])
}

// copies stores a range of src to all dsts.
func copies(dsts [][]byte, src []byte, off, end int) {
	for _, d := range dsts {
		copy(d[off:end], src[off:end])
	}
}
