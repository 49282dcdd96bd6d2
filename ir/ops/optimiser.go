package ops

import (
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// This file holds what the optimisers have in common.

// bindStep binds a step of an optimiser, given its kernels, without the scalars, whose types are their own: those are
// its last inputs.
func bindStep(m *ir.Memory, scalars int, bind func(t tensor.DType, m *ir.Memory) (func() error, error)) (func() error,
	error) {
	tensors := *m
	tensors.In = m.In[:len(m.In)-scalars]
	return bindWide(&tensors,
		func(m *ir.Memory) (func() error, error) { return bind(tensor.F32, m) },
		func(m *ir.Memory) (func() error, error) { return bind(tensor.F64, m) })
}

// keptOf is the spec of what an optimiser keeps of a parameter from step to step.
func keptOf(param ir.Spec) ir.Spec {
	if param.DType == tensor.F64 {
		return param
	}
	return ir.Spec{Shape: param.Shape, DType: tensor.F32}
}

// checkStep looks at what every optimiser's step is given.
func checkStep(param, grad, rate ir.Spec) error {
	switch {
	case !grad.Equal(param):
		return fmt.Errorf("a gradient of %v, want %v as the parameter", grad, param)
	case len(rate.Shape) > 0 || rate.DType != tensor.F32 && rate.DType != tensor.F64:
		return fmt.Errorf("a rate of %v, want a scalar of float32 or float64", rate)
	}
	return nil
}

// rateIn reads a scalar of float32 or float64.
func rateIn(t *tensor.Tensor) func() float64 {
	if t.DType() == tensor.F32 {
		return numberIn[float32](t)
	}
	return numberIn[float64](t)
}
