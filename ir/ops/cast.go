package ops

import (
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Cast returns t in another element type, as [tensor.Convert] has it; both are among float16, bfloat16, float32,
// float64, int32, int64, uint32 and bool.
//
// The gradient is cast back between floats, and there is none otherwise.
func Cast(t *ir.Tensor, to tensor.DType) *ir.Tensor {
	return (&row{
		name: "cast", says: fmt.Sprintf("cast to %v", to),
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if err := takes(valueTypes, in[0].DType); err != nil {
				return nil, err
			}
			return []ir.Spec{{Shape: in[0].Shape, DType: to}}, wrapInput("the result", takes(valueTypes, to))
		},
		bind: func(m *ir.Memory) (func() error, error) {
			run := func() error { return tensor.Convert(m.Out[0], m.In[0]) }
			return run, run() // the first may allocate
		},
		back: func(b *ir.Backward) []*ir.Tensor {
			if from := b.InSpec(0).DType; from.IsFloat() && to.IsFloat() {
				return []*ir.Tensor{Cast(b.Grad(0), from)}
			}
			return []*ir.Tensor{nil}
		},
	}).of(t)
}
