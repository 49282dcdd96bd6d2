package main

import (
	"math"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// fold combines contributions, in their order. one says that a single contribution is an identity (a group of one).
func fold(op gcl.Operator, d tensor.DType, class dataClass, v []uint64, one bool) uint64 {
	if len(v) == 1 && one {
		return v[0]
	}
	if !isFloat(d) {
		acc := v[0]
		if op == gcl.SquareAdd {
			acc *= acc
		}
		for _, x := range v[1:] {
			switch op {
			case gcl.Add:
				acc += x
			case gcl.Mul:
				acc *= x
			case gcl.SquareAdd:
				acc += x * x
			case gcl.LogicalAnd:
				acc &= x
			case gcl.LogicalOr:
				acc |= x
			case gcl.Min, gcl.Max:
				less := x < acc
				if signed(d) {
					s := 64 - 8*uint(size(d))
					less = int64(x<<s) < int64(acc<<s)
				}
				if less == (op == gcl.Min) {
					acc = x
				}
			}
		}
		return acc & (1<<(8*uint(size(d))-1)<<1 - 1)
	}
	if op == gcl.Min || op == gcl.Max {
		best := v[0]
		for _, x := range v {
			if f := toF(d, x); f != f {
				return fromF(d, math.NaN())
			}
			fx, fb := toF(d, x), toF(d, best)
			less := fx < fb || fx == fb && math.Signbit(fx) && !math.Signbit(fb)
			more := fx > fb || fx == fb && !math.Signbit(fx) && math.Signbit(fb)
			if op == gcl.Min && less || op == gcl.Max && more {
				best = x
			}
		}
		return best
	}
	// Partial results are float32 (float64 of float64), rounded once at the end, as Reproducible has it. Small integers
	// are exact whatever the order.
	if d == tensor.F64 {
		acc := 0.0
		for i, x := range v {
			f := toF(d, x)
			if op == gcl.SquareAdd {
				f = float64(f * f)
			}
			switch {
			case i == 0:
				acc = f
			case op == gcl.Mul:
				acc = float64(acc * f)
			default:
				acc = float64(acc + f)
			}
		}
		if op == gcl.Mean {
			acc /= float64(len(v))
		}
		return fromF(d, acc)
	}
	var acc float32
	for i, x := range v {
		f := float32(toF(d, x))
		if op == gcl.SquareAdd {
			f = float32(f * f)
		}
		switch {
		case i == 0:
			acc = f
		case op == gcl.Mul:
			acc = float32(acc * f)
		default:
			acc = float32(acc + f)
		}
	}
	if op == gcl.Mean {
		if class != realNums && d != tensor.F32 {
			acc = float32(toF(d, fromF(d, float64(acc)))) // the sum, which is exact anyway
		}
		acc = float32(acc / float32(len(v)))
	}
	return fromF(d, float64(acc))
}
