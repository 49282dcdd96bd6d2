package methods

import "gogcl.dev/methods/schedule"

// lane is one direction round one ring as one rank sees it. All ring methods are made of lanes: they differ in how
// many there are, which fragments each carries, and how far it carries them.
type lane struct {
	order []int // the ranks in the direction of travel
	at    int   // this rank's place in order

	reach    int // rounds: how many places a fragment travels
	fragment int // which of a rank's fragments it carries
	id       int // its number among the lanes of the rank, for scratch slots
}

// ahead is the rank d places further in the direction of travel; d may be negative.
func (l lane) ahead(d int) int {
	k := len(l.order)
	return l.order[((l.at+d)%k+k)%k]
}

// behind is the rank that lies d places back.
func (l lane) behind(d int) int { return l.ahead(-d) }

func (l lane) self() int { return l.order[l.at] }

// newLane puts a rank on a ring order, in its direction or against it.
func newLane(rank int, ring []int, against bool) lane {
	k := len(ring)
	l := lane{order: ring, reach: k - 1}
	if against {
		l.order = make([]int, k)
		for i, r := range ring {
			l.order[k-1-i] = r
		}
	}
	for i, r := range l.order {
		if r == rank {
			l.at = i
		}
	}
	return l
}

// lanes returns the lanes of the ring methods, in the order of their ids.
func (s Spec) lanes(rank int) []lane {
	var out []lane
	switch s.Method {
	case ClockwiseRing:
		out = clockwiseRing(rank, s.Ring)
	case AnticlockwiseRing:
		out = anticlockwiseRing(rank, s.Ring)
	case BidirectionalRingPair:
		out = bidirectionalRingPair(rank, s.Ring)
	case MeetInMiddleRing:
		out = meetInMiddleRing(rank, s.Ring)
	case QuadDirectionalRing:
		out = quadDirectionalRing(rank, s.Ring, s.Second)
	}
	for i := range out {
		out[i].id = i
	}
	return out
}

// fragments is the number of fragments that each rank owns: one for each lane, but that the two lanes of
// meet_in_middle_ring share one.
func (s Spec) fragments() int {
	switch s.Method {
	case BidirectionalRingPair:
		return 2
	case QuadDirectionalRing:
		return 4
	}
	return 1
}

// rounds returns a program of as many empty rounds as the lane that reaches furthest needs, and extra ones.
func rounds(lanes []lane, extra int) schedule.Program {
	reach := 0
	for _, l := range lanes {
		reach = max(reach, l.reach)
	}
	return make(schedule.Program, reach+extra)
}
