package topology

import (
	"cmp"
	"fmt"
	"slices"
)

// Rings is the ring for the methods that use one, and the second ring for the method that uses two. A ring is the ranks
// of a group in the order in which it visits them, clockwise, beginning with rank 0; from the last it returns to the
// first. Either is used in both directions.
type Rings struct {
	Name          RingName // what Auto came to; Auto where GCL has no name for the order
	First, Second []int
	Disjoint      bool // the two rings share no physical link
}

// Rings returns the rings of a group, whose members are replica ids in rank order. Any members will do, in any order,
// but none twice. A ring that does not fit the number of IPUs per replica, or the ends of the ladder, is an error.
// [Auto] always fits:
//
//	clique                              rank order; where Config.Domains is no ranges, rank order domain by domain
//	ladder, 1 IPU per replica           peripheral-ring
//	joined ladder, 2, 4, 8 per replica  rung-ring-2, -4, -8; other numbers take the same order
//	open ladder, 2 per replica          ring-on-line; other numbers take the same order
//
// On a clique a named ring has the order that it would have on a ladder; all its links exist there.
//
// The first ring of part of a ladder is the order of the whole ladder without those who are not members. Over several
// ladders it takes one after the other, up the first, down the second and so on, among those that have members. Every
// hop of it is a direct link for
//
//   - peripheral-ring on whole ladders of an even number of IPUs, and on the blocks of 2i neighbours that begin with an
//     even id (a shorter ladder);
//   - rung rings on whole joined ladders;
//   - either of them on several such ladders, all of one length, if their number is even. If it is odd the ring ends
//     at the far end of the last ladder, and its last hop has to be routed;
//   - one member from each of several ladders, all at the same place.
//
// Elsewhere some hops are routed through others. The hops of ring-on-line are meant to be: each goes at most two rungs,
// and together they load every rail of a side once in each direction.
//
// The second ring of a ladder is the mirror image, the first reversed. With an even number of IPUs per replica the
// first keeps to the left column, the second to the right. With an odd number each keeps to one link of every bundle.
// So they share none, however a hop is routed, except that a group of one has no links at all.
//
// The second ring of a clique is another cycle with no edge in common, which exists for five members and more. Across
// several domains it crosses from domain to domain just as often as the first, which works when the first visits at
// least four members before each crossing. Where there is no such cycle, Second is First again and Disjoint is false.
func (t Topology) Rings(name RingName, members []int) (Rings, error) {
	way, name, err := t.course(name)
	if err != nil {
		return Rings{}, err
	}
	if err := t.checkMembers(members); err != nil {
		return Rings{}, err
	}
	rings := Rings{Name: name, First: t.order(way, name, members)}
	if t.shape == Clique {
		rings.Second, rings.Disjoint = t.secondOfClique(rings.First, members)
	} else {
		rings.Second, rings.Disjoint = mirror(rings.First), len(members) > 1
	}
	return rings, nil
}

// checkMembers refuses an empty group, an unknown replica and a replica named twice.
func (t Topology) checkMembers(members []int) error {
	if len(members) == 0 {
		return fmt.Errorf("topology: a ring needs at least one member")
	}
	for rank, r := range members {
		if r < 0 || r >= t.Replicas() {
			return fmt.Errorf("topology: member %d is replica %d, but there are %d replicas", rank, r, t.Replicas())
		}
	}
	sorted := slices.Sorted(slices.Values(members))
	for i, r := range sorted[1:] {
		if r == sorted[i] {
			return fmt.Errorf("topology: replica %d is a member twice", r)
		}
	}
	return nil
}

// order returns the ranks in the order in which the members come on their way through the domains.
func (t Topology) order(way course, name RingName, members []int) []int {
	ranks := make([]int, len(members))
	for rank := range ranks {
		ranks[rank] = rank
	}
	place := func(rank int) int { return t.place(members[rank]) }
	if t.shape == Clique && name == Auto {
		if t.dealt == nil {
			return ranks
		}
		slices.SortStableFunc(ranks, func(a, b int) int {
			return cmp.Compare(t.Domain(members[a]), t.Domain(members[b]))
		})
		return fromZero(ranks)
	}
	// Domain by domain; every other one, of those that have members, is passed in reverse.
	slices.SortFunc(ranks, func(a, b int) int { return cmp.Compare(place(a), place(b)) })
	reversed := false
	for rest := ranks; len(rest) > 0; reversed = !reversed {
		domain := t.Domain(members[rest[0]])
		lo, hi := t.starts[domain], t.starts[domain+1]
		n := 0
		for n < len(rest) && place(rest[n]) < hi {
			n++
		}
		slices.SortFunc(rest[:n], func(a, b int) int {
			return cmp.Compare(way.position(place(a)-lo, hi-lo), way.position(place(b)-lo, hi-lo))
		})
		if reversed {
			slices.Reverse(rest[:n])
		}
		rest = rest[n:]
	}
	return fromZero(ranks)
}

// fromZero turns a ring until rank 0 comes first.
func fromZero(ring []int) []int {
	zero := slices.Index(ring, 0)
	return slices.Concat(ring[zero:], ring[:zero])
}

// mirror returns a ring in the other direction.
func mirror(ring []int) []int {
	reversed := slices.Clone(ring)
	slices.Reverse(reversed)
	return fromZero(reversed)
}
