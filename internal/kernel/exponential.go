package kernel

import "math"

// Exponentials, and all that is made of them, are computed in float64 from +, -, *, / and operations on bits, each
// rounded by itself. So every machine and every version gives the same bits. Functions of Float32 are rounded once more
// at the end. A product stands in a conversion, even a returned one, or a compiler may fuse it with a sum that follows.
//
// With k the integer next to x / ln 2, and r = x - k ln 2, which is at most ln 2 / 2 in size:
//
//	exp(x) = 2^k (1 + q), where q = exp(r) - 1 = r + r r P(r)
//
// P interpolates (exp(r) - 1 - r) / r r; TestCoefficients computes all numbers anew.

// The places of the numbers that vector code reads.
const (
	numLog2e    = iota // 1 / ln 2
	numMagic           // see split
	numLn2             // ln 2, its first 32 bits
	numLn2Rest         // and what is left of it
	numExpLow          // see exp
	numExpHigh         // above, exp is infinite
	numTanhHigh        // above, tanh of half of it is 1
	numOne
	numMinusHalf
	numSize                           // 4, the size at which t of the normal distribution is 0
	numTailLow                        // below, the distribution function is 0
	numTailHigh                       // above, it is 1
	numDensity                        // 1 / sqrt(2 pi)
	numExp                            // the coefficients of P, from that of r^0 on
	numTail     = numExp + expTerms   // those of Q, see normal.go
	numLog      = numTail + tailTerms // see logarithm.go; logTerms of them
	numTiny     = numLog + logTerms   // the least float64 that is not subnormal
	numScale    = numTiny + 1         // makes all others so
	numScaled   = numTiny + 2         // its logarithm to base 2
	numExponent = numTiny + 3         // 2^52 and the bias of an exponent
	numInfinity = numTiny + 4
	numLowest   = numTiny + 5 // its opposite
	numEnd      = numTiny + 6
)

// The numbers of coefficients. The interpolation of exp errs by less than 2^-56, that of the tail by less than 2^-54 of
// it; TestCoefficients looks.
const (
	expTerms  = 10
	tailTerms = 23
	logTerms  = 11
)

// magic is a number among float64s that are all integers. A sum with it is rounded to one, whose lowest bits are k plus
// 2046. Half of that, rounded down or up, is the exponent of a float64 with its bias. It is 0 for numExpLow.
const magic = 0x1.8p52 + 2046

// constants are what vector code reads.
var constants = [numEnd]float64{
	numLog2e:     0x1.71547652b82fep+00,
	numMagic:     magic,
	numLn2:       0x1.62e42feep-01,
	numLn2Rest:   0x1.a39ef35793c76p-33,
	numExpLow:    -1418,
	numExpHigh:   710,
	numTanhHigh:  44,
	numOne:       1,
	numMinusHalf: -0.5,
	numSize:      4,
	numTailLow:   -39,
	numTailHigh:  39,
	numDensity:   0x1.9884533d43651p-02,

	numExp: 0x1.0000000000001p-01, 0x1.5555555555556p-03, 0x1.5555555553d68p-05, 0x1.11111111109b5p-07,
	0x1.6c16c17889ef1p-10, 0x1.a01a01a7c2efep-13, 0x1.a019b9149a41cp-16, 0x1.71de0db2f6b19p-19,
	0x1.28917c89a43a7p-22, 0x1.af389ecfc4b9cp-26,

	numTail: 0x1.82b4bb8c94dcep-03, -0x1.373e3a893c287p-03, 0x1.8c6dbf2cfc2fdp-04, -0x1.7dff2bff6889ap-05,
	0x1.eec4cc3e4560cp-07, -0x1.ee2761034c407p-10, -0x1.c81719cabcedep-11, 0x1.ab825f7e9996dp-12,
	0x1.17a4a6b9505f7p-15, -0x1.e4a415fb8cca5p-15, -0x1.0011cb7c88079p-21, 0x1.26cf8dea72ab1p-17,
	0x1.7fdd9eeeb883fp-23, -0x1.8d35cd874dc01p-20, -0x1.4f9d808db1d2fp-23, 0x1.11c074ae9e33fp-22,
	0x1.1b207d62865e8p-24, -0x1.4b471811b021p-25, -0x1.480d99ae63529p-26, 0x1.f4eaa9c85bbb1p-29,
	0x1.de6d02a26289cp-29, 0x1.3fb7ce475a146p-36, -0x1.0959f1400a391p-32,

	numLog: 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23,

	numTiny:     0x1p-1022,
	numScale:    0x1p54,
	numScaled:   54,
	numExponent: 0x1p52 + 1023,
	numInfinity: math.Inf(1),
	numLowest:   math.Inf(-1),
}

// split is k, in the bits of a float64, and q, for x + rest with a tiny rest. It takes numbers from numExpLow to
// numExpHigh; of a NaN q is one.
func split(x, rest float64) (k uint64, q float64) {
	t := float64(x*constants[numLog2e]) + magic
	whole := t - magic
	r := x - float64(whole*constants[numLn2])
	r = r - float64(whole*constants[numLn2Rest])
	r = r + rest
	z, c := float64(r*r), (*[expTerms]float64)(constants[numExp:])
	even := horner(horner(horner(horner(c[8], z, c[6]), z, c[4]), z, c[2]), z, c[0])
	odd := horner(horner(horner(horner(c[9], z, c[7]), z, c[5]), z, c[3]), z, c[1])
	return math.Float64bits(t), r + float64(z*(even+float64(odd*r)))
}

// scaled is 2^k f. Two steps reach the subnormals, and the second only is rounded.
func scaled(f float64, k uint64) float64 {
	half := k >> 1
	f = float64(f * math.Float64frombits(half<<52))
	return float64(f * math.Float64frombits((k-half)<<52))
}

// horner is a step of Horner's rule. Polynomials are the sum of the even powers, and that of the odd ones times x: two
// chains of steps in x² that a processor takes side by side.
func horner(sum, x, c float64) float64 { return float64(sum*x) + c }

// exp is the exponential of x + rest, with a tiny rest. It is 0 below -746. At numExpLow the factors of scaled are 0;
// down to there a product is subnormal, which takes many times as long. A softmax with a mask has many such numbers.
func exp(x, rest float64) float64 {
	k, q := split(min2(constants[numExpHigh], max2(constants[numExpLow], x)), rest)
	return scaled(1+q, k)
}

// min2 is the lesser of a limit and x, and max2 the greater; NaN of a NaN.
func min2(limit, x float64) float64 {
	if limit < x {
		return limit
	}
	return x
}

func max2(limit, x float64) float64 {
	if limit > x {
		return limit
	}
	return x
}

// sigmoid is 1 / (1 + exp(-x)). With e = exp(-|x|) that is 1 / (1 + e) or e / (1 + e).
func sigmoid(x float64) float64 {
	e := exp(-math.Abs(x), 0)
	over := 1.0
	if math.Signbit(x) {
		over = e
	}
	return over / (1 + e)
}

// tanh is (exp(2x) - 1) / (exp(2x) + 1). With q of 2|x| nothing cancels: exp(2|x|) - 1 is (2^k - 1) + 2^k q.
func tanh(x float64) float64 {
	k, q := split(min2(constants[numTanhHigh], float64(2*math.Abs(x))), 0)
	s := math.Float64frombits(k<<52 - 1023<<52)
	q = float64(s * q)
	return math.Copysign(((s-1)+q)/((s+1)+q), x)
}

// softplus is log(1 + exp(x)). With e = exp(-|x|) it is log(1 + e), and above 0 x more. The logarithm is of what 1 + e
// is rounded to, which is 1 + e': as both are near each other, log(1 + e) is to e as log(1 + e') is to e'.
func softplus(x float64) float64 {
	e := exp(-math.Abs(x), 0)
	rounded := 1 + e
	if near := rounded - 1; near > 0 {
		e = float64(e*Log(rounded)) / near
	}
	return max2(0, x) + e
}
