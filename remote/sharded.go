package remote

import (
	"fmt"

	"gogcl.dev/chunks"
	"gogcl.dev/commgroup"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Groups says which replicas begin with the same value: those of one group. The data of a variable has a leading
// dimension of the number of groups, if there is more than one. Without it all replicas are one group.
func Groups(g commgroup.Group) VariableOption { return func(v *Variable) { v.groups = g } }

// Sharded splits a variable over the replicas of each gather group, where each otherwise has all of it. Of n elements
// and G replicas in a group, rank k holds those from k*c to (k+1)*c of the flattened tensor, c = ceil(n/G), with zeros
// past n:
//
//	x, y, z in groups CONSECUTIVE(2) of 4 replicas, c = 2
//
//	replica 0   x y      replica 2   x y
//	replica 1   z 0      replica 3   z 0
//
// The buffer has entries of the shape (c), and the variable's own shape becomes its meta shape. Errors: a program of
// one replica, a gather group whose replicas do not begin with the same value, gather groups of different sizes, a
// buffer of another spec or meta shape.
func Sharded(gather commgroup.Group) VariableOption {
	return func(v *Variable) { v.gather = &gather }
}

// division is how a variable lies on the replicas. One that is not sharded is so over groups of one.
type division struct {
	values commgroup.Layout // whose replicas begin with the same value
	gather commgroup.Layout // whose replicas have one value together
	full   ir.Spec          // of a value
	shard  ir.Spec          // of a replica's entry
}

// divide divides data in the host's shape over so many replicas. It returns an error unless the buffer holds the parts.
func (v *Variable) divide(data ir.Spec, replicas int) (division, error) {
	values, err := v.groups.Resolve(replicas)
	if err != nil {
		return division{}, err
	}
	full := data
	if n := values.Groups(); n > 1 {
		if len(data.Shape) == 0 || data.Shape[0] != n {
			return division{}, fmt.Errorf("data of shape %v for %d groups, which must be its first dimension",
				data.Shape, n)
		}
		full.Shape = data.Shape[1:]
	}
	gather := commgroup.Group{Type: commgroup.Consecutive, Size: 1}
	if v.gather != nil {
		gather = *v.gather
	}
	gathers, err := gather.Resolve(replicas)
	d := division{values, gathers, full, full}
	switch {
	case err != nil:
		return division{}, fmt.Errorf("gather group: %w", err)
	case v.gather == nil:
		return d, v.buffer.Validate(full, 1)
	case gathers.Size() == 0:
		return division{}, fmt.Errorf("gather group %v has groups of different sizes, and all shards are of one shape: "+
			"want groups of equal size", gather)
	case replicas < 2:
		return division{}, fmt.Errorf("%d replica, want 2 or more to shard over", replicas)
	}
	for r := range replicas {
		if first := gathers.Member(gathers.GroupOf(r), 0); values.GroupOf(r) != values.GroupOf(first) {
			return division{}, fmt.Errorf("replicas %d and %d of one gather group %v do not begin with the same "+
				"value, in groups %v", first, r, gather, v.groups)
		}
	}
	n, ranks := full.Elements(), gathers.Size()
	d.shard.Shape = tensor.Shape{chunks.PerRank(n, ranks)}
	if !d.shard.Equal(v.buffer.spec) {
		return division{}, fmt.Errorf("buffer %d has entries of %v, and a shard of %v over %d replicas is %v",
			v.buffer.id, v.buffer.spec, full, ranks, d.shard)
	}
	return d, nil
}

// host is the spec of a value for each group.
func (d division) host(groups commgroup.Layout) ir.Spec {
	if groups.Groups() == 1 {
		return d.full
	}
	return ir.Spec{DType: d.full.DType, Shape: append(tensor.Shape{groups.Groups()}, d.full.Shape...)}
}

// copyOf is which value on the host a replica belongs to: that of its group, or if there is one for each gather group,
// of that.
func (d division) copyOf(replica int, all bool) int {
	if all {
		return d.gather.GroupOf(replica)
	}
	return d.values.GroupOf(replica)
}

// part is the shard of a rank, without padding, of value k in a tensor of the host.
func (d division) part(t *tensor.Tensor, k, rank int) []byte {
	from, n := d.held(rank)
	size := d.full.DType.Size()
	return t.Bytes()[k*d.full.Bytes()+from*size:][:n*size]
}

// held is which elements of a value the shard of a rank has: n from the given one on, without padding.
func (d division) held(rank int) (from, n int) {
	ranks := d.gather.Size()
	from, end := chunks.SplitPadded(d.full.Elements(), ranks, ranks, rank)
	return from, end - from
}
