package collective

import (
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/methods/schedule"
)

// AllToAll returns part r of every replica's tensor, r being the replica's rank: out[j] is in[r] of rank j. A first
// dimension that is not the number of ranks is an error.
func (c Comm) AllToAll(t *ir.Tensor) *ir.Tensor { return c.apply(allToAll{}, t) }

// AllToAllInPlace is AllToAll with the result in the memory of t, of which it is the new value. It has no gradient.
func (c Comm) AllToAllInPlace(t *ir.Tensor) *ir.Tensor {
	return c.applyInPlace(allToAll{}, t)[0]
}

// Broadcast returns the tensor of the replica that has the rank root in its group: with several groups there is one
// root in each. A root that is no rank is an error.
func (c Comm) Broadcast(t *ir.Tensor, root int) *ir.Tensor { return c.apply(broadcast{root}, t) }

// BroadcastInPlace is Broadcast with the result in the memory of t, of which it is the new value: a variable's, that is
// to begin alike. It has no gradient.
func (c Comm) BroadcastInPlace(t *ir.Tensor, root int) *ir.Tensor {
	return c.applyInPlace(broadcast{root}, t)[0]
}

type allToAll struct{}

func (a allToAll) Name() string { return schedule.AllToAll.String() }

func (a allToAll) call() (schedule.Collective, gcl.Operator, int) { return schedule.AllToAll, 0, 0 }

func (a allToAll) inferOne(s ir.Spec, ranks int) ([]ir.Spec, error) {
	if len(s.Shape) == 0 || s.Shape[0] != ranks {
		return nil, fmt.Errorf("the first dimension of an all-to-all is that of the ranks, %d, not as in the shape %v",
			ranks, s.Shape)
	}
	return []ir.Spec{s}, nil
}

type broadcast struct{ root int }

func (a broadcast) Name() string   { return schedule.Broadcast.String() }
func (a broadcast) String() string { return fmt.Sprintf("from %d", a.root) }

func (a broadcast) call() (schedule.Collective, gcl.Operator, int) {
	return schedule.Broadcast, 0, a.root
}

func (a broadcast) inferOne(s ir.Spec, ranks int) ([]ir.Spec, error) {
	if a.root < 0 || a.root >= ranks {
		return nil, fmt.Errorf("root %d is not a rank of the group, 0 to %d", a.root, ranks-1)
	}
	return []ir.Spec{s}, nil
}

// toRoot is the gradient of a broadcast: the root has the reduction of the inputs, the others zeros.
type toRoot struct {
	root     int
	operator gcl.Operator // Add or Local
}

func (a toRoot) Name() string   { return "reduce to root" }
func (a toRoot) String() string { return fmt.Sprintf("%v %d", a.operator, a.root) }

func (a toRoot) infer(in []ir.Spec, ranks int) ([]ir.Spec, error) {
	if err := one(in); err != nil {
		return nil, err
	}
	return broadcast{a.root}.inferOne(in[0], ranks)
}

func (a toRoot) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	k := allReduce{a.operator}
	reduce, err := several{k, []kind{k}}.bind(m, c)
	if err != nil || c.Rank() == a.root {
		return reduce, err
	}
	dst := m.Out[0].Bytes()
	return func() error {
		if err := reduce(); err != nil {
			return err
		}
		clear(dst)
		return nil
	}, nil
}

// gradients send everything back to where it came from, which is the same exchange.
func (a allToAll) gradients(b *ir.Backward, c Comm, inputs []int) (grads []*ir.Tensor) {
	for _, i := range inputs {
		grads = append(grads, c.AllToAll(b.Grad(i)))
	}
	return grads
}

// gradients give the root what all replicas do with its tensor, and the others, whose tensors nobody reads, zeros.
func (a broadcast) gradients(b *ir.Backward, c Comm, inputs []int) (grads []*ir.Tensor) {
	operator := gcl.Add
	if b.IdenticalLosses() {
		operator = gcl.Local
	}
	for _, i := range inputs {
		grads = append(grads, c.toRoot(toRoot{a.root, operator}, b.Grad(i)))
	}
	return grads
}

func (c Comm) toRoot(a toRoot, t *ir.Tensor) *ir.Tensor {
	return ir.Apply1(ordered{c.op(a, t)}, nil, t)
}

// gradient gives every replica what the root does with the reduction.
func (a toRoot) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	if !a.operator.Combines() {
		return []*ir.Tensor{c.toRoot(a, b.Grad(0))}
	}
	return []*ir.Tensor{c.Broadcast(b.Grad(0), a.root)}
}
