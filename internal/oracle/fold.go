package oracle

import (
	"fmt"
	"math"

	"gogcl.dev/tensor"
)

// Reduce is the reduction of inputs of one length, at least one, by rank: the fold of each element in rank order. One
// input alone is copied. With [Local] every rank has another result, its own input: see [Outputs].
//
// Integers wrap. Elements of 16 bits are combined in float32 and rounded once, as Reproducible promises. Mean divides
// the sum once. A NaN is the canonical one.
func Reduce[T tensor.Element](op Operator, in [][]T) []T {
	fold := folder[T](op)
	out, column := make([]T, len(in[0])), make([]T, len(in))
	for i := range out {
		for r := range in {
			column[r] = in[r][i]
		}
		out[i] = column[0]
		if len(in) > 1 {
			out[i] = fold(column)
		}
	}
	return out
}

// folder is the fold of one element of each rank, at least two.
func folder[T tensor.Element](op Operator) func([]T) T {
	d := tensor.DTypeOf[T]()
	if !op.Takes(d) || op == Local {
		panic(fmt.Sprintf("oracle: %s does not fold %v", op, d))
	}
	var fold any
	switch d {
	case tensor.Bool:
		fold = bools(op)
	case tensor.I8:
		fold = integers[int8](op)
	case tensor.I16:
		fold = integers[int16](op)
	case tensor.I32:
		fold = integers[int32](op)
	case tensor.I64:
		fold = integers[int64](op)
	case tensor.U8:
		fold = integers[uint8](op)
	case tensor.U16:
		fold = integers[uint16](op)
	case tensor.U32:
		fold = integers[uint32](op)
	case tensor.U64:
		fold = integers[uint64](op)
	case tensor.F16:
		fold = narrow(op, tensor.Float16.Float32, tensor.Float16FromFloat32, 0x7e00)
	case tensor.BF16:
		fold = narrow(op, tensor.BFloat16.Float32, tensor.BFloat16FromFloat32, 0x7fc0)
	case tensor.F32:
		fold = floats(op, math.Float32frombits(0x7fc00000))
	case tensor.F64:
		fold = floats(op, math.Float64frombits(0x7ff8000000000000))
	}
	return fold.(func([]T) T)
}

func bools(op Operator) func([]bool) bool {
	return func(values []bool) bool {
		acc := values[0]
		for _, v := range values[1:] {
			if op == LogicalAnd {
				acc = acc && v
			} else {
				acc = acc || v
			}
		}
		return acc
	}
}

// number lists the types that Go calculates with.
type number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// folded is the left fold of values. The conversions keep the compiler from fusing a multiplication and an addition.
func folded[T number](op Operator, values []T) T {
	acc := values[0]
	if op == SquareAdd {
		acc = T(acc * acc)
	}
	for _, v := range values[1:] {
		switch op {
		case Add, Mean:
			acc = T(acc + v)
		case Mul:
			acc = T(acc * v)
		case Min:
			acc = min(acc, v)
		case Max:
			acc = max(acc, v)
		case SquareAdd:
			acc = T(acc + T(v*v))
		default:
			panic("oracle: no such operator: " + op)
		}
	}
	if op == Mean {
		acc /= T(len(values))
	}
	return acc
}

func integers[T number](op Operator) func([]T) T {
	return func(values []T) T { return folded(op, values) }
}

func floats[T float32 | float64](op Operator, nan T) func([]T) T {
	return func(values []T) T {
		acc := folded(op, values)
		if acc != acc {
			return nan
		}
		return acc
	}
}

// narrow folds in float32 and rounds once.
func narrow[T tensor.Float16 | tensor.BFloat16](op Operator, widen func(T) float32, round func(float32) T, nan T) func([]T) T {
	var wide []float32
	return func(values []T) T {
		wide = wide[:0]
		for _, v := range values {
			wide = append(wide, widen(v))
		}
		acc := folded(op, wide)
		if acc != acc {
			return nan
		}
		return round(acc)
	}
}
