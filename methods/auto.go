package methods

import "gogcl.dev/methods/schedule"

// Tuning holds the sizes at which Choose changes its mind. They are properties of what connects the replicas.
type Tuning struct {
	// MaxBroadcastBytes is the greatest product of group size and bytes of an all-reduce for which broadcast is chosen;
	// negative: it never is.
	MaxBroadcastBytes int64

	// MeetInMiddleBytes are the bytes below which meet_in_middle_ring beats bidirectional_ring_pair: for any group, for
	// more than 4 ranks, and for more than 8. A collective that combines nothing takes half of each.
	MeetInMiddleBytes [3]int64

	// MaxBroadcastFromRootBytes is the greatest size of a Broadcast that the root sends straight to everyone where
	// Direct is set; a larger one is dealt out in pieces that the ranks exchange.
	MaxBroadcastFromRootBytes int64

	// Direct says that every pair of replicas is linked as well as neighbours are, so that nothing is gained by a ring.
	Direct bool
}

// IPULinks are the values for IPU-Links: those of the open ancestor of GCL in Poplibs, and of GCL's
// syncful.maxBroadcastSize.
func IPULinks() Tuning {
	return Tuning{MaxBroadcastBytes: 2048, MeetInMiddleBytes: [3]int64{1_245_184, 4_980_736, 39_845_888}}
}

// Choose returns the method for a collective over size ranks of bytes of data at each (the larger of a rank's two
// buffers). A strided group never takes broadcast.
func (t Tuning) Choose(c schedule.Collective, size int, bytes int64, strided bool) Method {
	switch {
	case c == schedule.AllReduce && !strided && t.MaxBroadcastBytes >= 0 &&
		bytes <= t.MaxBroadcastBytes/int64(max(size, 1)):
		return SendToAll
	case t.Direct && c == schedule.Broadcast && bytes <= t.MaxBroadcastFromRootBytes:
		return SendToAll
	case t.Direct:
		return Direct
	case size <= 2:
		return ClockwiseRing
	}
	if bytes < t.meetInMiddleBelow(c, size) {
		return MeetInMiddleRing
	}
	return BidirectionalRingPair
}
