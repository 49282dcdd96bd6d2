package topology

// LadderRing returns the ring round the edge of a ladder of n IPUs: the even ids going up the left column, then the odd
// ids coming down the right. With an odd n, where the top rung has only its left end, the hop across the top is a rail
// and a rung. n below 1 gives nil, and
// an n too large for any memory panics, as make does.
//
//	2: 0 1    4: 0 2 3 1    5: 0 2 4 3 1    8: 0 2 4 6 7 5 3 1
func LadderRing(n int) []int {
	if n < 1 {
		return nil
	}
	ring := make([]int, n)
	for id := range ring {
		ring[upAndBack.position(id, n)] = id
	}
	return ring
}

// position returns where in a ring of n the one with a given id comes.
func (c course) position(id, n int) int {
	switch {
	case c == straight:
		return id
	case id%2 == 0:
		return id / 2
	default:
		return n - 1 - id/2
	}
}
