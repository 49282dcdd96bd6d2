package ir

import (
	"errors"
	"fmt"

	"gogcl.dev/internal/kernel"
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
func (s SGD) Update(param, velocity, grad, rate *Tensor) (newParam, newVelocity *Tensor) {
	if velocity == nil {
		return Apply1(&sgdOp{SGD: s}, nil, param, grad, rate), nil
	}
	if broken := sharing("sgd", "parameter and velocity", param, velocity); broken != nil {
		return broken, broken
	}
	out := Apply(&sgdOp{s, true}, nil, param, velocity, grad, rate)
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

// sgdOp changes a parameter, and the velocity if there is one, given the gradient and the rate.
type sgdOp struct {
	SGD
	moving bool // there is a velocity
}

func (o *sgdOp) Name() string { return "sgd" }

func (o *sgdOp) Updates() []int {
	if o.moving {
		return []int{0, 1}
	}
	return []int{0}
}

func (o *sgdOp) String() string {
	if o.Nesterov {
		return fmt.Sprintf("sgd %v nesterov", o.Momentum)
	}
	return fmt.Sprintf("sgd %v", o.Momentum)
}

func (o *sgdOp) Infer(in []Spec) ([]Spec, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Momentum > 0 && !o.moving {
		return nil, fmt.Errorf("a Momentum of %v and no velocity", o.Momentum)
	}
	param, grad, rate := in[0], in[len(in)-2], in[len(in)-1]
	if err := takes(floatTypes, param.DType); err != nil {
		return nil, err
	}
	if kept := keptOf(param); o.moving && !in[1].Equal(kept) {
		return nil, fmt.Errorf("a velocity of %v, want %v", in[1], kept)
	}
	if err := checkStep(param, grad, rate); err != nil {
		return nil, err
	}
	return in[:len(in)-2], nil
}

func (o *sgdOp) ScratchBytes(in []Spec) int { return wideBytes(o, in) }

func (o *sgdOp) Bind(m *Memory) (func() error, error) {
	rate := rateIn(m.In[len(m.In)-1])
	wide := *m // without the scalar, whose type is its own
	wide.In = m.In[:len(m.In)-1]
	return bindWide(&wide,
		func(m *Memory) (func() error, error) { return bindSGD(o, tensor.F32, m, rate) },
		func(m *Memory) (func() error, error) { return bindSGD(o, tensor.F64, m, rate) })
}

func bindSGD(o *sgdOp, t tensor.DType, m *Memory, rate func() float64) (func() error, error) {
	kind := kernel.Descend
	operands := kernel.Operands{Param: m.Out[0].Bytes(), From: m.In[0].Bytes(), Grad: m.In[len(m.In)-1].Bytes()}
	if o.moving {
		kind, operands.First = kernel.Momentum, m.Out[1].Bytes()
		if o.Nesterov {
			kind = kernel.Nesterov
		}
	}
	update := kind.Loop(kernel.Type(t))
	return func() error {
		update(operands, kernel.Numbers{rate(), o.Momentum})
		return nil
	}, nil
}
