package rts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// kept is a tensor that lives from step to step, a parameter or what the optimiser keeps of one: an entry of a buffer
// on each replica.
type kept struct {
	name   string
	of     *Variable // the parameter
	state  bool      // it is not the parameter itself
	buffer *remote.Buffer
	offset int
}

func (k kept) load(g *ir.Graph) *ir.Tensor { return remote.Load(g, k.buffer, k.offset).Named(k.name) }
func (k kept) store(t *ir.Tensor)          { remote.Store(t, k.buffer, k.offset) }

// makeStates makes the buffers of what the optimiser keeps, with an entry for each tensor of a parameter.
func (b *builder) makeStates() {
	for _, u := range b.units {
		for _, p := range u.owned {
			buffer, offset := p.Buffer()
			b.kept = append(b.kept, kept{name: p.Name(), of: p.Variable, buffer: buffer, offset: offset})
			names := b.Optimizer.States()
			if len(names) == 0 {
				continue
			}
			states := remote.NewBuffer(b.program, p.shard, len(names))
			if p.Name() != "" {
				states.Named(p.Name() + "." + strings.Join(names, "."))
			}
			for i, name := range names {
				k := kept{name: p.Name() + "." + name, of: p.Variable, state: true, buffer: states, offset: i}
				p.states = append(p.states, k)
				b.kept = append(b.kept, k)
			}
		}
	}
}

// Checkpoint returns the full state of the model in a session, all parameters and what the optimiser keeps of them, for
// package checkpoint to save or to load between runs, shard by shard: the shards that the tensors' Read returns share
// memory for one. Every parameter needs a name of its own.
//
// In a job they are for a checkpoint.Directory of checkpoint.OpenTogether: each process reads and writes the shards of
// its replica.
func (s *Step) Checkpoint(session *ir.Session) ([]checkpoint.Tensor, error) {
	if s == nil || s.program == nil {
		return nil, errors.New("rts: no training step: Trainer.Step makes one")
	}
	if session == nil || session.Program() != s.program {
		return nil, fmt.Errorf("rts: the session is of another program than the training step")
	}
	names := map[string]bool{}
	var out []checkpoint.Tensor
	one := new(oneShard)
	for _, k := range s.kept {
		switch {
		case k.of.Name() == "":
			return nil, fmt.Errorf("rts: a parameter of %v has no name, and a checkpoint needs one", k.of.spec)
		case names[k.name]:
			return nil, fmt.Errorf("rts: two tensors of the model have the name %q, and a checkpoint cannot tell "+
				"them apart", k.name)
		}
		names[k.name] = true
		one.bytes = max(one.bytes, k.buffer.Spec().Bytes())
		out = append(out, k.checkpoint(session, one))
	}
	return out, nil
}

// checkpoint is the tensor as package checkpoint has it, where a shard has one dimension, though it be the whole.
func (k kept) checkpoint(session *ir.Session, one *oneShard) checkpoint.Tensor {
	p := k.of.plan
	var own func(shard int) bool // nil: this process has all replicas
	if _, job := session.Job(); job != nil {
		own = func(shard int) bool { return len(p.having(session, shard)) > 0 }
	}
	return checkpoint.Tensor{
		Name: k.name, DType: k.of.spec.DType, Shape: k.of.spec.Shape.Clone(), Shards: p.shards, Own: own,
		Read: func(shard int) (*tensor.Tensor, error) {
			t, err := one.tensor(k.buffer.Spec())
			if err != nil {
				return nil, err
			}
			having := p.having(session, shard)
			if len(having) == 0 {
				return nil, fmt.Errorf("rts: shard %d is of another process: a Directory of checkpoint.OpenTogether "+
					"asks that one", shard)
			}
			if err := k.buffer.ReadTo(session, having[0], k.offset, t); err != nil {
				return nil, err
			}
			return t.Reshape(t.Len())
		},
		Write: func(shard int, t *tensor.Tensor) error {
			t, err := t.Reshape(k.buffer.Spec().Shape...)
			if err != nil {
				return err
			}
			for _, r := range p.having(session, shard) {
				if err := k.buffer.Write(session, r, k.offset, t); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// having are the replicas of this process that have a shard of the first group's tensor, in their order in the group.
func (p plan) having(session *ir.Session, shard int) []int {
	own := session.Own()
	var out []int
	for m := shard; m < p.group.Size(); m += p.shards {
		if r := p.group.Member(0, m); slices.Contains(own, r) {
			out = append(out, r)
		}
	}
	return out
}

// oneShard is memory for the largest shard of a checkpoint's tensors. It is made when the first one is read.
type oneShard struct {
	bytes  int
	memory []byte
}

// tensor is the memory as a tensor, which holds anything.
func (o *oneShard) tensor(spec ir.Spec) (*tensor.Tensor, error) {
	if o.memory == nil {
		t, err := tensor.New(tensor.U8, o.bytes) // begins where any element type may
		if err != nil {
			return nil, err
		}
		o.memory = t.Bytes()
	}
	return tensor.View(spec.DType, spec.Shape, o.memory[:spec.Bytes()])
}
