package ops

import (
	"errors"
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// SGD is gradient descent with momentum, as PyTorch defines it with a dampening of 0
// (https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html). Its zero value is gradient descent alone.
type SGD struct {
	Momentum float64 // what the velocity keeps from step to step, from 0 on and below 1
	Nesterov bool    // take the step that the next velocity would give; only with a Momentum above 0
}

// Update adds an operation that changes param and velocity in place by one step, and returns both as they are from then
// on. With g for grad, each element of
//
//	velocity  becomes  Momentum velocity + g
//	param     becomes  param - rate velocity, or with Nesterov param - rate (g + Momentum velocity)
//
// by the new velocity. It begins as zeros, and becomes 0 where its magnitude falls below 2^-100, or 2^-900 in float64:
// where gradients stay zero it would be subnormal, which slows processors down. With a Momentum of 0 it may be nil;
// then nil is returned for it.
//
// param and grad are of one spec, of any floats; velocity has its shape, in float32, or in float64 if param is of that,
// and that is what is computed in. rate is a scalar of float32 or float64: the learning rate. Errors: other types or
// shapes, numbers out of range, no velocity with a Momentum, one tensor in both places that change.
func (s SGD) Update(param, velocity, grad, rate *ir.Tensor) (newParam, newVelocity *ir.Tensor) {
	o := &row{
		name: "sgd", says: fmt.Sprintf("sgd %v", s.Momentum), changes: []int{0},
		infer: func(in []ir.Spec) ([]ir.Spec, error) { return s.infer(in) },
		bind: func(m *ir.Memory) (func() error, error) {
			rate := rateIn(m.In[len(m.In)-1])
			return bindStep(m, 1, func(t tensor.DType, m *ir.Memory) (func() error, error) {
				return bindSGD(s, t, m, rate)
			})
		},
	}
	o.scratch = func(in []ir.Spec) int { return wideBytes(o.infer, in) }
	if s.Nesterov {
		o.says += " nesterov"
	}
	if velocity == nil {
		return o.of(param, grad, rate), nil
	}
	o.changes = []int{0, 1}
	out := ir.Apply(o, nil, param, velocity, grad, rate)
	if len(out) < 2 { // after an error
		return out[0], out[0]
	}
	return out[0], out[1]
}

func (s SGD) check() error {
	switch {
	case !(s.Momentum >= 0 && s.Momentum < 1):
		return fmt.Errorf("a Momentum of %v, want one from 0 on and below 1", s.Momentum)
	case s.Nesterov && s.Momentum == 0:
		return errors.New("a Momentum of 0 with Nesterov, want one above 0")
	}
	return nil
}

// infer is the rule of parameter, velocity if there is one, gradient and rate.
func (s SGD) infer(in []ir.Spec) ([]ir.Spec, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	moving := len(in) == 4
	if s.Momentum > 0 && !moving {
		return nil, fmt.Errorf("a Momentum of %v and no velocity", s.Momentum)
	}
	param, grad, rate := in[0], in[len(in)-2], in[len(in)-1]
	if err := takes(floatTypes, param.DType); err != nil {
		return nil, err
	}
	if kept := keptOf(param); moving && !in[1].Equal(kept) {
		return nil, fmt.Errorf("a velocity of %v, want %v", in[1], kept)
	}
	if err := checkStep(param, grad, rate); err != nil {
		return nil, err
	}
	return in[:len(in)-2], nil
}

func bindSGD(s SGD, t tensor.DType, m *ir.Memory, rate func() float64) (func() error, error) {
	kind := kernel.Descend
	operands := kernel.Operands{Param: m.Out[0].Bytes(), From: m.In[0].Bytes(), Grad: m.In[len(m.In)-1].Bytes()}
	if len(m.Out) == 2 {
		kind, operands.First = kernel.Momentum, m.Out[1].Bytes()
		if s.Nesterov {
			kind = kernel.Nesterov
		}
	}
	update := kind.Loop(kernel.Type(t))
	return func() error {
		update(operands, kernel.Numbers{rate(), s.Momentum})
		return nil
	}, nil
}
