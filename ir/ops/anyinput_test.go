package ops_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// TestAnyInput calls everything with zero, nil and odd values.
func TestAnyInput(t *testing.T) {
	p := ir.New(2)
	m := p.Main()
	constant := func(d tensor.DType, shape ...int) *ir.Tensor { return m.Constant(zeros(spec(d, shape...))) }
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Abs": ops.Abs, "Accumulate": ops.Accumulate, "Add": ops.Add, "AddScalar": ops.AddScalar,
			"And": ops.And, "Argmax": ops.Argmax, "Cast": ops.Cast, "Concat": ops.Concat,
			"CopyInto": ops.CopyInto, "CrossEntropy": ops.CrossEntropy,
			"CrossEntropyEach": ops.CrossEntropyEach, "Div": ops.Div, "DivScalar": ops.DivScalar,
			"Equal": ops.Equal, "Exp": ops.Exp, "Expand": ops.Expand, "Gelu": ops.Gelu,
			"Greater": ops.Greater, "GreaterEqual": ops.GreaterEqual, "LayerNorm": ops.LayerNorm,
			"Less": ops.Less, "LessEqual": ops.LessEqual, "Log": ops.Log, "LogSoftmax": ops.LogSoftmax,
			"MatMul": ops.MatMul, "Mul": ops.Mul, "MulScalar": ops.MulScalar, "Neg": ops.Neg, "Not": ops.Not,
			"NotEqual": ops.NotEqual, "Or": ops.Or, "ReduceMax": ops.ReduceMax,
			"ReduceMaxKeep": ops.ReduceMaxKeep, "ReduceMean": ops.ReduceMean,
			"ReduceMeanKeep": ops.ReduceMeanKeep, "ReduceSum": ops.ReduceSum,
			"ReduceSumKeep": ops.ReduceSumKeep, "Relu": ops.Relu, "Reshape": ops.Reshape,
			"ScaledAdd": ops.ScaledAdd, "Select": ops.Select, "Sigmoid": ops.Sigmoid, "Slice": ops.Slice,
			"SliceAxis": ops.SliceAxis, "Softmax": ops.Softmax, "Sqrt": ops.Sqrt, "Square": ops.Square,
			"Sub": ops.Sub, "SubScalar": ops.SubScalar, "Tanh": ops.Tanh, "Softplus": ops.Softplus, "TopK": ops.TopK, "Transpose": ops.Transpose,
		},
		Types: []any{ops.Adam{}, ops.AdamState{}, ops.SGD{}},
		Values: []any{
			constant(tensor.F32, 2, 3), constant(tensor.F32), constant(tensor.I32, 3), constant(tensor.Bool, 2, 3),
			constant(tensor.F16, 2, 3), p.Variable(zeros(f32(2, 3))).Tensor, p.Variable(zeros(f32(2, 3))).Tensor,
			tensor.F32, tensor.Bool, &ir.Tensor{},
		},
	})
}
