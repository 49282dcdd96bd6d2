package rts

import (
	"errors"
	"fmt"

	"gogcl.dev/chunks"
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// Sharding says over which replicas a tensor is split, and which replicas train together. The zero value splits over
// all replicas.
//
// The replicas of a group hold the same tensor, whose gradients they reduce over the group. Over says in how many
// shards they split it: member m of the group has shard m mod Over, so that each run of Over members has the tensor
// between them.
//
//	8 replicas                          shard of replica 0 1 2 3 4 5 6 7   gathered by
//	Sharding{}                                           0 1 2 3 4 5 6 7   {0 1 2 3 4 5 6 7}
//	Sharding{Over: 4}                                    0 1 2 3 0 1 2 3   {0 1 2 3} {4 5 6 7}
//	Sharding{Group: CONSECUTIVE(4)}                      0 1 2 3 0 1 2 3   {0 1 2 3} {4 5 6 7}: two tensors
//	Sharding{Group: ORTHOGONAL(4), Over: 2}              0 0 1 1 0 0 1 1   {0 2} {4 6} {1 3} {5 7}: two tensors
//	Sharding{Over: 1}                                    whole             nobody
//
// Its methods add operations to the graph of their input. Errors stick to the program, as all do: a group that the
// number of replicas does not allow; Over more than the group has members, or no divisor of that; a group of one
// replica without Over: 1, since there is nobody to share with. Groups by lists may differ in size where Over divides
// all sizes.
type Sharding struct {
	Group   commgroup.Group // the replicas with the same tensor; the zero value: all
	Over    int             // shards; 0: as many as the group has members; 1: every replica has the whole tensor
	Options gcl.Options     // how collectives are carried out
}

// plan is a Sharding fitted to a number of replicas.
type plan struct {
	group  commgroup.Layout
	shards int
	gather collective.Comm // the replicas that have a tensor between them
	across collective.Comm // those with the same shard of the same tensor
	all    collective.Comm // the group
}

var errAlone = errors.New("1 replica has nobody to share a tensor with, want 2 or more; with Over: 1 it has the " +
	"whole tensor, " +
	"a plain remote variable")

// resolve fits the Sharding to a number of replicas.
func (s Sharding) resolve(replicas int) (plan, error) {
	layout, err := s.Group.Resolve(replicas)
	if err != nil {
		return plan{}, err
	}
	if layout.Stride() == 0 {
		return s.resolveLists(layout)
	}
	size := layout.Size()
	over, err := s.shards(size)
	if err != nil {
		return plan{}, err
	}
	comm := func(size, stride int) collective.Comm {
		return collective.Comm{Group: commgroup.Group{Type: commgroup.Consecutive, Size: size, Stride: stride},
			Options: s.Options}
	}
	stride := layout.Stride()
	return plan{
		group: layout, shards: over,
		gather: comm(over, stride), across: comm(size/over, stride*over), all: comm(size, stride),
	}, nil
}

// shards is the number of shards in a group of so many replicas.
func (s Sharding) shards(size int) (int, error) {
	switch over := s.Over; {
	case over < 0:
		return 0, fmt.Errorf("sharding over %d replicas, want 1 to %d, or 0 for all of the group", over, size)
	case over == 0 && size == 1:
		return 0, errAlone
	case over == 0:
		return size, nil
	case over > size || size%over != 0:
		return 0, fmt.Errorf("sharding over %d replicas of a group of %d, want a divisor of %d", over, size, size)
	default:
		return over, nil
	}
}

// resolveLists is resolve for groups by lists. In a group of m*over replicas, those of rank k*over on gather a tensor,
// over of them, and those whose ranks differ by a multiple of over have the same shard:
//
//	LISTS({0 1 4 5} {2 3}), Over: 2     gather {0 1} {4 5} {2 3}     across {0 4} {1 5} {2} {3}
func (s Sharding) resolveLists(layout commgroup.Layout) (plan, error) {
	out := plan{group: layout, all: collective.Comm{Group: layout.Group(), Options: s.Options}}
	if s.Over == 0 && layout.Size() == 0 {
		return plan{}, fmt.Errorf("sharding over all of a group, of groups of different sizes %v: all shards are of one "+
			"shape, want groups of equal size, or Over: a divisor of all sizes", layout.Group())
	}
	var gather, across [][]int
	for g := range layout.Groups() {
		members := layout.Members(g)
		over, err := s.shards(len(members))
		if err != nil {
			return plan{}, err
		}
		out.shards = over
		for first := 0; first < len(members); first += over {
			gather = append(gather, members[first:first+over])
		}
		for shard := range over {
			var same []int
			for rank := shard; rank < len(members); rank += over {
				same = append(same, members[rank])
			}
			across = append(across, same)
		}
	}
	var err error
	if out.gather, err = s.among(gather); err != nil {
		return plan{}, err
	}
	out.across, err = s.among(across)
	return out, err
}

// among are collectives in the groups of lists.
func (s Sharding) among(groups [][]int) (collective.Comm, error) {
	g, err := commgroup.Lists(groups)
	return collective.Comm{Group: g, Options: s.Options}, err
}

// replicasKey is where a program has its number of replicas, once that has been used.
type replicasKey struct{}

// in fits the Sharding to a program, whose number of replicas must stay as it is from then on.
func (s Sharding) in(p *ir.Program) (plan, error) {
	built := p.Attached(replicasKey{}, func() any {
		n := p.Replicas()
		p.AtEnd(func() {
			if err := sameReplicas(n, p.Replicas()); err != nil {
				p.Fail("sharding", err)
			}
		})
		return n
	}).(int)
	if err := sameReplicas(built, p.Replicas()); err != nil {
		return plan{}, err
	}
	return s.resolve(built)
}

func sameReplicas(built, now int) error {
	if built != now {
		return fmt.Errorf("there is something sharded in the program since it had %d replicas, and it has %d now",
			built, now)
	}
	return nil
}

// shardShape is the shape of a replica's shard of a tensor: of the whole tensor if there is one shard, else one
// dimension.
func (p plan) shardShape(shape tensor.Shape) (tensor.Shape, error) {
	n, err := shape.Elements()
	if err != nil || p.shards == 1 {
		return shape, err
	}
	return tensor.Shape{chunks.PerRank(n, p.shards)}, nil
}

// ShardShape returns the shape of a replica's shard of a tensor, of so many replicas: one dimension of c = ceil(n/Over)
// elements, n being those of the tensor. The last shards are padded with zeros. With one shard it is the tensor's
// shape.
func (s Sharding) ShardShape(shape tensor.Shape, replicas int) (tensor.Shape, error) {
	p, err := s.resolve(replicas)
	if err != nil {
		return nil, fmt.Errorf("rts: %w", err)
	}
	out, err := p.shardShape(shape)
	if err != nil {
		return nil, fmt.Errorf("rts: %w", err)
	}
	return out.Clone(), nil
}

// Gather returns the tensor, of the given shape, of which each replica has a shard: a collective between the replicas
// that have it between them. The padding is gone. An error: a shard of another number of elements than ShardShape has.
// Its gradient is reduce-scatter Add over the same replicas.
func (s Sharding) Gather(shard *ir.Tensor, shape ...int) *ir.Tensor {
	return s.GatherMany([]*ir.Tensor{shard}, []tensor.Shape{shape})[0]
}

// GatherMany is Gather of each shard, all in one set of messages. There is one shape for each shard.
func (s Sharding) GatherMany(shards []*ir.Tensor, shapes []tensor.Shape) []*ir.Tensor {
	if len(shards) != len(shapes) {
		return failed(shards, "gather", fmt.Errorf("%d shapes for %d shards", len(shapes), len(shards)))
	}
	p, out := s.of("gather", shards)
	switch {
	case out != nil:
		return out
	case p.shards == 1:
		for i, t := range shards {
			out = append(out, ops.Reshape(t, shapes[i]...))
		}
		return out
	case len(shards) == 1:
		return []*ir.Tensor{p.gather.AllGatherShards(shards[0], shapes[0]...)}
	}
	return p.gather.AllGatherShardsMany(shards, shapes)
}

// Shard returns the replica's own shard of a tensor that all replicas have: nothing is sent. Its gradient puts that of
// the shard in its place among zeros.
func (s Sharding) Shard(full *ir.Tensor) *ir.Tensor {
	p, out := s.of("shard", []*ir.Tensor{full})
	switch {
	case out != nil:
		return out[0]
	case p.shards == 1:
		return ops.Reshape(full, full.Shape()...)
	}
	return p.gather.ReduceScatterShards(full, gcl.Local)
}

// ReduceToShard reduces a tensor of which every replica of the group has one, as a gradient, and returns the replica's
// shard of the result. The operator is Add or Mean. Where the group is larger than the shards are many, the replicas
// with a tensor between them reduce first, and then those with the same shard; Mean divides both times. Its gradient
// is that of the collectives.
func (s Sharding) ReduceToShard(full *ir.Tensor, operator gcl.Operator) *ir.Tensor {
	return s.ReduceToShardMany([]*ir.Tensor{full}, operator)[0]
}

// ReduceToShardMany is ReduceToShard of each tensor, all in one set of messages.
func (s Sharding) ReduceToShardMany(full []*ir.Tensor, operator gcl.Operator) []*ir.Tensor {
	p, out := s.of("reduce to shard", full)
	if out != nil {
		return out
	}
	if operator != gcl.Add && operator != gcl.Mean {
		return failed(full, "reduce to shard", fmt.Errorf("the operator %v, want ADD or MEAN", operator))
	}
	return p.reduce(full, operator)
}

func (p plan) reduce(full []*ir.Tensor, operator gcl.Operator) []*ir.Tensor {
	out := full
	switch {
	case p.shards > 1 && len(full) == 1:
		out = []*ir.Tensor{p.gather.ReduceScatterShards(full[0], operator)}
	case p.shards > 1:
		out = p.gather.ReduceScatterShardsMany(full, operator)
	}
	switch {
	case p.group.Size() == p.shards && p.shards > 1:
		return out
	case len(full) == 1:
		return []*ir.Tensor{p.across.AllReduce(out[0], operator)}
	}
	return p.across.AllReduceMany(out, operator)
}

// of is the plan in the program of some tensors; or, after an error, as many tensors that stand for it.
func (s Sharding) of(what string, tensors []*ir.Tensor) (plan, []*ir.Tensor) {
	for _, t := range tensors {
		if t == nil || t.Graph() == nil { // the collective says it
			continue
		}
		p, err := s.in(t.Graph().Program())
		if err != nil {
			return plan{}, failed(tensors, what, err)
		}
		return p, nil
	}
	return plan{shards: 1}, nil
}

// failed makes an error stick to the program of some tensors, and returns as many that stand for it.
func failed(tensors []*ir.Tensor, what string, err error) []*ir.Tensor {
	out := make([]*ir.Tensor, len(tensors))
	for _, t := range tensors {
		if t != nil && t.Graph() != nil {
			bad := ir.Apply1(refused{what, err}, t.Graph())
			for i := range out {
				out[i] = bad
			}
			break
		}
	}
	for i := range out {
		if out[i] == nil {
			out[i] = ir.Apply1(refused{what, err}, nil)
		}
	}
	return out
}

// refused is an operation that cannot be.
type refused struct {
	name string
	err  error
}

func (o refused) Name() string                          { return o.name }
func (o refused) Infer([]ir.Spec) ([]ir.Spec, error)    { return nil, o.err }
func (o refused) Bind(*ir.Memory) (func() error, error) { return nil, o.err }
