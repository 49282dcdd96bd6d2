package collective

import (
	"fmt"
	"slices"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// ReduceScatterMany is ReduceScatter of each tensor, all in one set of messages. They may differ in length and element
// type, and are of one graph. Of none it returns none.
func (c Comm) ReduceScatterMany(tensors []*ir.Tensor, operator gcl.Operator) []*ir.Tensor {
	return c.applySeveral(scatterSeveral(operator, alike(reduceScatter{operator: operator}, tensors)), tensors)
}

// ReduceScatterShardsMany is ReduceScatterShards of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) ReduceScatterShardsMany(tensors []*ir.Tensor, operator gcl.Operator) []*ir.Tensor {
	return c.applySeveral(scatterSeveral(operator, alike(reduceScatter{operator: operator, flat: true}, tensors)),
		tensors)
}

// AllGatherMany is AllGather of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) AllGatherMany(tensors []*ir.Tensor) []*ir.Tensor {
	return c.applySeveral(gatherSeveral(alike(allGather{}, tensors)), tensors)
}

// AllGatherShardsMany is AllGatherShards of each tensor to the shape of the same number, as ReduceScatterMany is
// ReduceScatter. Another number of shapes than of tensors is an error.
func (c Comm) AllGatherShardsMany(tensors []*ir.Tensor, shapes []tensor.Shape) []*ir.Tensor {
	var of []action
	for _, s := range shapes {
		of = append(of, allGather{shards: true, shape: s.Clone()})
	}
	return c.applySeveral(gatherSeveral(of), tensors)
}

// AllToAllMany is AllToAll of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) AllToAllMany(tensors []*ir.Tensor) []*ir.Tensor {
	return c.applySeveral(several{collective: schedule.AllToAll, of: alike(allToAll{}, tensors)}, tensors)
}

// BroadcastMany is Broadcast of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) BroadcastMany(tensors []*ir.Tensor, root int) []*ir.Tensor {
	return c.applySeveral(several{collective: schedule.Broadcast, root: root, of: alike(broadcast{root}, tensors)},
		tensors)
}

// several is an action on each of several tensors, which gcl carries out together. They differ at most in shapes.
type several struct {
	collective schedule.Collective
	operator   gcl.Operator
	root       int
	of         []action // by tensor

	// together builds the gradients of the float inputs, which these are, in one go; nil: each has that of its action.
	together func(b *ir.Backward, c Comm, floats []int) []*ir.Tensor
}

func scatterSeveral(operator gcl.Operator, of []action) several {
	return several{
		collective: schedule.ReduceScatter, operator: operator, of: of,
		together: func(b *ir.Backward, c Comm, floats []int) []*ir.Tensor {
			return scatterGradients(b, c, operator, floats)
		},
	}
}

func gatherSeveral(of []action) several {
	return several{collective: schedule.AllGather, of: of, together: gatherGradients}
}

// alike is one action for each tensor.
func alike(a action, tensors []*ir.Tensor) []action { return slices.Repeat([]action{a}, len(tensors)) }

func (c Comm) applySeveral(a several, tensors []*ir.Tensor) []*ir.Tensor {
	if len(tensors) == 0 {
		return nil
	}
	return many(ordered{c.op(a, tensors[0])}, tensors)
}

func (a several) Name() string { return a.collective.String() }

// String returns what the action's does, and that it is on several tensors.
func (a several) String() string {
	if len(a.of) > 0 {
		if s, is := a.of[0].(fmt.Stringer); is {
			return s.String() + " of several"
		}
	}
	return "of several"
}

func (a several) infer(in []ir.Spec, ranks int) ([]ir.Spec, error) {
	if len(a.of) != len(in) {
		return nil, fmt.Errorf("%d shapes for %d tensors", len(a.of), len(in))
	}
	var out []ir.Spec
	for i := range in {
		s, err := a.of[i].infer(in[i:i+1], ranks)
		if err != nil {
			return nil, fmt.Errorf("tensor %d: %w", i, err)
		}
		out = append(out, s...)
	}
	return out, nil
}

// scratch implements scratcher.
func (a several) scratch(in []ir.Spec, ranks int) int {
	bytes := 0
	for i, s := range in {
		if g, is := a.of[i].(allGather); is {
			bytes += kernel.Lines(g.padded(s, ranks))
		}
	}
	return bytes
}

func (a several) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	out, in := slices.Clone(m.Out), slices.Clone(m.In)
	var dsts, srcs [][]byte // to be copied when the parts have come
	scratch := m.Scratch
	for i := range in {
		var err error
		switch one := a.of[i].(type) {
		case reduceScatter: // one dimension is what gcl takes
			if have, want := out[i].Len(), perRank(in[i].Len(), c.Size()); have != want {
				return nil, fmt.Errorf("tensor %d: parts of %d elements, want %d of %d over %d ranks",
					i, have, want, in[i].Len(), c.Size())
			}
			out[i], err = out[i].Reshape(out[i].Len())
			if err == nil {
				in[i], err = in[i].Reshape(in[i].Len())
			}
		case allGather:
			if !one.shards {
				continue
			}
			bytes := one.padded(ir.SpecOf(in[i]), c.Size())
			if bytes > len(scratch) {
				return nil, fmt.Errorf("tensor %d: it was built when the program had another number of replicas, and "+
					"not for groups of %d", i, c.Size())
			}
			all := out[i].Bytes()
			if bytes > 0 {
				dsts, srcs = append(dsts, all), append(srcs, scratch[:len(all)])
				all, scratch = scratch[:bytes], scratch[kernel.Lines(bytes):]
			}
			out[i], err = tensor.View(in[i].DType(), append(tensor.Shape{c.Size()}, in[i].Shape()...), all)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %d: %w", i, err)
		}
	}
	b := c.Batch(a.collective, a.operator, a.root)
	for i := range in {
		b.AppendTensor(out[i], in[i])
	}
	return func() error {
		if err := b.Run(m.Context()); err != nil {
			return err
		}
		for i, dst := range dsts {
			copy(dst, srcs[i])
		}
		return nil
	}, nil
}

func (a several) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	grads := make([]*ir.Tensor, b.Inputs())
	var floats []int
	for i := range grads {
		if b.InSpec(i).DType.IsFloat() {
			floats = append(floats, i)
		}
	}
	if a.together != nil {
		for k, grad := range a.together(b, c, floats) {
			grads[floats[k]] = grad
		}
		return grads
	}
	for _, i := range floats { // some may have none
		if one := a.of[i].gradient(b.Of(i), c); len(one) > 0 {
			grads[i] = one[0]
		}
	}
	return grads
}
