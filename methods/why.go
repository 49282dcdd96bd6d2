package methods

import (
	"fmt"

	"gogcl.dev/methods/schedule"
)

// Why says why Choose makes its choice, as in "tcp.txt:12: all-reduce 3-5 0 broadcast 30 us".
func (t Tuning) Why(c schedule.Collective, size int, bytes int64, strided, rankOrder bool) string {
	q := Case{Collective: c, Ranks: size, Bytes: bytes, Strided: strided, RankOrder: rankOrder, Memory: true}
	if r := t.Rule(&q); r != nil {
		return t.WhyRule(r) + t.Skips(&q)
	}
	return t.WhyByLinks(&q) + t.Skips(&q)
}

// WhyByLinks says why ByLinks makes its choice: MaxBroadcastBytes, if an all-reduce depends on it, and the line of
// Links.
func (t Tuning) WhyByLinks(q *Case) string {
	if q == nil {
		q = &Case{}
	}
	product := fmt.Sprintf("group size x bytes, %d x %d, is", q.Ranks, q.Bytes)
	if t.Broadcasts(q) {
		return fmt.Sprintf("%s at or below %d", product, t.MaxBroadcastBytes)
	}
	line := "no line of the table of links fits"
	if r := t.link(q); r != nil {
		line = r.Measured + " (" + t.Links.Cite(r) + ")"
	}
	if q.Collective != schedule.AllReduce {
		return line
	}
	flat := *q
	flat.Strided = false
	switch {
	case q.Strided && t.ByLinks(&flat) == SendToAll:
		return "a group with a stride above 1 never takes broadcast, and " + line
	case t.MaxBroadcastBytes < 0:
		return "broadcast is never to be taken, and " + line
	case t.MaxBroadcastBytes > 0:
		return fmt.Sprintf("%s above %d, and %s", product, t.MaxBroadcastBytes, line)
	}
	return line
}
