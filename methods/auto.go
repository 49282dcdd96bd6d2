package methods

import "gogcl.dev/methods/schedule"

// DefaultSeparateBytes is Tuning.SeparateBytes where that is 0. On eight replicas of one process, by direct and by
// clockwise_ring (BenchmarkAllReduceMany with other sizes of tensor, two cores), packing takes half the time with
// messages of 1 KiB, as long with 2 KiB, and up to half as long again with 4 KiB.
const DefaultSeparateBytes = 4 << 10

// Tuning holds what Choose goes by: rules that were measured where there are some, and else the table of the links that
// connect the replicas.
type Tuning struct {
	// Rules go before Links, where one of them fits: see Rule. nil: there are none.
	Rules *Rules

	// Links is the table that decides where no rule does: see ByLinks. nil: all take direct.
	Links *Rules

	// MaxBroadcastBytes is the greatest product of group size and bytes of an all-reduce for which broadcast is chosen
	// before Links; 0: for none. Negative: no all-reduce takes broadcast.
	MaxBroadcastBytes int64

	// BroadcastFirst has MaxBroadcastBytes go before Rules: up to it an all-reduce takes broadcast, above it or with a
	// negative one no rule that names broadcast counts.
	BroadcastFirst bool

	// SeparateBytes is the least size of a tensor's messages, in a call on several tensors, with which it gets messages
	// of its own. Below it a message costs more than to copy so much into one that tensors share, and out of it. 0: 4
	// KiB, DefaultSeparateBytes.
	SeparateBytes int64
}

// Choose returns the method for a collective over size ranks of bytes of data at each (the larger of a rank's two
// buffers). A strided group never takes broadcast. With rankOrder, as in Spec, a reduction never takes
// recursive_doubling, which would be a chain. Rules count as on peer memory, whatever implementation they name.
func (t Tuning) Choose(c schedule.Collective, size int, bytes int64, strided, rankOrder bool) Method {
	q := Case{Collective: c, Ranks: size, Bytes: bytes, Strided: strided, RankOrder: rankOrder, Memory: true}
	if r := t.Rule(&q); r != nil {
		return r.Method
	}
	return t.ByLinks(&q)
}

// ByLinks is Choose without Rules: broadcast for an all-reduce up to MaxBroadcastBytes, and else the last line of Links
// that fits, but for broadcast in an all-reduce that may not take it, and in rank order recursive_doubling in a
// reduction. Where no line fits it is direct.
func (t *Tuning) ByLinks(q *Case) Method {
	switch r := t.link(q); {
	case t == nil || q == nil:
		return Auto // of nothing
	case t.Broadcasts(q):
		return SendToAll
	case r != nil:
		return r.Method
	}
	return Direct
}

// Broadcasts reports whether MaxBroadcastBytes has an all-reduce take broadcast.
func (t *Tuning) Broadcasts(q *Case) bool {
	return t != nil && q != nil && q.Collective == schedule.AllReduce && !q.Strided && t.MaxBroadcastBytes > 0 &&
		q.Bytes <= t.MaxBroadcastBytes/int64(max(q.Ranks, 1))
}

// link is the line of Links that decides, or nil. Of the obstacles of a rule two are narrower: a limit above 0 does not
// keep an all-reduce from broadcast, and in rank order the rings are taken.
func (t *Tuning) link(q *Case) *Rule {
	if t == nil || q == nil || t.Links == nil {
		return nil
	}
	r := t.Links.above(0, q.Collective, q.Ranks, q.Bytes)
	for r != nil && t.skipsLink(r, q) {
		r = t.Links.above(r.Line, q.Collective, q.Ranks, q.Bytes)
	}
	return r
}

// skipsLink reports whether a line is broadcast for an all-reduce that may not take it, or would be a chain.
func (t *Tuning) skipsLink(r *Rule, q *Case) bool {
	switch r.Method {
	case SendToAll:
		return q.Collective == schedule.AllReduce && (q.Strided || t.MaxBroadcastBytes < 0)
	case RecursiveDoubling:
		return q.RankOrder && inRankOrder(q.Collective)
	}
	return false
}
