package ir

import (
	"fmt"

	"gogcl.dev/tensor"
)

// This file holds what the optimisers have in common.

// sharing returns what stands for an error if two tensors that an operation changes share memory; else nil. what says
// which those are.
func sharing(op, what string, changed ...*Tensor) *Tensor {
	for i, t := range changed {
		for _, other := range changed[:i] {
			if t != nil && other != nil && !t.failed() && !other.failed() && t.memory() == other.memory() {
				t.graph.program.fail(&BuildError{
					Op: op, Graph: t.graph.name, Position: caller(""),
					Err: fmt.Errorf("%v and %v share memory, want %s each in its own", other, t, what),
				})
				return t.graph.broken()
			}
		}
	}
	return nil
}

// keptOf is the spec of what an optimiser keeps of a parameter from step to step.
func keptOf(param Spec) Spec {
	if param.DType == tensor.F64 {
		return param
	}
	return Spec{param.Shape, tensor.F32}
}

// checkStep looks at what every optimiser's step is given.
func checkStep(param, grad, rate Spec) error {
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
