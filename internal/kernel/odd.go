package kernel

import (
	"math"
	"math/bits"
)

// OddF32 is v as a float32 that can be rounded to a Float16 or a BFloat16 as if it were v: where bits are lost, the
// last bit is 1, so that no other number looks like one halfway between two.
func OddF32(v float64) float32 {
	f := float32(v)
	if float64(f) == v || v != v || math.IsInf(v, 0) {
		return f
	}
	if math.Abs(float64(f)) > math.Abs(v) { // toward zero; an infinity becomes the largest
		f = math.Float32frombits(math.Float32bits(f) - 1)
	}
	return math.Float32frombits(math.Float32bits(f) | 1)
}

// OddF32OfInt is OddF32 of an integer: of one that has more bits than a float32's fraction it keeps the upper 24, and
// the last of them is 1 if any bit below them is.
func OddF32OfInt[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](v T) float32 {
	const fraction = 24
	u := uint64(v)
	if v < 0 {
		u = -u
	}
	if over := bits.Len64(u) - fraction; over > 0 {
		kept := u >> over
		if kept<<over != u {
			kept |= 1
		}
		u = kept << over
	}
	if v < 0 {
		return -float32(u)
	}
	return float32(u)
}
