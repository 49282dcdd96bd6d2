package ops

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// number is what is computed in.
type number interface {
	int32 | int64 | uint32 | float32 | float64
}

type signed interface {
	int32 | int64 | float32 | float64
}

type float interface{ float32 | float64 }

// The element types that operations take.
var (
	floatTypes  = []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64}
	signedTypes = append(slices.Clone(floatTypes), tensor.I32, tensor.I64)
	numberTypes = append(slices.Clone(signedTypes), tensor.U32)
	valueTypes  = append(slices.Clone(numberTypes), tensor.Bool)
	boolTypes   = []tensor.DType{tensor.Bool}
)

// takes returns an error if an element type is none of those.
func takes(types []tensor.DType, d tensor.DType) error {
	if slices.Contains(types, d) {
		return nil
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	last := len(names) - 1
	if last > 0 {
		names = append(names[:last-1], names[last-1]+" or "+names[last])
	}
	return fmt.Errorf("element type %v, want %s", d, strings.Join(names, ", "))
}

// sameType returns the element type that all inputs have, one of those, or an error.
func sameType(types []tensor.DType, in ...ir.Spec) (tensor.DType, error) {
	for _, s := range in {
		if s.DType != in[0].DType {
			return 0, fmt.Errorf("element types %v and %v, want the same: Cast makes them so", in[0].DType, s.DType)
		}
	}
	return in[0].DType, takes(types, in[0].DType)
}

// canonicalNaN is what every NaN that is computed becomes, as package kernel has it: which of their bits processors set
// differs.
var canonicalNaN = math.Float64frombits(0x7ff8000000000000)

// canonical is v, or the canonical NaN for any NaN.
func canonical[T number](v T) T {
	if v != v {
		return T(canonicalNaN)
	}
	return v
}

// numberOf returns a scalar of an element type with the value of v. It is an error if an integer type cannot hold v
// exactly, or v is finite and a float type has only infinity for it.
func numberOf(d tensor.DType, v float64) (*tensor.Tensor, error) {
	if err := takes(numberTypes, d); err != nil {
		return nil, err
	}
	out, err := tensor.New(d)
	if err != nil {
		return nil, err
	}
	if tensor.ConvertChecked(out, tensor.Scalar(v)) != nil {
		err = fmt.Errorf("the number %v, want one that %v can hold", v, d)
		if d.IsFloat() {
			err = fmt.Errorf("%w: it would become infinite", err)
		}
		return nil, err
	}
	return out, nil
}

// scalar is a constant of a graph.
func scalar(g *ir.Graph, d tensor.DType, v float64) *ir.Tensor {
	y, err := numberOf(d, v)
	if err != nil { // there is no such type: d is that of a tensor which stands for an error
		y = nil
	}
	return g.Constant(y)
}

// wrapInput says what an error is about, if there is one.
func wrapInput(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
