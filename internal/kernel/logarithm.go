package kernel

import "math"

// logTerms are 2/3, 2/5 and so on: ln f = 2 artanh s = 2s + s³ (2/3 + 2/5 s² + ...) with s = (f-1) / (f+1). The first
// that is left out is less than 2^-58 of the sum.
var logTerms = [...]float64{2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19,
	2.0 / 21, 2.0 / 23}

// Log is the natural logarithm of x with the same bits on every machine, which that of package math is not: minus
// infinity of 0, NaN below.
func Log(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case !(x >= 0):
		return math.NaN()
	case math.IsInf(x, 1):
		return x
	}
	f, exponent := math.Frexp(x) // from 1/2 on; below 1
	if f < math.Sqrt2/2 {
		f *= 2
		exponent--
	}
	k := float64(exponent)
	s := (f - 1) / (f + 1)
	z := float64(s * s)
	low := float64(float64(s*z)*polynomial(logTerms[:], z)) + float64(k*constants[numLn2Rest])
	return float64(k*constants[numLn2]) + (float64(2*s) + low)
}
