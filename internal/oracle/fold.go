package oracle

import (
	"fmt"
	"math"
	"unsafe"

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
	r := op.rule()
	if !r.takes(d) || r.combine == own {
		panic(fmt.Sprintf("oracle: %s does not fold %v", op, d))
	}
	var fold any
	switch d {
	case tensor.Bool:
		fold = bools(r)
	case tensor.I8:
		fold = integers[int8](r)
	case tensor.I16:
		fold = integers[int16](r)
	case tensor.I32:
		fold = integers[int32](r)
	case tensor.I64:
		fold = integers[int64](r)
	case tensor.U8:
		fold = integers[uint8](r)
	case tensor.U16:
		fold = integers[uint16](r)
	case tensor.U32:
		fold = integers[uint32](r)
	case tensor.U64:
		fold = integers[uint64](r)
	case tensor.F16:
		fold = narrow(r, tensor.Float16.Float32, tensor.Float16FromFloat32, 0x7e00)
	case tensor.BF16:
		fold = narrow(r, tensor.BFloat16.Float32, tensor.BFloat16FromFloat32, 0x7fc0)
	case tensor.F32:
		fold = floats(r, math.Float32frombits(0x7fc00000))
	case tensor.F64:
		fold = floats(r, math.Float64frombits(0x7ff8000000000000))
	}
	return fold.(func([]T) T)
}

func bools(r rule) func([]bool) bool {
	return func(values []bool) bool {
		acc := values[0]
		for _, v := range values[1:] {
			switch r.combine {
			case least:
				acc = acc && v
			default: // of later too: false is zero
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
func folded[T number](r rule, values []T) T {
	input := func(v T) T {
		if r.squares {
			return T(v * v)
		}
		return v
	}
	acc := input(values[0])
	for _, v := range values[1:] {
		v = input(v)
		switch r.combine {
		case sum:
			acc = T(acc + v)
		case product:
			acc = T(acc * v)
		case least:
			acc = min(acc, v)
		case greatest:
			acc = max(acc, v)
		case composed:
			acc = afterwards(acc, v)
		case later:
			if v != 0 {
				acc = v
			}
		}
	}
	if r.divides {
		acc /= T(len(values))
	}
	return acc
}

// afterwards is the function y(x(.)) of two that are as Compose has them: y.a (x.a . + x.b) + y.b.
func afterwards[T number](x, y T) T {
	half := 4 * unsafe.Sizeof(x) // bits
	low := uint64(1)<<half - 1
	xa, xb, ya, yb := uint64(x)>>half&low, uint64(x)&low, uint64(y)>>half&low, uint64(y)&low
	return T(ya*xa&low<<half | (ya*xb+yb)&low)
}

func integers[T number](r rule) func([]T) T {
	return func(values []T) T { return folded(r, values) }
}

func floats[T float32 | float64](r rule, nan T) func([]T) T {
	return func(values []T) T {
		acc := folded(r, values)
		if acc != acc {
			return nan
		}
		return acc
	}
}

// narrow folds in float32 and rounds once.
func narrow[T tensor.Float16 | tensor.BFloat16](
	r rule, widen func(T) float32, round func(float32) T, nan T,
) func([]T) T {
	var wide []float32
	return func(values []T) T {
		wide = wide[:0]
		for _, v := range values {
			wide = append(wide, widen(v))
		}
		acc := folded(r, wide)
		if acc != acc {
			return nan
		}
		return round(acc)
	}
}
