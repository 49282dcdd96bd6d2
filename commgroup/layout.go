package commgroup

import "fmt"

// Layout is a [Group] fitted to a number of replicas. It is a comparable value: two groups that make the same
// partition, however they were described, have equal layouts. The zero value has no replicas and no groups.
//
// With size k and stride s, blocks of s*k replicas hold s interleaved groups each:
//
//	k = 3, s = 2     replica   0  1  2  3  4  5 │ 6  7  8  9 10 11
//	                 group     0  1  0  1  0  1 │ 2  3  2  3  2  3
//	                 rank      0  0  1  1  2  2 │ 0  0  1  1  2  2
//
// Lists that no size and stride can say have a table instead.
type Layout struct {
	replicas, size, stride int
	table                  table // "" where size and stride say all
}

// newLayout makes all groups of one the same, since a stride means nothing to them.
func newLayout(replicas, size, stride int) Layout {
	if size == 1 {
		stride = 1
	}
	return Layout{replicas: replicas, size: size, stride: stride}
}

// layoutOf is the layout of a partition of n replicas into groups in canonical order.
func layoutOf(groups [][]int, n int) Layout {
	size, stride := len(groups[0]), 1
	if size > 1 {
		stride = groups[0][1] - groups[0][0]
	}
	// size*stride may overflow 32 bits: it is formed only once it is known to be at most n.
	if stride <= n/size && n%(size*stride) == 0 {
		if l := newLayout(n, size, stride); l.has(groups) {
			return l
		}
	}
	for _, members := range groups {
		if len(members) != size {
			size = 0
			break
		}
	}
	return Layout{replicas: n, size: size, table: newTable(groups, n)}
}

// has reports whether the groups of l are these.
func (l Layout) has(groups [][]int) bool {
	for g, members := range groups {
		if len(members) != l.size {
			return false
		}
		for rank, replica := range members {
			if l.Member(g, rank) != replica {
				return false
			}
		}
	}
	return true
}

// Replicas returns the number of replicas in all groups together.
func (l Layout) Replicas() int { return l.replicas }

// Size returns the number of replicas in each group. Where groups differ in size it is 0: see [Layout.SizeOf].
func (l Layout) Size() int { return l.size }

// SizeOf returns the number of replicas in a group, or -1 if there is no such group.
func (l Layout) SizeOf(group int) int {
	switch {
	case group < 0 || group >= l.Groups():
		return -1
	case l.table != "":
		first, end := l.table.span(l.replicas, group)
		return end - first
	}
	return l.size
}

// Stride returns the distance between neighbours in a group. In groups of one it is 1. Of lists that no size and stride
// can say it is 0.
func (l Layout) Stride() int { return l.stride }

// Groups returns the number of groups.
func (l Layout) Groups() int {
	switch {
	case l.table != "":
		return l.table.groups(l.replicas)
	case l.size == 0:
		return 0
	}
	return l.replicas / l.size
}

// GroupOf returns the number of the group that holds a replica, or -1 if there is no such replica.
func (l Layout) GroupOf(replica int) int {
	switch {
	case replica < 0 || replica >= l.replicas:
		return -1
	case l.table != "":
		return l.table.at(2 * replica)
	}
	return replica%l.stride + replica/(l.stride*l.size)*l.stride
}

// RankOf returns a replica's index in its group, or -1 if there is no such replica.
func (l Layout) RankOf(replica int) int {
	switch {
	case replica < 0 || replica >= l.replicas:
		return -1
	case l.table != "":
		return l.table.at(2*replica + 1)
	}
	return replica / l.stride % l.size
}

// Member returns the replica with a given rank in a group, or -1 if there is none.
func (l Layout) Member(group, rank int) int {
	switch {
	case rank < 0 || rank >= l.SizeOf(group):
		return -1
	case l.table != "":
		first, _ := l.table.span(l.replicas, group)
		return l.table.at(2*l.replicas + first + rank)
	}
	return group/l.stride*l.stride*l.size + group%l.stride + rank*l.stride
}

// Members returns the replicas of a group in rank order, or nil if there is no such group. A size too large for any
// memory panics, as make does.
func (l Layout) Members(group int) []int {
	size := l.SizeOf(group)
	if size < 0 {
		return nil
	}
	return l.AppendMembers(make([]int, 0, size), group)
}

// AppendMembers appends the replicas of a group to dst, in rank order. It appends nothing if there is no such group.
func (l Layout) AppendMembers(dst []int, group int) []int {
	for rank := range max(l.SizeOf(group), 0) {
		dst = append(dst, l.Member(group, rank))
	}
	return dst
}

// Group returns a description that resolves to this layout: CONSECUTIVE, with size and stride given, or LISTS where
// these cannot say it. For the zero Layout that is a group of all replicas.
func (l Layout) Group() Group {
	if l.table == "" {
		return Group{Type: Consecutive, Size: l.size, Stride: l.stride}
	}
	groups := make([][]int, l.Groups())
	for g := range groups {
		groups[g] = l.Members(g)
	}
	return Group{Type: Listed, lists: listsText(groups)}
}

// Transpose returns the layout across this one: its groups are made of the members of equal rank, so each of its groups
// meets each group of l in exactly one replica. A replica's group and rank in one are its rank and group in the other.
// That is only a layout when the groups of l are contiguous blocks (stride 1) or span all replicas (stride times size
// is N); otherwise the error names the three. Lists have one where their groups are equally long, and members of equal
// rank ascend as their groups do; the error names two groups that break it.
//
//	{0 1} {2 3} {4 5} {6 7}   and   {0 2 4 6} {1 3 5 7}   are each other's transpose
func (l Layout) Transpose() (Layout, error) {
	switch {
	case l.replicas == 0:
		return Layout{}, fmt.Errorf("commgroup: a layout without replicas has no transpose")
	case l.table != "":
		return l.transposeLists()
	case l.stride == 1:
		return newLayout(l.replicas, l.replicas/l.size, l.size), nil
	case l.stride*l.size == l.replicas:
		return newLayout(l.replicas, l.stride, 1), nil
	}
	return Layout{}, fmt.Errorf("commgroup: groups of size %d and stride %d of %d replicas have no transpose: want "+
		"stride 1 or %d",
		l.size, l.stride, l.replicas, l.replicas/l.size)
}

// transposeLists is Transpose of a layout with a table.
func (l Layout) transposeLists() (Layout, error) {
	for g := 1; g < l.Groups(); g++ {
		before, members := l.Members(g-1), l.Members(g)
		if len(before) != len(members) {
			return Layout{}, fmt.Errorf("commgroup: lists with groups of different sizes, %s and %s, have no transpose",
				setText(before), setText(members))
		}
		for rank, replica := range members {
			if replica < before[rank] {
				return Layout{}, fmt.Errorf("commgroup: groups %s and %s have no transpose: at rank %d want replicas that "+
					"ascend, not %d before %d", setText(before), setText(members), rank, before[rank], replica)
			}
		}
	}
	across := make([][]int, l.size)
	for rank := range across {
		for g := range l.Groups() {
			across[rank] = append(across[rank], l.Member(g, rank))
		}
	}
	return layoutOf(across, l.replicas), nil
}
