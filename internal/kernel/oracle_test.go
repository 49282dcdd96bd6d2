package kernel

import (
	"fmt"
	"math"
	"math/big"
	"sort"
)

// The oracle: one element at a time, all bits in a uint64, exact rationals rounded once. It shares no code with the
// loops.

// oracleBinary is the bits of a op b.
func oracleBinary(op Op, t Type, a, b uint64) uint64 {
	switch {
	case t == Bool && op == And:
		return b2u(a != 0 && b != 0)
	case t == Bool && op == Or:
		return b2u(a != 0 || b != 0)
	case t == Float16 || t == BFloat16:
		x, y := math.Float32bits(float32(oracleValue(t, a))), math.Float32bits(float32(oracleValue(t, b)))
		r := oracleBinary(op, Float32, uint64(x), uint64(y))
		return oracleNarrow(t, math.Float32frombits(uint32(r)))
	case t == Float32 || t == Float64:
		return oracleFloat(op, t, oracleValue(t, a), oracleValue(t, b))
	}
	x, y := oracleInt(t, a), oracleInt(t, b)
	r := new(big.Int)
	switch op {
	case Add:
		r.Add(x, y)
	case Mul:
		r.Mul(x, y)
	case Min:
		r.Set(x)
		if y.Cmp(x) < 0 {
			r.Set(y)
		}
	case Max:
		r.Set(x)
		if y.Cmp(x) > 0 {
			r.Set(y)
		}
	}
	// A big.Int's And is that of two's complement.
	return r.And(r, new(big.Int).SetUint64(math.MaxUint64>>(64-8*t.Size()))).Uint64()
}

// oracleDivide is the bits of a / by.
func oracleDivide(t Type, a uint64, by int) uint64 {
	if t == Float64 {
		return oracleFloat(opEnd, t, oracleValue(t, a), float64(by))
	}
	r := oracleFloat(opEnd, Float32, oracleValue(t, a), float64(float32(by)))
	if t == Float32 {
		return r
	}
	return oracleNarrow(t, math.Float32frombits(uint32(r)))
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func oracleInt(t Type, a uint64) *big.Int {
	n := 8 * t.Size()
	if t <= Int64 {
		return big.NewInt(int64(a<<(64-n)) >> (64 - n))
	}
	return new(big.Int).SetUint64(a << (64 - n) >> (64 - n))
}

// oracleValue is the value of a float's bits, from the definition of the formats.
func oracleValue(t Type, a uint64) float64 {
	if t == Float64 {
		return math.Float64frombits(a)
	}
	exponentBits, fractionBits := 8, 23
	switch t {
	case Float16:
		exponentBits, fractionBits = 5, 10
	case BFloat16:
		exponentBits, fractionBits = 8, 7
	}
	sign := 1.0
	if a>>(exponentBits+fractionBits)&1 == 1 {
		sign = -1
	}
	top := 1<<exponentBits - 1
	bias := top / 2
	exponent := int(a>>fractionBits) & top
	fraction := float64(a & (1<<fractionBits - 1))
	switch {
	case exponent == top && fraction != 0:
		return math.NaN()
	case exponent == top:
		return math.Inf(int(sign))
	case exponent == 0:
		return sign * math.Ldexp(fraction, 1-bias-fractionBits)
	}
	return sign * math.Ldexp(fraction+float64(uint64(1)<<fractionBits), exponent-bias-fractionBits)
}

// oracleFloat is the bits of x op y, a division for opEnd, in Float32 or Float64.
func oracleFloat(op Op, t Type, x, y float64) uint64 {
	negative := math.Signbit(x) != math.Signbit(y)
	inf := math.IsInf(x, 0) || math.IsInf(y, 0)
	if x != x || y != y {
		return oracleNaN(t)
	}
	if t == Float32 && !inf {
		// Products of two float32s fit a float64, and so do sums from which nothing is lost: one rounding, no
		// rationals.
		switch sum := x + y; {
		case op == Mul:
			return floatBits(t, x*y)
		case op == Add && sum-x == y && sum-y == x:
			return floatBits(t, sum)
		}
	}
	switch op {
	case Min:
		if x < y || x == y && math.Signbit(x) {
			return floatBits(t, x)
		}
		return floatBits(t, y)
	case Max:
		if x > y || x == y && !math.Signbit(x) {
			return floatBits(t, x)
		}
		return floatBits(t, y)
	case Add:
		switch {
		case math.IsInf(x, 0) && math.IsInf(y, 0) && x != y:
			return oracleNaN(t)
		case inf:
			return floatBits(t, x+y)
		}
		// A sum that is exactly zero is +0, but of two negative zeros.
		return rounded(t, new(big.Rat).Add(rat(x), rat(y)), x == 0 && y == 0 && math.Signbit(x) && math.Signbit(y))
	case Mul:
		switch {
		case inf && (x == 0 || y == 0):
			return oracleNaN(t)
		case inf:
			return floatBits(t, signed(math.Inf(1), negative))
		}
		return rounded(t, new(big.Rat).Mul(rat(x), rat(y)), negative)
	}
	switch {
	case x == 0 && y == 0, math.IsInf(x, 0) && math.IsInf(y, 0):
		return oracleNaN(t)
	case y == 0 || math.IsInf(x, 0):
		return floatBits(t, signed(math.Inf(1), negative))
	}
	return rounded(t, new(big.Rat).Quo(rat(x), rat(y)), negative)
}

func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

func signed(x float64, negative bool) float64 {
	if negative {
		return math.Copysign(x, -1)
	}
	return x
}

// rounded is r rounded to nearest even; zeroNegative is the sign should the result be a zero.
func rounded(t Type, r *big.Rat, zeroNegative bool) uint64 {
	var f float64
	if t == Float32 {
		f32, _ := r.Float32()
		f = float64(f32)
	} else {
		f, _ = r.Float64()
	}
	switch {
	case f != 0:
	case r.Sign() < 0: // underflow
		f = math.Copysign(0, -1)
	case r.Sign() == 0:
		f = signed(0, zeroNegative)
	}
	return floatBits(t, f)
}

// floatBits is the bits of f, which is a value of t.
func floatBits(t Type, f float64) uint64 {
	if t == Float32 {
		return uint64(math.Float32bits(float32(f)))
	}
	return math.Float64bits(f)
}

func oracleNaN(t Type) uint64 {
	return map[Type]uint64{Float16: 0x7e00, BFloat16: 0x7fc0, Float32: 0x7fc00000, Float64: 0x7ff8000000000000}[t]
}

// finite16 holds the values of the finite non-negative 16-bit floats: index and bits are the same, and they ascend. One
// more follows, the power of two that would be next.
var finite16 = map[Type][]float64{Float16: nonNegative(Float16, 0x7c00), BFloat16: nonNegative(BFloat16, 0x7f80)}

func nonNegative(t Type, inf int) []float64 {
	values := make([]float64, inf+1)
	for i := range inf {
		values[i] = oracleValue(t, uint64(i))
	}
	values[inf] = 2 * oracleValue(t, uint64(inf-1<<map[Type]int{Float16: 10, BFloat16: 7}[t]))
	return values
}

// oracleNarrow is f rounded to a 16-bit float: the nearer of its two neighbours, the even one of two as near.
func oracleNarrow(t Type, f float32) uint64 {
	bits := uint64(math.Float32bits(f))
	if f != f {
		// Sign, exponent and what there is room for of the payload; the quiet bit leads the payload.
		if t == Float16 {
			return bits>>31<<15 | 0x7c00 | 1<<9 | bits>>13&0x3ff
		}
		return bits>>31<<15 | 0x7f80 | 1<<6 | bits>>16&0x7f
	}
	values := finite16[t]
	x := math.Abs(float64(f))
	sign := bits >> 31 << 15
	hi := sort.SearchFloat64s(values, x) // the first that is >= x
	if hi == len(values) {
		return sign | uint64(len(values)-1) // infinite
	}
	if values[hi] == x {
		return sign | uint64(hi)
	}
	lo := hi - 1
	down, up := x-values[lo], values[hi]-x // exact: all three are short
	if down < up || down == up && lo%2 == 0 {
		return sign | uint64(lo)
	}
	return sign | uint64(hi)
}

// hex prints bits as wide as the type is.
func hex(t Type, bits uint64) string { return fmt.Sprintf("%0*x", 2*t.Size(), bits) }

func float32of(bits uint64) float32 { return math.Float32frombits(uint32(bits)) }

// oracleWiden is the bits of a 16-bit float as a Float32. Of NaNs, a Float16's becomes quiet.
func oracleWiden(t Type, a uint64) uint64 {
	f := oracleValue(t, a)
	switch {
	case f == f:
		return floatBits(Float32, f)
	case t == Float16:
		return a>>15<<31 | 0x7fc00000 | a&0x3ff<<13
	}
	return a << 16
}
