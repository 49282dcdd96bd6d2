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
	return c.applyInPlace(allToAll{}, t)
}

// Broadcast returns the tensor of the replica that has the rank root in its group: with several groups there is one
// root in each. A root that is no rank is an error.
func (c Comm) Broadcast(t *ir.Tensor, root int) *ir.Tensor { return c.apply(broadcast{root}, t) }

// BroadcastInPlace is Broadcast with the result in the memory of t, of which it is the new value: a variable's, that is
// to begin alike. It has no gradient.
func (c Comm) BroadcastInPlace(t *ir.Tensor, root int) *ir.Tensor {
	return c.applyInPlace(broadcast{root}, t)
}

type allToAll struct{}

func (a allToAll) Name() string { return schedule.AllToAll.String() }

func (a allToAll) infer(in []ir.Spec, ranks int) ([]ir.Spec, error) {
	if err := one(in); err != nil {
		return nil, err
	}
	if s := in[0].Shape; len(s) == 0 || s[0] != ranks {
		return nil, fmt.Errorf("the first dimension of an all-to-all is that of the ranks, %d, not as in the shape %v",
			ranks, s)
	}
	return in, nil
}

func (a allToAll) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	return call{collective: schedule.AllToAll, dst: m.Out[0], src: m.In[0]}.bind(m, c)
}

type broadcast struct{ root int }

func (a broadcast) Name() string   { return schedule.Broadcast.String() }
func (a broadcast) String() string { return fmt.Sprintf("from %d", a.root) }

func (a broadcast) infer(in []ir.Spec, ranks int) ([]ir.Spec, error) {
	return sameFromRoot(in, a.root, ranks)
}

// sameFromRoot is infer where the output is like the input, and there is a root.
func sameFromRoot(in []ir.Spec, root, ranks int) ([]ir.Spec, error) {
	if err := one(in); err != nil {
		return nil, err
	}
	if root < 0 || root >= ranks {
		return nil, fmt.Errorf("root %d is not a rank of the group, 0 to %d", root, ranks-1)
	}
	return in, nil
}

func (a broadcast) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	return call{collective: schedule.Broadcast, root: a.root, dst: m.Out[0], src: m.In[0]}.bind(m, c)
}

// toRoot is the gradient of a broadcast: the root has the reduction of the inputs, the others zeros.
type toRoot struct {
	root     int
	operator gcl.Operator // Add or Local
}

func (a toRoot) Name() string   { return "reduce to root" }
func (a toRoot) String() string { return fmt.Sprintf("%v %d", a.operator, a.root) }

func (a toRoot) infer(in []ir.Spec, ranks int) ([]ir.Spec, error) {
	return sameFromRoot(in, a.root, ranks)
}

func (a toRoot) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	reduce, err := allReduce{a.operator}.bind(m, c)
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

// gradient sends everything back to where it came from, which is the same exchange.
func (a allToAll) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	return []*ir.Tensor{c.AllToAll(b.Grad(0))}
}

// gradient gives the root what all replicas do with its tensor, and the others, whose tensors nobody reads, zeros.
func (a broadcast) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	operator := gcl.Add
	if b.IdenticalLosses() {
		operator = gcl.Local
	}
	return []*ir.Tensor{c.apply(toRoot{a.root, operator}, b.Grad(0))}
}

// gradient gives every replica what the root does with the reduction.
func (a toRoot) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	if !a.operator.Combines() {
		return []*ir.Tensor{c.apply(a, b.Grad(0))}
	}
	return []*ir.Tensor{c.Broadcast(b.Grad(0), a.root)}
}
