package commgroup

import "fmt"

// Layout is a [Group] fitted to a number of replicas. It is a small comparable value: two groups that make the same
// partition, however they were described, have equal layouts. The zero value has no replicas and no groups.
//
// With size k and stride s, blocks of s*k replicas hold s interleaved groups each:
//
//	k = 3, s = 2     replica   0  1  2  3  4  5 │ 6  7  8  9 10 11
//	                 group     0  1  0  1  0  1 │ 2  3  2  3  2  3
//	                 rank      0  0  1  1  2  2 │ 0  0  1  1  2  2
type Layout struct {
	replicas, size, stride int
}

// newLayout makes all groups of one the same, since a stride means nothing to them.
func newLayout(replicas, size, stride int) Layout {
	if size == 1 {
		stride = 1
	}
	return Layout{replicas, size, stride}
}

// Replicas returns the number of replicas in all groups together.
func (l Layout) Replicas() int { return l.replicas }

// Size returns the number of replicas in each group.
func (l Layout) Size() int { return l.size }

// Stride returns the distance between neighbours in a group. In groups of one it is 1.
func (l Layout) Stride() int { return l.stride }

// Groups returns the number of groups.
func (l Layout) Groups() int {
	if l.size == 0 {
		return 0
	}
	return l.replicas / l.size
}

// GroupOf returns the number of the group that holds a replica, or -1 if there is no such replica.
func (l Layout) GroupOf(replica int) int {
	if replica < 0 || replica >= l.replicas {
		return -1
	}
	return replica%l.stride + replica/(l.stride*l.size)*l.stride
}

// RankOf returns a replica's index in its group, or -1 if there is no such replica.
func (l Layout) RankOf(replica int) int {
	if replica < 0 || replica >= l.replicas {
		return -1
	}
	return replica / l.stride % l.size
}

// Member returns the replica with a given rank in a group, or -1 if there is none.
func (l Layout) Member(group, rank int) int {
	if group < 0 || group >= l.Groups() || rank < 0 || rank >= l.size {
		return -1
	}
	return group/l.stride*l.stride*l.size + group%l.stride + rank*l.stride
}

// Members returns the replicas of a group in rank order, or nil if there is no such group. A size too large for any
// memory panics, as make does.
func (l Layout) Members(group int) []int {
	if group < 0 || group >= l.Groups() {
		return nil
	}
	return l.AppendMembers(make([]int, 0, l.size), group)
}

// AppendMembers appends the replicas of a group to dst, in rank order. It appends nothing if there is no such group.
func (l Layout) AppendMembers(dst []int, group int) []int {
	if group < 0 || group >= l.Groups() {
		return dst
	}
	for rank := range l.size {
		dst = append(dst, l.Member(group, rank))
	}
	return dst
}

// Group returns a description that resolves to this layout: always CONSECUTIVE, with size and stride given. For the
// zero Layout that is a group of all replicas.
func (l Layout) Group() Group {
	return Group{Type: Consecutive, Size: l.size, Stride: l.stride}
}

// Transpose returns the layout across this one: its groups are made of the members of equal rank, so each of its groups
// meets each group of l in exactly one replica. That is only a layout when the groups of l are contiguous blocks
// (stride 1) or span all replicas (stride times size is N); otherwise the error names the three.
//
//	{0 1} {2 3} {4 5} {6 7}   and   {0 2 4 6} {1 3 5 7}   are each other's transpose
func (l Layout) Transpose() (Layout, error) {
	switch {
	case l.replicas == 0:
		return Layout{}, fmt.Errorf("commgroup: a layout without replicas has no transpose")
	case l.stride == 1:
		return newLayout(l.replicas, l.replicas/l.size, l.size), nil
	case l.stride*l.size == l.replicas:
		return newLayout(l.replicas, l.stride, 1), nil
	}
	return Layout{}, fmt.Errorf("commgroup: groups of size %d and stride %d of %d replicas have no transpose: want "+
		"stride 1 or %d",
		l.size, l.stride, l.replicas, l.replicas/l.size)
}
