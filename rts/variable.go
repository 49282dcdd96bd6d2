package rts

import (
	"errors"
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// Variable is a tensor that is kept in shards, each at an entry of a remote buffer of its replica. Load and Store add
// operations on the replica's shard; Read and Write are of the whole tensor, in its own shape, from the host.
type Variable struct {
	*remote.Variable

	program  *ir.Program
	sharding Sharding
	plan     plan
	spec     ir.Spec // of the whole tensor
	shard    ir.Spec // of an entry
}

// RemoteVariable makes a variable in a buffer of the caller's, at an entry: the program loads and stores its shards by
// Load and Store. The buffer's entries are of ShardShape, and its meta shape is the shape of the tensor: the first
// variable says which, and another later is an error. Several variables of one shape, as those of layers alike, may be
// entries of one buffer.
//
// The data is that of the whole tensor, and the same for all replicas; with several groups it has a leading dimension
// of their number. It is copied, and kept as remote.NewVariable says. Options are those of package remote: a name, the
// element type, AllReplicas for Read, and remote.FirstValue in the place of data, which is nil then. Errors, which
// stick to the program: those of Sharding and of remote.NewVariable.
func RemoteVariable(p *ir.Program, data *tensor.Tensor, b *remote.Buffer, offset int, s Sharding,
	options ...remote.VariableOption) *Variable {
	return newVariable(p, "remote sharded variable", data, s, options, func(ir.Spec) (*remote.Buffer, int) {
		return b, offset
	})
}

// NewVariable makes a variable in a buffer of its own with one entry, and returns its shard, a tensor of the main
// graph: it is loaded where the variable is made, and stored after the program has ended, when it has what operations
// have changed in place. Load and Store of the variable are not for the program to use. Errors are those of
// RemoteVariable.
func NewVariable(p *ir.Program, data *tensor.Tensor, s Sharding, options ...remote.VariableOption) (*Variable,
	*ir.Tensor) {
	v := newVariable(p, "sharded variable", data, s, options, func(shard ir.Spec) (*remote.Buffer, int) {
		return remote.NewBuffer(p, shard), 0
	})
	if v.program == nil { // after an error
		return v, v.Load(nil)
	}
	shard := v.Load(p.Main())
	p.AtEnd(func() { v.Store(shard) })
	return v, shard
}

// newVariable makes a variable where place says, given the spec of a shard.
func newVariable(p *ir.Program, what string, data *tensor.Tensor, s Sharding, options []remote.VariableOption,
	place func(shard ir.Spec) (*remote.Buffer, int)) *Variable {
	v := &Variable{sharding: s, Variable: &remote.Variable{}}
	if p == nil {
		return v
	}
	b, offset, err := v.set(p, data, options, place)
	if err != nil {
		p.Fail(what, err)
		return v
	}
	v.program = p
	options = append(options[:len(options):len(options)], remote.Groups(v.plan.all.Group))
	if v.plan.shards > 1 {
		options = append(options, remote.Sharded(v.plan.gather.Group))
	}
	v.Variable = remote.NewVariable(p, data, b, offset, options...)
	return v
}

// set fills in what follows from the data and the Sharding.
func (v *Variable) set(p *ir.Program, data *tensor.Tensor, options []remote.VariableOption,
	place func(shard ir.Spec) (*remote.Buffer, int)) (b *remote.Buffer, offset int, err error) {
	if v.plan, err = v.sharding.in(p); err != nil {
		return nil, 0, err
	}
	given := remote.OptionsOf(options...)
	host, err := given.Spec(data)
	if err != nil {
		return nil, 0, err
	}
	if given.Divided() {
		return nil, 0, errors.New("an option is remote.Groups or remote.Sharded, and the Sharding says that")
	}
	shape := host.Shape
	if n := v.plan.group.Groups(); n > 1 {
		if len(shape) == 0 || shape[0] != n {
			return nil, 0, fmt.Errorf("data of shape %v, want a leading dimension of the %d groups", shape, n)
		}
		shape = shape[1:]
	}
	v.spec = ir.Spec{DType: host.DType, Shape: shape.Clone()}
	v.shard.DType = v.spec.DType
	if v.shard.Shape, err = v.plan.shardShape(shape); err != nil {
		return nil, 0, err
	}
	b, offset = place(v.shard)
	return b, offset, nil
}

// Spec returns shape and element type of the whole tensor.
func (v *Variable) Spec() ir.Spec {
	if v == nil {
		return ir.Spec{}
	}
	return ir.Spec{DType: v.spec.DType, Shape: v.spec.Shape.Clone()}
}

// Sharding returns over which replicas the variable is split.
func (v *Variable) Sharding() Sharding {
	if v == nil {
		return Sharding{}
	}
	return v.sharding
}

// Shards returns in how many shards the variable is; 1 if every replica has it whole.
func (v *Variable) Shards() int {
	if v == nil {
		return 0
	}
	return v.plan.shards
}

// Gather returns the whole variable, given the shard of each replica.
func (v *Variable) Gather(shard *ir.Tensor) *ir.Tensor {
	return v.Sharding().Gather(shard, v.Spec().Shape...)
}
