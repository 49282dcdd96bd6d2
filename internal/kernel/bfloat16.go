package kernel

import "math"

const bf16Quiet = 0x0040 // the fraction bit that tells a quiet NaN from a signalling one

// BF16ToF32 is the Float32 with the value of h, exactly: h is its upper half. A NaN keeps all its bits.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 is the BFloat16 nearest to f, of two the one with the even fraction. Subnormals are rounded like the rest
// (the hardware's VCVTNEPS2BF16 would make zeros of them). A NaN keeps its sign and the upper 7 bits of its payload and
// becomes quiet.
func F32ToBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if u&0x7fffffff > f32Inf {
		return uint16(u>>16) | bf16Quiet
	}
	odd := u >> 16 & 1
	return uint16((u + 0x7fff + odd) >> 16)
}
