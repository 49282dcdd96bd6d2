package tensor

import (
	"strconv"

	"gogcl.dev/internal/kernel"
)

// Float16 is the bits of an IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. It has about three decimal digits,
// and goes from 2^-24 to 65504. It is only stored: to calculate, widen it.
type Float16 uint16

// Float16FromFloat32 is the Float16 nearest to f, of two the one with an even fraction; from 65520 on it is infinite. A
// NaN keeps its sign and the upper 10 bits of its payload and becomes quiet.
func Float16FromFloat32(f float32) Float16 { return Float16(kernel.F32ToF16(f)) }

// Float32 is the value of f, exactly. A NaN becomes quiet.
func (f Float16) Float32() float32 { return kernel.F16ToF32(uint16(f)) }

// IsNaN reports whether f is a NaN.
func (f Float16) IsNaN() bool { return f&0x7fff > 0x7c00 }

// IsInf reports whether f is an infinity: a positive one if sign > 0, a negative one if sign < 0, either if sign == 0.
func (f Float16) IsInf(sign int) bool { return sign >= 0 && f == 0x7c00 || sign <= 0 && f == 0xfc00 }

// String is the value in the fewest digits that tell it from all other float32s.
func (f Float16) String() string { return strconv.FormatFloat(float64(f.Float32()), 'g', -1, 32) }
