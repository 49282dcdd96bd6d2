package ir

import (
	"errors"
	"fmt"
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
// by the new velocity. It begins as zeros. With a Momentum of 0 it may be nil; then nil is returned for it.
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
		func(m *Memory) (func() error, error) { return bindSGD[float32](o, m, rate) },
		func(m *Memory) (func() error, error) { return bindSGD[float64](o, m, rate) })
}

func bindSGD[T float](o *sgdOp, m *Memory, rate func() float64) (func() error, error) {
	from, grad := elementsOf[T](m.In[0]), elementsOf[T](m.In[len(m.In)-1])
	param, momentum := elementsOf[T](m.Out[0]), T(o.Momentum)
	var velocity []T
	if o.moving {
		velocity = elementsOf[T](m.Out[1])
	}
	return func() error {
		size := T(rate())
		from, param := from[:len(grad)], param[:len(grad)]
		odd := T(0) // becomes NaN with any infinity or NaN, without a branch on every element
		// Products are rounded, lest they be fused with sums on some processors.
		switch {
		case !o.moving:
			for i, g := range grad {
				next := from[i] - T(size*g)
				param[i] = next
				odd += next - next
			}
		case o.Nesterov:
			velocity := velocity[:len(grad)]
			for i, g := range grad {
				v := T(momentum*velocity[i]) + g
				next := from[i] - T(size*(g+T(momentum*v)))
				velocity[i], param[i] = v, next
				odd += next - next
			}
		default:
			velocity := velocity[:len(grad)]
			for i, g := range grad {
				v := T(momentum*velocity[i]) + g
				next := from[i] - T(size*v)
				velocity[i], param[i] = v, next
				odd += next - next
			}
		}
		if odd != odd {
			for _, list := range [][]T{param, velocity} {
				for i, v := range list {
					list[i] = canonical(v)
				}
			}
		}
		return nil
	}, nil
}
