package ops

import (
	"errors"
	"fmt"
	"math"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Adam is the optimiser of Kingma and Ba, "Adam: A Method for Stochastic Optimization" (arXiv:1412.6980). A field of 0
// stands for what they propose.
type Adam struct {
	Beta1   float64 // what the mean of gradients keeps from step to step, between 0 and 1: 0.9
	Beta2   float64 // what the mean of their squares keeps: 0.999
	Epsilon float64 // added to the divisor, above 0: 1e-8
}

// AdamState is what is kept of a parameter from step to step, in its shape: the running means of its gradient and of
// the square of that. Both begin as zeros. A mean whose magnitude falls below 2^-100, or 2^-900 in float64, becomes 0:
// where gradients stay zero it would be subnormal, which slows processors down.
type AdamState struct{ Mean, Square *ir.Tensor }

// Update adds an operation that changes param and its state in place by one step, and returns both as they are from
// then on. With g for grad and t for step, each element of
//
//	mean    becomes  mean + (1-Beta1) (g - mean)
//	square  becomes  square + (1-Beta2) (g g - square)
//	param   becomes  param - rate/(1-Beta1^t) mean / (sqrt(square/(1-Beta2^t)) + Epsilon)
//
// param and grad are of one spec, of any floats; the state has its shape, in float32, or in float64 if param is of
// that, and that is what is computed in. rate is a scalar of float32 or float64: the learning rate. step is a scalar of
// int32 or int64: the number of the step, the first being 1. Errors: other types or shapes, numbers out of range, one
// tensor in two of the three places that change; when it runs, a step below 1.
func (a Adam) Update(param *ir.Tensor, state AdamState, grad, rate, step *ir.Tensor) (*ir.Tensor, AdamState) {
	a = a.or()
	o := &row{
		name: "adam", says: fmt.Sprintf("adam %v %v %v", a.Beta1, a.Beta2, a.Epsilon), changes: []int{0, 1, 2},
		infer: func(in []ir.Spec) ([]ir.Spec, error) { return a.infer(in) },
		bind: func(m *ir.Memory) (func() error, error) {
			rate, step := rateIn(m.In[4]), numberIn[int64]
			if m.In[5].DType() == tensor.I32 {
				step = numberIn[int32]
			}
			return bindStep(m, 2, func(t tensor.DType, w *ir.Memory) (func() error, error) {
				return bindAdam(a, t, w, rate, step(m.In[5]))
			})
		},
	}
	o.scratch = func(in []ir.Spec) int { return wideBytes(o.infer, in) }
	out := ir.Apply(o, nil, param, state.Mean, state.Square, grad, rate, step)
	if len(out) < 3 { // after an error
		return out[0], AdamState{out[0], out[0]}
	}
	return out[0], AdamState{out[1], out[2]}
}

// or is a with what stands for 0.
func (a Adam) or() Adam {
	for _, x := range []struct {
		field    *float64
		proposed float64
	}{{&a.Beta1, 0.9}, {&a.Beta2, 0.999}, {&a.Epsilon, 1e-8}} {
		if *x.field == 0 {
			*x.field = x.proposed
		}
	}
	return a
}

func (a Adam) check() error {
	switch {
	case !(a.Beta1 > 0 && a.Beta1 < 1):
		return fmt.Errorf("a Beta1 of %v, want one above 0 and below 1", a.Beta1)
	case !(a.Beta2 > 0 && a.Beta2 < 1):
		return fmt.Errorf("a Beta2 of %v, want one above 0 and below 1", a.Beta2)
	case !(a.Epsilon > 0) || math.IsInf(a.Epsilon, 0):
		return fmt.Errorf("an Epsilon of %v, want one above 0 and finite", a.Epsilon)
	}
	return nil
}

// infer is the rule of parameter, mean, square, gradient, rate and number of the step.
func (a Adam) infer(in []ir.Spec) ([]ir.Spec, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	param, mean, square, grad, rate, step := in[0], in[1], in[2], in[3], in[4], in[5]
	if err := takes(floatTypes, param.DType); err != nil {
		return nil, err
	}
	if err := checkStep(param, grad, rate); err != nil {
		return nil, err
	}
	switch kept := keptOf(param); {
	case !mean.Equal(kept):
		return nil, fmt.Errorf("a mean of %v, want %v", mean, kept)
	case !square.Equal(kept):
		return nil, fmt.Errorf("a mean of squares of %v, want %v", square, kept)
	case len(step.Shape) > 0 || step.DType != tensor.I32 && step.DType != tensor.I64:
		return nil, fmt.Errorf("a step of %v, want a scalar of int32 or int64", step)
	}
	return in[:3], nil
}

var errFirstStep = errors.New("want 1 for the first")

func bindAdam(a Adam, t tensor.DType, m *ir.Memory, rate, step func() float64) (func() error, error) {
	update := kernel.Adam.Loop(kernel.Type(t))
	operands := kernel.Operands{
		Param: m.Out[0].Bytes(), From: m.In[0].Bytes(), Grad: m.In[3].Bytes(),
		First: m.Out[1].Bytes(), Second: m.Out[2].Bytes(),
	}
	return func() error {
		t := step()
		if t < 1 {
			return fmt.Errorf("step %v: %w", t, errFirstStep)
		}
		// Both means began as zeros; these undo the pull that this has in the first steps.
		size, scale := rate()/(1-math.Pow(a.Beta1, t)), 1/math.Sqrt(1-math.Pow(a.Beta2, t))
		update(operands, kernel.Numbers{1 - a.Beta1, 1 - a.Beta2, size, scale, a.Epsilon})
		return nil
	}, nil
}
