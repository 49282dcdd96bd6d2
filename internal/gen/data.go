package main

import (
	"math"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// dataClass is the kind of numbers that an operand has.
type dataClass int

const (
	rawBits  dataClass = iota // any bits (bool: 0 or 1)
	small                     // floats: small integers, exact in any order
	special                   // floats: NaN, zeros, infinities, any bits
	realNums                  // floats whose sums depend on their order
)

// element makes the bits of an element from a hash.
func element(class dataClass, op gcl.Operator, d tensor.DType, h uint64) uint64 {
	if d == tensor.Bool {
		return h & 1
	}
	if !isFloat(d) || class == rawBits {
		return h & (1<<(8*uint(size(d))-1)<<1 - 1)
	}
	switch class {
	case special:
		switch h >> 60 {
		case 0:
			return fromF(d, 0)
		case 1:
			return fromF(d, math.Copysign(0, -1))
		case 2:
			return fromF(d, math.Inf(int(h&1)*2-1))
		case 3, 4, 5, 6:
			return fromF(d, float64(h%5)-2)
		case 7:
			if h&0xff < 40 {
				return h & (1<<(8*uint(size(d))-1)<<1 - 1)
			}
		}
		return fromF(d, float64(int64(h%2001)-1000)/64)
	case realNums:
		f := 0.5 + float64(h>>11)/(1<<53)*1.5
		if op == gcl.Mul {
			f = 0.6 + float64(h>>11)/(1<<53)*0.9
		} else if h&6 == 0 {
			f *= 64
		}
		if h&1 == 0 {
			f = -f
		}
		return fromF(d, f)
	}
	if op == gcl.Mul {
		switch h % 24 {
		case 0:
			return fromF(d, 2)
		case 1, 2, 3:
			return fromF(d, -1)
		}
		return fromF(d, 1)
	}
	return fromF(d, float64(h%7)-3)
}
