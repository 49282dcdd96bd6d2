package kernel

import (
	"math"
	"math/big"
	"slices"
	"sync"
	"testing"
)

// precision is that of the numbers of this file, in bits. The difference that bigTail takes has 1,100 bits less.
const precision = 1500

// TestCoefficients computes the numbers of the exponential and the normal distribution anew.
func TestCoefficients(t *testing.T) {
	check := func(name string, at int, want *big.Float) {
		t.Helper()
		if v, _ := want.Float64(); constants[at] != v {
			t.Errorf("%s: number %d is %x, want %x", name, at, constants[at], v)
		}
	}
	ln2 := bigLog2()
	first := new(big.Float).SetPrec(32).SetMode(big.ToZero).Set(ln2)
	check("1 / ln 2", numLog2e, bigQuo(bigNumber(1), ln2))
	check("ln 2", numLn2, first)
	check("the rest of ln 2", numLn2Rest, bigSub(ln2, bigNumber(0).Set(first)))
	check("1 / sqrt(2 pi)", numDensity, bigQuo(bigNumber(1), rootTwoPi()))

	for i := range logTerms {
		check("log", numLog+i, bigQuo(bigNumber(2), bigNumber(float64(2*i+3))))
	}
	ofExp := func(r *big.Float) *big.Float {
		return bigQuo(bigSub(bigSub(bigExp(r), bigNumber(1)), r), bigMul(r, r))
	}
	terms := interpolate(ofExp, -math.Ln2/2, math.Ln2/2, expTerms)
	for i, c := range terms {
		check("exp", numExp+i, c)
	}
	between(t, -math.Ln2/2, math.Ln2/2, 0x1p-56, func(r *big.Float) *big.Float {
		return bigMul(bigMul(r, r), bigSub(bigPolynomial(terms, r), ofExp(r)))
	})
	size, far := constants[numSize], constants[numTailHigh]
	ofTail := func(t *big.Float) *big.Float {
		u := bigQuo(bigSub(bigNumber(1), t), bigNumber(2))
		return bigQuo(bigTail(bigSub(bigQuo(bigNumber(size), u), bigNumber(size))), u)
	}
	last := 1 - 2*size/(far+size)
	terms = interpolate(ofTail, -1, last, tailTerms)
	for i, c := range terms {
		check("tail", numTail+i, c)
	}
	between(t, -1, last, 0x1p-54, func(t *big.Float) *big.Float {
		return bigSub(bigQuo(bigPolynomial(terms, t), ofTail(t)), bigNumber(1))
	})
}

// between looks at an error between low and high, which is to be less than bound.
func between(t *testing.T, low, high, bound float64, err func(x *big.Float) *big.Float) {
	t.Helper()
	const steps = 300 // 0 is not among them
	worst := 0.0
	for i := range steps {
		e, _ := err(bigNumber(low + (high-low)*(float64(i)+0.5)/steps)).Float64()
		worst = max(worst, math.Abs(e))
	}
	if t.Logf("an interpolation errs by 2^%.2f", math.Log2(worst)); worst >= bound {
		t.Errorf("an interpolation errs by %g, want less than %g", worst, bound)
	}
}

// bigPolynomial has the coefficients c, from that of the power 0 on.
func bigPolynomial(c []*big.Float, x *big.Float) *big.Float {
	sum := bigNumber(0)
	for _, v := range slices.Backward(c) {
		sum = bigAdd(bigMul(sum, x), v)
	}
	return sum
}

func bigNumber(v float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(v) }

func bigAdd(x, y *big.Float) *big.Float { return bigNumber(0).Add(x, y) }
func bigSub(x, y *big.Float) *big.Float { return bigNumber(0).Sub(x, y) }
func bigMul(x, y *big.Float) *big.Float { return bigNumber(0).Mul(x, y) }
func bigQuo(x, y *big.Float) *big.Float { return bigNumber(0).Quo(x, y) }

// series is the sum of terms until one changes nothing. term gives one after the other.
func series(term func(i int) *big.Float) *big.Float {
	sum := term(0)
	for i := 1; ; i++ {
		v := term(i)
		if v.Sign() == 0 || sum.Sign() != 0 && v.MantExp(nil) < sum.MantExp(nil)-precision {
			return sum
		}
		sum = bigAdd(sum, v)
	}
}

// bigExp is the series of powers over factorials, for a part of x, and then squared.
func bigExp(x *big.Float) *big.Float {
	const halvings = 30
	x = bigNumber(0).SetMantExp(x, -halvings)
	term := bigNumber(1)
	sum := series(func(i int) *big.Float {
		if i > 0 {
			term = bigQuo(bigMul(term, x), bigNumber(float64(i)))
		}
		return term
	})
	for range halvings {
		sum = bigMul(sum, sum)
	}
	return sum
}

// bigArtanh is the series x + x^3/3 + x^5/5 and so on; with a sign of -1 they alternate, and it is arctan.
func bigArtanh(x *big.Float, sign float64) *big.Float {
	power, square := x, bigMul(bigMul(x, x), bigNumber(sign))
	return series(func(i int) *big.Float {
		if i > 0 {
			power = bigMul(power, square)
		}
		return bigQuo(power, bigNumber(float64(2*i+1)))
	})
}

// bigLog2 is ln 2 = 2 artanh(1/3).
func bigLog2() *big.Float {
	return bigMul(bigNumber(2), bigArtanh(bigQuo(bigNumber(1), bigNumber(3)), 1))
}

// bigPi is 16 arctan(1/5) - 4 arctan(1/239), by Machin.
var bigPi = sync.OnceValue(func() *big.Float {
	arctan := func(n float64) *big.Float { return bigArtanh(bigQuo(bigNumber(1), bigNumber(n)), -1) }
	return bigSub(bigMul(bigNumber(16), arctan(5)), bigMul(bigNumber(4), arctan(239)))
})

var rootTwoPi = sync.OnceValue(func() *big.Float { return bigNumber(0).Sqrt(bigMul(bigNumber(2), bigPi())) })

// bigCos is the series of the even powers over factorials.
func bigCos(x *big.Float) *big.Float {
	term, square := bigNumber(1), bigMul(x, x)
	return series(func(i int) *big.Float {
		if i > 0 {
			term = bigQuo(bigMul(term, square), bigNumber(float64(-2*i*(2*i-1))))
		}
		return term
	})
}

// bigTail is Φ(-a) exp(a²/2), where Φ(a) - 1/2 is φ(a) times the sum of a^(2i+1) / (1 3 5 ... 2i+1).
func bigTail(a *big.Float) *big.Float {
	square := bigMul(a, a)
	term := a
	sum := series(func(i int) *big.Float {
		if i > 0 {
			term = bigQuo(bigMul(term, square), bigNumber(float64(2*i+1)))
		}
		return term
	})
	return bigSub(bigMul(bigNumber(0.5), bigExp(bigMul(bigNumber(0.5), square))), bigQuo(sum, rootTwoPi()))
}

// interpolate is the coefficients, from the power 0 on, of the polynomial that has a function's values at Chebyshev's
// points between low and high: by divided differences, which are then multiplied out.
func interpolate(f func(*big.Float) *big.Float, low, high float64, terms int) []*big.Float {
	at, d := make([]*big.Float, terms), make([]*big.Float, terms)
	for i := range at {
		angle := bigQuo(bigMul(bigPi(), bigNumber(float64(2*i+1))), bigNumber(float64(2*terms)))
		at[i] = bigAdd(bigNumber((low+high)/2), bigMul(bigNumber((high-low)/2), bigCos(angle)))
		d[i] = f(at[i])
	}
	for k := 1; k < terms; k++ {
		for i := terms - 1; i >= k; i-- {
			d[i] = bigQuo(bigSub(d[i], d[i-1]), bigSub(at[i], at[i-k]))
		}
	}
	c := make([]*big.Float, terms)
	for i := range c {
		c[i] = bigNumber(0)
	}
	for k := terms - 1; k >= 0; k-- { // c = c (x - at[k]) + d[k]
		for i := terms - 1; i > 0; i-- {
			c[i] = bigSub(c[i-1], bigMul(c[i], at[k]))
		}
		c[0] = bigSub(d[k], bigMul(c[0], at[k]))
	}
	return c
}
