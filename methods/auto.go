package methods

import "gogcl.dev/methods/schedule"

// DefaultSeparateBytes is Tuning.SeparateBytes where that is 0. On eight replicas of one process, by direct and by
// clockwise_ring (BenchmarkAllReduceMany with other sizes of tensor, two cores), packing takes half the time with
// messages of 1 KiB, as long with 2 KiB, and up to half as long again with 4 KiB.
const DefaultSeparateBytes = 4 << 10

// Tuning holds what Choose goes by: rules where there are some, and else the sizes at which it changes its mind. They
// are properties of what connects the replicas.
type Tuning struct {
	// Rules go before all sizes below, where one of them fits: see Rule. nil: there are none.
	Rules *Rules

	// BroadcastFirst has MaxBroadcastBytes go before Rules: up to it an all-reduce takes broadcast, above it or with a
	// negative one no rule that names broadcast counts.
	BroadcastFirst bool

	// MaxBroadcastBytes is the greatest product of group size and bytes of an all-reduce for which broadcast is chosen
	// before all other methods; 0: for none. Negative: no all-reduce takes broadcast.
	MaxBroadcastBytes int64

	// DoublingBytes are the greatest sizes at which recursive_doubling is chosen, for its few messages: between 2
	// ranks, among 3 to 8, and among more; 0: it never is. Among 3 or more it must also have fewer rounds than a rank
	// has peers, since other methods send to all peers in one round. Among 3 it never has, among 5 in some collectives.
	// An all-reduce without that advantage takes broadcast, as long as the product of group size and bytes is not above
	// the same number. An all-to-all, which it has copy all data several times, takes it up to a quarter of the number,
	// and never between 2.
	DoublingBytes [3]int64

	// MeetInMiddleBytes are the bytes below which meet_in_middle_ring beats bidirectional_ring_pair: for any group, for
	// more than 4 ranks, and for more than 8. A collective that combines nothing takes half of each.
	MeetInMiddleBytes [3]int64

	// MaxBroadcastFromRootBytes is the greatest size of a Broadcast that the root sends straight to everyone where
	// Direct is set; a larger one is dealt out in pieces that the ranks exchange.
	MaxBroadcastFromRootBytes int64

	// SeparateBytes is the least size of a tensor's messages, in a call on several tensors, with which it gets messages
	// of its own. Below it a message costs more than to copy so much into one that tensors share, and out of it. 0: 4
	// KiB, DefaultSeparateBytes.
	SeparateBytes int64

	// Direct says that every pair of replicas is linked as well as neighbours are, so that nothing is gained by a ring.
	Direct bool
}

// Choose returns the method for a collective over size ranks of bytes of data at each (the larger of a rank's two
// buffers). A strided group never takes broadcast. With rankOrder, as in Spec, a reduction never takes
// recursive_doubling, which would be a chain. Rules count as on peer memory, whatever implementation they name.
func (t Tuning) Choose(c schedule.Collective, size int, bytes int64, strided, rankOrder bool) Method {
	q := Case{Collective: c, Ranks: size, Bytes: bytes, Strided: strided, RankOrder: rankOrder, Memory: true}
	if r := t.Rule(&q); r != nil {
		return r.Method
	}
	return t.BySize(&q)
}

// BySize is Choose without Rules.
func (t *Tuning) BySize(q *Case) Method {
	if t == nil || q == nil {
		return Auto // of nothing
	}
	c, size, bytes, strided, rankOrder := q.Collective, q.Ranks, q.Bytes, q.Strided, q.RankOrder
	broadcast := c == schedule.AllReduce && !strided && t.MaxBroadcastBytes >= 0
	ranks, few := int64(max(size, 1)), t.doublingUpTo(c, size)
	switch {
	case broadcast && t.MaxBroadcastBytes > 0 && bytes <= t.MaxBroadcastBytes/ranks:
		return SendToAll
	case few > 0 && bytes <= few && doublingPays(c, size, rankOrder):
		return RecursiveDoubling
	case broadcast && few > 0 && bytes <= few/ranks:
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

// doublingUpTo is the number of bytes up to which size ranks take recursive_doubling.
func (t Tuning) doublingUpTo(c schedule.Collective, size int) int64 {
	few := t.DoublingBytes[2]
	switch {
	case size <= 2:
		few = t.DoublingBytes[0]
	case size <= 8:
		few = t.DoublingBytes[1]
	}
	switch {
	case c == schedule.AllToAll && size <= 2:
		return 0
	case c == schedule.AllToAll:
		return few / 4
	}
	return few
}

// doublingPays reports whether recursive_doubling has fewer rounds, of about one message each, than a rank has peers.
// Between 2 all methods have one message, and recursive_doubling one round.
func doublingPays(c schedule.Collective, size int, rankOrder bool) bool {
	s := Spec{Method: RecursiveDoubling, Collective: c, Size: size, RankOrder: rankOrder}
	w, err := s.recipe()
	if err != nil || size < 2 || s.inOrder() {
		return false
	}
	rounds := s.treeRounds()
	if w.folds {
		f := s.fold()
		rounds = f.rounds() + 2*f.before()
	}
	return rounds <= max(size-2, 1)
}
