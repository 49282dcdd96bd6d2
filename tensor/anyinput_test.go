package tensor_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/tensor"
)

// TestAnyInput: no call panics, but Dim with a dimension that is none.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	matrix, err := tensor.New(tensor.F32, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Bytes": tensor.Bytes[int32], "FromBytes": tensor.FromBytes[bool], "Of": tensor.Of[float32],
			"Rows":                tensor.Rows[float32],
			"BFloat16FromFloat32": tensor.BFloat16FromFloat32, "Float16FromFloat32": tensor.Float16FromFloat32,
			"Convert": tensor.Convert, "ConvertChecked": tensor.ConvertChecked,
			"DTypeOf": tensor.DTypeOf[bool], "DTypes": tensor.DTypes, "ParseDType": tensor.ParseDType,
			"FromSlice": tensor.FromSlice[int64], "MustFromSlice": tensor.MustFromSlice[int64],
			"New": tensor.New, "Scalar": tensor.Scalar[uint8], "View": tensor.View,
		},
		Types: []any{tensor.BFloat16(0), tensor.Float16(0), tensor.DType(0), tensor.Shape{}, tensor.Tensor{}},
		Values: []any{matrix, tensor.Scalar(float32(1)), tensor.Scalar(true), tensor.F32, tensor.Bool,
			tensor.Shape{2, 3}, &tensor.Tensor{}},
		Skip: map[string]string{
			"MustFromSlice": "it panics with the error of FromSlice",
			"Tensor.Dim":    "an index out of range panics, as in Go",
		},
	})
}
