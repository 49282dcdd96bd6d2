package kernel

import "math"

// Where a Float16's parts lie, seen from a Float32's. The exponents' biases are 15 and 127.
const (
	f16Shift   = 23 - 10               // a Float32's fraction has so many bits more
	f16Inf     = 0x7c00                //
	f16Quiet   = 0x0200                // the fraction bit that tells a quiet NaN from a signalling one
	f32Inf     = 0x7f800000            //
	f16Rebias  = (127 - 15) << 23      // the difference of the biases, in place
	f16Limit   = (127 + 16) << 23      // 65536: from here on all is infinite, just below it rounding makes it so
	f16Normal  = (127 - 14) << 23      // 2^-14: below it Float16s are subnormal
	f16Denorms = (127 - 14 + 13) << 23 // 0.5: its unit in the last place is the smallest Float16, 2^-24
)

// F16ToF32 is the Float32 with the value of h, exactly. A NaN keeps its sign and payload and becomes quiet, as the
// hardware's VCVTPH2PS has it.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	u := uint32(h&0x7fff) << f16Shift
	if u >= f16Inf<<f16Shift {
		if u > f16Inf<<f16Shift {
			u |= f16Quiet << f16Shift
		}
		return math.Float32frombits(sign | f32Inf | u)
	}
	// As a Float32, u is 2^-112 of the value, subnormals included.
	return float32(math.Float32frombits(sign|u) * 0x1p112)
}

// F32ToF16 is the Float16 nearest to f, of two the one with the even fraction; from 65520 on it is infinite. A NaN
// keeps its sign and the upper 10 bits of its payload and becomes quiet, as the hardware's VCVTPS2PH has it.
func F32ToF16(f float32) uint16 {
	u := math.Float32bits(f)
	sign := uint16(u>>16) & 0x8000
	u &= 0x7fffffff
	switch {
	case u < f16Normal:
		// The addition rounds away what a Float16 has no bits for, to nearest even.
		return sign | uint16(math.Float32bits(math.Float32frombits(u)+0.5)-f16Denorms)
	case u < f16Limit:
		odd := u >> f16Shift & 1
		return sign | uint16((u-f16Rebias+(1<<(f16Shift-1)-1)+odd)>>f16Shift)
	case u <= f32Inf:
		return sign | f16Inf
	default:
		return sign | f16Inf | f16Quiet | uint16(u>>f16Shift)&0x03ff
	}
}
