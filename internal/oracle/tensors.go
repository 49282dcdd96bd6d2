package oracle

import (
	"fmt"

	"gogcl.dev/tensor"
)

// erased is the functions for one element type, for those who know the type at run time only.
type erased struct {
	inputs  func(op Operator, n, elements int) []*tensor.Tensor
	outputs func(c Call, in []*tensor.Tensor) []*tensor.Tensor
	check   func(what string, got, want *tensor.Tensor) error
}

var byDType = map[tensor.DType]erased{
	tensor.Bool: erase[bool](),
	tensor.I8:   erase[int8](), tensor.I16: erase[int16](), tensor.I32: erase[int32](), tensor.I64: erase[int64](),
	tensor.U8: erase[uint8](), tensor.U16: erase[uint16](), tensor.U32: erase[uint32](), tensor.U64: erase[uint64](),
	tensor.F16: erase[tensor.Float16](), tensor.BF16: erase[tensor.BFloat16](),
	tensor.F32: erase[float32](), tensor.F64: erase[float64](),
}

func erase[T tensor.Element]() erased {
	return erased{
		inputs: func(op Operator, n, elements int) []*tensor.Tensor { return flat(Inputs[T](op, n, elements)) },
		outputs: func(c Call, in []*tensor.Tensor) []*tensor.Tensor {
			data := make([][]T, len(in))
			for r, t := range in {
				data[r] = must(tensor.Of[T](t))
			}
			return flat(Outputs(c, data))
		},
		check: func(what string, got, want *tensor.Tensor) error {
			return Check(what, must(tensor.Of[T](got)), must(tensor.Of[T](want)))
		},
	}
}

func flat[T tensor.Element](all [][]T) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(all))
	for r, data := range all {
		out[r] = must(tensor.FromSlice(data))
	}
	return out
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// InputTensors is [Inputs] of a type known at run time, as tensors of one dimension.
func InputTensors(d tensor.DType, op Operator, n, elements int) []*tensor.Tensor {
	return byDType[d].inputs(op, n, elements)
}

// OutputTensors is [Outputs] of tensors of any shape: their elements in order. The results have one dimension.
func OutputTensors(c Call, in []*tensor.Tensor) []*tensor.Tensor {
	return byDType[in[0].DType()].outputs(c, in)
}

// CheckTensor is [Check] of dtype, shape and bits.
func CheckTensor(what string, got, want *tensor.Tensor) error {
	if got.DType() != want.DType() || !got.Shape().Equal(want.Shape()) {
		return fmt.Errorf("%s is %v%v, want %v%v", what, got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	return byDType[got.DType()].check(what, got, want)
}
