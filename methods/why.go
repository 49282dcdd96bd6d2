package methods

import (
	"fmt"

	"gogcl.dev/methods/schedule"
)

// meetInMiddleBelow is the number of bytes below which a collective over size ranks takes meet_in_middle_ring.
func (t Tuning) meetInMiddleBelow(c schedule.Collective, size int) int64 {
	below := t.MeetInMiddleBytes[0]
	if size > 4 {
		below = max(below, t.MeetInMiddleBytes[1])
	}
	if size > 8 {
		below = max(below, t.MeetInMiddleBytes[2])
	}
	if !c.Contract().Combines {
		below /= 2
	}
	return below
}

// Why says in a few words why Choose makes its choice, as in "every pair of replicas is linked, so that a ring gains
// nothing".
func (t Tuning) Why(c schedule.Collective, size int, bytes int64, strided, rankOrder bool) string {
	q := Case{Collective: c, Ranks: size, Bytes: bytes, Strided: strided, RankOrder: rankOrder, Memory: true}
	if r := t.Rule(&q); r != nil {
		return t.WhyRule(r) + t.Skips(&q)
	}
	return t.WhyBySize(&q) + t.Skips(&q)
}

// WhyBySize says why BySize makes its choice.
func (t Tuning) WhyBySize(q *Case) string {
	if q == nil {
		q = &Case{}
	}
	t.Rules = nil // for Choose
	c, size, bytes, strided, rankOrder := q.Collective, q.Ranks, q.Bytes, q.Strided, q.RankOrder
	few := t.doublingUpTo(c, size)
	limit := few // of broadcast for an all-reduce, as a product: the one that decides
	if bytes <= t.MaxBroadcastBytes/int64(max(size, 1)) || t.MaxBroadcastBytes > few {
		limit = t.MaxBroadcastBytes
	}
	switch m := t.Choose(c, size, bytes, strided, rankOrder); {
	case m == SendToAll && c == schedule.AllReduce:
		return fmt.Sprintf("group size x bytes, %d x %d, is at or below %d", size, bytes, limit)
	case m == SendToAll:
		return fmt.Sprintf("%d bytes are few enough for the root to send them to everyone", bytes)
	case m == RecursiveDoubling:
		return fmt.Sprintf("%d bytes are at or below the %d up to which %d ranks gain by few messages", bytes, few, size)
	case m == Direct && t.Choose(c, size, bytes, false, rankOrder) == SendToAll:
		return "a group with a stride above 1 never takes broadcast"
	case m == Direct && c == schedule.AllReduce && limit > 0 && limit == few && bytes > few:
		return fmt.Sprintf("%d bytes are above the %d up to which %d ranks gain by few messages and every pair of "+
			"replicas is linked", bytes, few, size)
	case m == Direct && c == schedule.AllReduce && t.MaxBroadcastBytes < 0:
		return "broadcast is never to be taken and every pair of replicas is linked"
	case m == Direct && c == schedule.AllReduce:
		return fmt.Sprintf("group size x bytes, %d x %d, is above %d and every pair of replicas is linked",
			size, bytes, limit)
	case m == Direct:
		return "every pair of replicas is linked, so that a ring gains nothing"
	case m == ClockwiseRing:
		return fmt.Sprintf("a ring of %d has one way round", size)
	case m == MeetInMiddleRing:
		return fmt.Sprintf("%d bytes are below the %d from which %d ranks use both directions all the way",
			bytes, t.meetInMiddleBelow(c, size), size)
	}
	return fmt.Sprintf("%d bytes are at or above the %d from which %d ranks use both directions all the way",
		bytes, t.meetInMiddleBelow(c, size), size)
}
