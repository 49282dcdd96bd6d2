package kernel

import "math"

// rootHalf is the bits of sqrt(1/2).
const rootHalf = 0x3fe6a09e667f3bcd

// Log is the natural logarithm of x, with the same bits on every machine, unlike that of package math: minus infinity
// of 0, NaN below.
//
// With x = 2^k f, f being from sqrt(1/2) on and below sqrt 2, and s = (f-1) / (f+1), it is
//
//	k ln 2 + 2 artanh s = k ln 2 + 2s + s³ (2/3 + 2/5 s² + 2/7 s⁴ + ...)
//
// The first term that is left out is less than 2^-65 of the sum.
func Log(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0:
		return math.NaN()
	case !(x < math.Inf(1)):
		return x
	}
	shift := 0.0
	if x < constants[numTiny] {
		x, shift = float64(x*constants[numScale]), constants[numScaled]
	}
	bits := math.Float64bits(x)
	exponent := int64(bits-rootHalf) >> 52
	f, k := math.Float64frombits(bits-uint64(exponent)<<52), float64(exponent)-shift
	s := (f - 1) / (f + 1)
	z, c := float64(s*s), (*[logTerms]float64)(constants[numLog:])
	w := float64(z * z)
	even := horner(horner(horner(horner(horner(c[10], w, c[8]), w, c[6]), w, c[4]), w, c[2]), w, c[0])
	odd := horner(horner(horner(horner(c[9], w, c[7]), w, c[5]), w, c[3]), w, c[1])
	low := float64(float64(s*z)*(even+float64(odd*z))) + float64(k*constants[numLn2Rest])
	return float64(k*constants[numLn2]) + ((s + s) + low)
}
