package rts

import (
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
)

// Optimizer changes parameters by their gradients, shard by shard: what it does to an element depends on that element
// alone, and on numbers that are the same on all replicas.
type Optimizer interface {
	// States names what is kept of each parameter from step to step, each in the parameter's shape, beginning as zeros.
	States() []string

	// Update adds the operations that change a parameter's shard and its states where they lie. rate is a scalar of
	// float32, the learning rate; step a scalar of int32, the number of the step, the first being 1.
	Update(param *ir.Tensor, states []*ir.Tensor, grad, rate, step *ir.Tensor)
}

// Adam is ops.Adam as an Optimizer.
type Adam ops.Adam

// States implements Optimizer.
func (a Adam) States() []string { return []string{"mean", "square"} }

// Update implements Optimizer.
func (a Adam) Update(param *ir.Tensor, states []*ir.Tensor, grad, rate, step *ir.Tensor) {
	var state ops.AdamState // with fewer states it is an error that one is nil
	if len(states) > 1 {
		state = ops.AdamState{Mean: states[0], Square: states[1]}
	}
	ops.Adam(a).Update(param, state, grad, rate, step)
}

// SGD is ops.SGD as an Optimizer: without momentum it keeps nothing.
type SGD ops.SGD

// States implements Optimizer.
func (s SGD) States() []string {
	if s.Momentum == 0 {
		return nil
	}
	return []string{"velocity"}
}

// Update implements Optimizer.
func (s SGD) Update(param *ir.Tensor, states []*ir.Tensor, grad, rate, _ *ir.Tensor) {
	var velocity *ir.Tensor
	if len(states) > 0 {
		velocity = states[0]
	}
	ops.SGD(s).Update(param, velocity, grad, rate)
}
