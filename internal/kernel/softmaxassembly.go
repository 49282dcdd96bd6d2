//go:build (amd64 || arm64) && !noasm

package kernel

import (
	"math"
	"unsafe"
)

// softmaxPieces fills in what Exponentials is made of. A segment is one call of assembly; 16 KiB or 32 KiB of it take
// less than 20 microseconds.
func softmaxPieces[T float32 | float64](t *assembly, v *version, typ Type) {
	largest, shifted, plain := t.greatest[typ], t.shiftedExp[typ], versions[0].shiftedExp[typ]
	fill, size := t.fill(typ), typ.Size()
	v.greatest[typ] = func(src []byte) float64 {
		greatest := T(math.Inf(-1))
		for len(src) >= fill {
			n := min(len(src)&^(fill-1), pieceBytes(1))
			greatest = max(greatest, floatOf[T](largest(unsafe.SliceData(src), n)))
			src = src[n:]
		}
		return above(greatest, view[T](src))
	}
	v.shiftedExp[typ] = func(dst, src []byte, shift float64) float64 {
		src = src[:len(dst)]
		n := len(dst) &^ (8*size - 1)
		if n == 0 {
			return plain(dst, src, shift)
		}
		sum := shifted(unsafe.SliceData(dst), unsafe.SliceData(src), n, bitsOf(T(shift)), &constants[0])
		return shiftedRest(view[T](dst[n:]), view[T](src[n:]), T(shift), sum)
	}
}

// floatOf and bitsOf are between a float and its bits.
func floatOf[T float32 | float64](bits uint64) T {
	if unsafe.Sizeof(T(0)) == 4 {
		return T(math.Float32frombits(uint32(bits)))
	}
	return T(math.Float64frombits(bits))
}

func bitsOf[T float32 | float64](v T) uint64 {
	if unsafe.Sizeof(v) == 4 {
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(float64(v))
}

// scalePieces cuts a call of Scale into pieces.
func scalePieces(asm func(dst, src *byte, n int, by uint64, constants *float64), rest func(dst, src []byte,
	by float64), fill int) func(dst, src []byte, by float64) {
	return func(dst, src []byte, by float64) {
		src = src[:len(dst)]
		for len(dst) >= fill {
			n := min(len(dst)&^(fill-1), pieceBytes(2))
			asm(unsafe.SliceData(dst), unsafe.SliceData(src), n, math.Float64bits(by), &constants[0])
			dst, src = dst[n:], src[n:]
		}
		if len(dst) > 0 {
			rest(dst, src, by)
		}
	}
}
