package rts

import (
	"errors"
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// Checkpointed is something of a program that a checkpoint has: a *[Step], a *[Variable], or a [Plain] variable.
type Checkpointed interface {
	// Checkpoint returns its tensors in a session, for package checkpoint to save or to load between runs.
	Checkpoint(session *ir.Session) ([]checkpoint.Tensor, error)
}

// Checkpoint returns the tensors of all that it is given, for package checkpoint to save or to load between runs.
// Errors: those of each Checkpoint, and two tensors of one name.
func Checkpoint(session *ir.Session, of ...Checkpointed) ([]checkpoint.Tensor, error) {
	names := map[string]bool{}
	var out []checkpoint.Tensor
	for i, c := range of {
		if c == nil {
			return nil, fmt.Errorf("rts: argument %d to checkpoint is nil", i)
		}
		tensors, err := c.Checkpoint(session)
		if err != nil {
			return nil, err
		}
		for _, t := range tensors {
			if names[t.Name] {
				return nil, fmt.Errorf("rts: two tensors have the name %q, and a checkpoint cannot tell them apart", t.Name)
			}
			names[t.Name] = true
		}
		out = append(out, tensors...)
	}
	return out, nil
}

// Checkpoint returns the variable, which is one tensor for all replicas and has a name, shard by shard: the shards that
// Read returns share memory.
func (v *Variable) Checkpoint(session *ir.Session) ([]checkpoint.Tensor, error) {
	switch {
	case v == nil || v.program == nil:
		return nil, errors.New("rts: a variable that no program has")
	case session == nil || session.Program() != v.program:
		return nil, fmt.Errorf("rts: the session is of another program than variable %q", v.Name())
	case v.Name() == "":
		return nil, fmt.Errorf("rts: a variable of %v has no name, and a checkpoint needs one", v.spec)
	case v.plan.group.Groups() > 1:
		return nil, fmt.Errorf("rts: variable %q has %d groups, want one tensor for all replicas", v.Name(),
			v.plan.group.Groups())
	}
	buffer, offset := v.Buffer()
	k := kept{name: v.Name(), of: v, buffer: buffer, offset: offset}
	return []checkpoint.Tensor{k.checkpoint(session, &oneShard{bytes: buffer.Spec().Bytes()})}, nil
}

// Plain is a variable of the program that is in no shards, as something that a checkpoint has: a counter, the running
// mean of a layer. It needs a name. It is saved as [ir.Session.Read] returns it, and loaded by Write. In a job it must
// be the same on all replicas, since the value of one of them is saved.
func Plain(v *ir.Variable) Checkpointed { return plain{v} }

type plain struct{ variable *ir.Variable }

// Checkpoint implements Checkpointed.
func (p plain) Checkpoint(session *ir.Session) ([]checkpoint.Tensor, error) {
	v := p.variable
	switch {
	case v == nil || v.Tensor == nil || v.Graph() == nil:
		return nil, errors.New("rts: a variable that no program has")
	case session == nil || session.Program() != v.Graph().Program():
		return nil, fmt.Errorf("rts: the session is of another program than variable %q", v.Name())
	case v.Name() == "":
		return nil, fmt.Errorf("rts: a variable of %v has no name, and a checkpoint needs one", v.Spec())
	}
	now, err := session.Read(v)
	if err != nil {
		return nil, err
	}
	shape := now.Shape()
	return []checkpoint.Tensor{{
		Name: v.Name(), DType: now.DType(), Shape: shape, Shards: 1,
		Read: func(int) (*tensor.Tensor, error) {
			t, err := session.Read(v)
			if err != nil {
				return nil, err
			}
			return t.Reshape(t.Len())
		},
		Write: func(_ int, t *tensor.Tensor) error {
			t, err := t.Reshape(shape...)
			if err != nil {
				return err
			}
			return session.Write(v, t)
		},
	}}, nil
}
