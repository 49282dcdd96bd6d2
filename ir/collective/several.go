package collective

import (
	"context"
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// ReduceScatterMany is ReduceScatter of each tensor, all in one set of messages. They may differ in length and element
// type, and are of one graph. Of none it returns none.
func (c Comm) ReduceScatterMany(tensors []*ir.Tensor, operator gcl.Operator) []*ir.Tensor {
	return c.applySeveral(several{of: reduceScatter{operator: operator}, carry: func(ctx context.Context, c *gcl.Comm, dst, src []*tensor.Tensor) error {
		return gcl.ReduceScatterTensorsTo(ctx, c, dst, src, operator)
	}}, tensors)
}

// AllGatherMany is AllGather of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) AllGatherMany(tensors []*ir.Tensor) []*ir.Tensor {
	return c.applySeveral(several{of: allGather{}, carry: gcl.AllGatherTensorsTo}, tensors)
}

// AllToAllMany is AllToAll of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) AllToAllMany(tensors []*ir.Tensor) []*ir.Tensor {
	return c.applySeveral(several{of: allToAll{}, carry: gcl.AllToAllTensorsTo}, tensors)
}

// BroadcastMany is Broadcast of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) BroadcastMany(tensors []*ir.Tensor, root int) []*ir.Tensor {
	return c.applySeveral(several{of: broadcast{root}, carry: func(ctx context.Context, c *gcl.Comm, dst, src []*tensor.Tensor) error {
		return gcl.BroadcastTensorsTo(ctx, c, dst, src, root)
	}}, tensors)
}

// several is one action on each of several tensors, which gcl carries out together.
type several struct {
	of    action
	carry func(ctx context.Context, c *gcl.Comm, dst, src []*tensor.Tensor) error
}

func (c Comm) applySeveral(a several, tensors []*ir.Tensor) []*ir.Tensor {
	if len(tensors) == 0 {
		return nil
	}
	return many(ordered{c.op(a, tensors[0])}, tensors)
}

func (a several) Name() string { return a.of.Name() }

// String returns what the action's does, and that it is on several tensors.
func (a several) String() string {
	if s, is := a.of.(fmt.Stringer); is {
		return s.String() + " of several"
	}
	return "of several"
}

func (a several) infer(in []ir.Spec, ranks int) ([]ir.Spec, error) {
	var out []ir.Spec
	for i := range in {
		s, err := a.of.infer(in[i:i+1], ranks)
		if err != nil {
			return nil, fmt.Errorf("tensor %d: %w", i, err)
		}
		out = append(out, s...)
	}
	return out, nil
}

func (a several) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	return func() error { return a.carry(m.Context(), c, m.Out, m.In) }, nil
}

// gradient is that of each: there is not one for all, since some may have none.
func (a several) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	grads := make([]*ir.Tensor, b.Inputs())
	for i := range grads {
		if b.InSpec(i).DType.IsFloat() {
			if one := a.of.gradient(b.Of(i), c); len(one) > 0 {
				grads[i] = one[0]
			}
		}
	}
	return grads
}
