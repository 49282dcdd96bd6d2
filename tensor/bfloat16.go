package tensor

import (
	"strconv"

	"gogcl.dev/internal/kernel"
)

// BFloat16 is the upper half of a float32's bits: 1 sign, 8 exponent, 7 fraction bits. It has about two decimal digits
// and the range of a float32. It is only stored: to calculate, widen it.
type BFloat16 uint16

// BFloat16FromFloat32 is the BFloat16 nearest to f, of two the one with an even fraction. A NaN keeps its sign and the
// upper 7 bits of its payload and becomes quiet.
func BFloat16FromFloat32(f float32) BFloat16 { return BFloat16(kernel.F32ToBF16(f)) }

// Float32 is the value of f, exactly.
func (f BFloat16) Float32() float32 { return kernel.BF16ToF32(uint16(f)) }

// IsNaN reports whether f is a NaN.
func (f BFloat16) IsNaN() bool { return f&0x7fff > 0x7f80 }

// IsInf reports whether f is an infinity: a positive one if sign > 0, a negative one if sign < 0, either if sign == 0.
func (f BFloat16) IsInf(sign int) bool { return sign >= 0 && f == 0x7f80 || sign <= 0 && f == 0xff80 }

// String is the value in the fewest digits that tell it from all other float32s.
func (f BFloat16) String() string { return strconv.FormatFloat(float64(f.Float32()), 'g', -1, 32) }
