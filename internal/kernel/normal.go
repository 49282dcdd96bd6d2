package kernel

import "math"

// The distribution function of the normal distribution, Φ(x) = (1 + erf(x / sqrt 2)) / 2, and its density, φ(x) =
// exp(-x²/2) / sqrt(2π). Far below 0 both vanish, and their ratio, Mills' ratio, is nearly 1 / |x|. With
//
//	u = 4 / (|x| + 4)    t = 1 - 2u, which goes from -1 at 0 to 1 at infinity
//
// Φ(-|x|) = exp(-x²/2) u Q(t), where Q is smooth and never 0. A polynomial interpolates Q. The change of variable is
// that of Schonfelder, Chebyshev Expansions for the Error and Related Functions, Mathematics of Computation 32 (1978).

// normal is Φ(x), and exp(-x²/2), for x up to numTailHigh in size.
func normal(x float64) (below, bell float64) {
	a := math.Abs(x)
	// The square of the first 26 bits is exact. For a float32 that is all of it.
	high := math.Float64frombits(math.Float64bits(a) &^ (1<<27 - 1))
	rest := float64((a - high) * (a + high))
	bell = exp(float64(-0.5*float64(high*high)), float64(-0.5*rest))
	u := 4 / (a + 4)
	below = float64(bell * float64(u*millsRatio(1-(u+u))))
	if !math.Signbit(x) {
		below = 1 - below
	}
	return below, bell
}

// millsRatio is Q(t).
func millsRatio(t float64) float64 {
	c := (*[tailTerms]float64)(constants[numTail:])
	z, even, odd := float64(t*t), c[tailTerms-1], c[tailTerms-2]
	for i := tailTerms - 3; i > 0; i -= 2 {
		even = horner(even, z, c[i])
		odd = horner(odd, z, c[i-1])
	}
	return horner(even, z, c[0]) + float64(odd*t)
}

// gelu is x Φ(x): -0 far below 0, and x far above it.
func gelu(x float64) float64 {
	x = max2(constants[numTailLow], x)
	below, _ := normal(min2(constants[numTailHigh], x))
	return float64(x * below)
}

// geluSlope is the derivative of gelu, Φ(x) + x φ(x).
func geluSlope(x float64) float64 {
	x = min2(constants[numTailHigh], max2(constants[numTailLow], x))
	below, bell := normal(x)
	return below + float64(x*float64(bell*constants[numDensity]))
}
