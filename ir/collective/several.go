package collective

import (
	"fmt"
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// kind is a collective of gcl with all that it is given beside tensors.
type kind interface {
	Name() string

	// call says which collective it is, with which operator and root.
	call() (of schedule.Collective, operator gcl.Operator, root int)

	// inferOne is infer of one tensor.
	inferOne(s ir.Spec, ranks int) ([]ir.Spec, error)

	// gradients are those of the inputs of these numbers, all of floats.
	gradients(b *ir.Backward, c Comm, inputs []int) []*ir.Tensor
}

// padding is a kind whose output may be more than is wanted of it.
type padding interface {
	kind

	// padded is the size in bytes of the output as the collective has it, if that is more than what is wanted; else 0.
	padded(in ir.Spec, ranks int) int
}

// several is a kind of collective on each of one or several tensors, which gcl carries out together.
type several struct {
	kind
	of []kind // by tensor: they differ at most in shapes
}

// alike is one kind for each tensor.
func alike(k kind, tensors []*ir.Tensor) several {
	return several{k, slices.Repeat([]kind{k}, len(tensors))}
}

// apply adds a collective on one tensor to its graph.
func (c Comm) apply(k kind, t *ir.Tensor) *ir.Tensor {
	return ir.Apply1(ordered{c.op(several{k, []kind{k}}, t)}, nil, t)
}

// applyInPlace adds a collective on tensors where they lie to their graph.
func (c Comm) applyInPlace(k kind, tensors ...*ir.Tensor) []*ir.Tensor {
	if len(tensors) == 0 {
		return nil
	}
	return many(inPlace{ordered{c.op(alike(k, tensors), tensors[0])}, len(tensors)}, tensors)
}

// applySeveral adds a collective on tensors to their graph.
func (c Comm) applySeveral(a several, tensors []*ir.Tensor) []*ir.Tensor {
	if len(tensors) == 0 {
		return nil
	}
	return many(ordered{c.op(a, tensors[0])}, tensors)
}

// many adds an operation with an output for each input, and returns so many also after an error.
func many(o ir.Op, tensors []*ir.Tensor) []*ir.Tensor {
	out := ir.Apply(o, nil, tensors...)
	for len(out) < len(tensors) {
		out = append(out, out[0])
	}
	return out
}

// ReduceScatterMany is ReduceScatter of each tensor, all in one set of messages. They may differ in length and element
// type, and are of one graph. Of none it returns none.
func (c Comm) ReduceScatterMany(tensors []*ir.Tensor, operator gcl.Operator) []*ir.Tensor {
	return c.applySeveral(alike(reduceScatter{operator: operator}, tensors), tensors)
}

// ReduceScatterShardsMany is ReduceScatterShards of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) ReduceScatterShardsMany(tensors []*ir.Tensor, operator gcl.Operator) []*ir.Tensor {
	return c.applySeveral(alike(reduceScatter{operator: operator, flat: true}, tensors), tensors)
}

// AllGatherMany is AllGather of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) AllGatherMany(tensors []*ir.Tensor) []*ir.Tensor {
	return c.applySeveral(alike(allGather{}, tensors), tensors)
}

// AllGatherShardsMany is AllGatherShards of each tensor to the shape of the same number, as ReduceScatterMany is
// ReduceScatter. Another number of shapes than of tensors is an error.
func (c Comm) AllGatherShardsMany(tensors []*ir.Tensor, shapes []tensor.Shape) []*ir.Tensor {
	a := several{kind: allGather{shards: true}}
	for _, s := range shapes {
		a.of = append(a.of, allGather{shards: true, shape: s.Clone()})
	}
	return c.applySeveral(a, tensors)
}

// AllToAllMany is AllToAll of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) AllToAllMany(tensors []*ir.Tensor) []*ir.Tensor {
	return c.applySeveral(alike(allToAll{}, tensors), tensors)
}

// BroadcastMany is Broadcast of each tensor, as ReduceScatterMany is ReduceScatter.
func (c Comm) BroadcastMany(tensors []*ir.Tensor, root int) []*ir.Tensor {
	return c.applySeveral(alike(broadcast{root}, tensors), tensors)
}

// String returns what the kind's does.
func (a several) String() string {
	if s, is := a.kind.(fmt.Stringer); is {
		return s.String()
	}
	return ""
}

// wrap says which tensor an error is of, if there are several.
func (a several) wrap(i int, err error) error {
	if len(a.of) == 1 {
		return err
	}
	return fmt.Errorf("tensor %d: %w", i, err)
}

func (a several) infer(in []ir.Spec, ranks int) ([]ir.Spec, error) {
	if len(a.of) != len(in) {
		return nil, fmt.Errorf("%d shapes for %d tensors", len(a.of), len(in))
	}
	var out []ir.Spec
	for i, s := range in {
		of, err := a.of[i].inferOne(s, ranks)
		if err != nil {
			return nil, a.wrap(i, err)
		}
		out = append(out, of...)
	}
	return out, nil
}

// scratch implements scratcher: what is more than is wanted must go somewhere.
func (a several) scratch(in []ir.Spec, ranks int) int {
	bytes := 0
	for i, s := range in {
		if p, is := a.of[i].(padding); is {
			bytes += kernel.Lines(p.padded(s, ranks))
		}
	}
	return bytes
}

func (a several) bind(m *ir.Memory, c *gcl.Comm) (func() error, error) {
	collective, operator, root := a.call()
	b := c.Batch(collective, operator, root)
	var dsts, srcs [][]byte // to be copied when the parts have come
	scratch := m.Scratch
	for i, in := range m.In {
		out, bytes := m.Out[i], 0
		if p, is := a.of[i].(padding); is {
			bytes = p.padded(ir.SpecOf(in), c.Size())
		}
		if bytes > len(scratch) {
			return nil, a.wrap(i, fmt.Errorf("it was built when the program had another number of replicas, and not for "+
				"groups of %d", c.Size()))
		}
		if bytes > 0 {
			all, err := tensor.View(in.DType(), tensor.Shape{bytes / in.DType().Size()}, scratch[:bytes])
			if err != nil {
				return nil, a.wrap(i, err)
			}
			dsts, srcs = append(dsts, out.Bytes()), append(srcs, scratch[:len(out.Bytes())])
			out, scratch = all, scratch[kernel.Lines(bytes):]
		}
		dst, src, err := shaped(collective, out, in, c.Size())
		if err != nil {
			return nil, a.wrap(i, err)
		}
		b.AppendTensor(dst, src)
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

// shaped is the two tensors in the shapes that the collective has on tensors: theirs do not matter.
func shaped(of schedule.Collective, out, in *tensor.Tensor, ranks int) (dst, src *tensor.Tensor, err error) {
	from, to := []int{in.Len()}, []int{out.Len()}
	switch contract := of.Contract(); {
	case contract.Input == schedule.Blocks:
		from, to = []int{ranks, in.Len() / ranks}, []int{ranks, out.Len() / ranks}
	case contract.Input == schedule.Own:
		to = []int{ranks, out.Len() / ranks}
	case contract.Output == schedule.Own:
		if have, want := out.Len(), chunks.PerRank(in.Len(), ranks); have != want {
			return nil, nil, fmt.Errorf("parts of %d elements, want %d of %d over %d ranks", have, want, in.Len(),
				ranks)
		}
	}
	if src, err = in.Reshape(from...); err != nil {
		return nil, nil, err
	}
	dst, err = out.Reshape(to...)
	return dst, src, err
}

func (a several) gradient(b *ir.Backward, c Comm) []*ir.Tensor {
	grads := make([]*ir.Tensor, b.Inputs())
	var floats []int // some may have none
	for i := range grads {
		if b.InSpec(i).DType.IsFloat() {
			floats = append(floats, i)
		}
	}
	for k, grad := range a.gradients(b, c, floats) {
		grads[floats[k]] = grad
	}
	return grads
}
