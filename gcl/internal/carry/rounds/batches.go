package rounds

import (
	"iter"

	"gogcl.dev/transport"
)

// A round of a plan has messages; their segments, a window of each at a time, are the transfers of one Exchange:
//
//	a window of 2           message of 3 segments to 1    message of 4 segments to 3
//	batch from segment 0    0 with tag 0, 1 with tag 1    0 with tag 0, 1 with tag 1
//	batch from segment 2    2 with tag 0                  2 with tag 0, 3 with tag 1
//
// Both sides of a message know its length, so they give the same segments the same tags. testdata/rounds.txt shows
// batches of some plans.

// batches are the transfers of one round of all runs, each with the segment of its messages with which it begins. A
// window of 0 is for messages of one segment each, which go at once. A batch is good until the next.
func (l *Runner) batches(runs []Run, moves []planMove, window int) iter.Seq2[int, []transport.Transfer] {
	return func(yield func(first int, batch []transport.Transfer) bool) { l.eachBatch(runs, moves, window, yield) }
}

// eachBatch is batches, not inlined.
func (l *Runner) eachBatch(runs []Run, moves []planMove, window int, yield func(int, []transport.Transfer) bool) {
	if window == 0 {
		l.batch = l.batch[:0]
		for i := range runs {
			for k := range moves {
				l.addSegment(&runs[i], &moves[k], 0, moves[k].tag*uint32(len(runs))+uint32(i))
			}
		}
		yield(0, l.batch)
		return
	}
	for first, more := 0, true; more; first += window {
		more = false
		l.batch = l.batch[:0]
		clear(l.tags)
		for i := range runs {
			for k := 0; k < len(moves); {
				end := k + 1
				for end < len(moves) && moves[end].next { // a fold of several messages, which are equally long
					end++
				}
				l.addSegments(&runs[i], moves[k:end], first, window)
				more = more || (first+window)*runs[i].Segment < len(runs[i].bytes(&moves[k].buf))
				k = end
			}
		}
		if !yield(first, l.batch) {
			return
		}
	}
}

// addSegments adds a window of segments of a message, or of the messages of one fold, to the batch. Their tags go on
// from those that were given to the messages before between the same two replicas, in an order that both know.
func (l *Runner) addSegments(r *Run, moves []planMove, first, window int) {
	length := len(r.bytes(&moves[0].buf))
	there := 0 // how many segments
	for ; there < window && (first+there == 0 || (first+there)*r.Segment < length); there++ {
	}
	l.bases = l.bases[:0]
	for k := range moves {
		tag := l.nextTag(&moves[k])
		l.bases = append(l.bases, *tag)
		*tag += uint32(there)
	}
	for s := range there {
		for k := range moves {
			l.addSegment(r, &moves[k], first+s, l.bases[k]+uint32(s))
		}
	}
}

// nextTag is the tag of the next segment from or to a peer.
func (l *Runner) nextTag(m *planMove) *uint32 {
	if l.tags == nil {
		l.tags = make([][2]uint32, l.Endpoint.Size())
	}
	if m.kind == transport.Send {
		return &l.tags[m.peer][0]
	}
	return &l.tags[m.peer][1]
}

// addSegment adds segment s of a message to the batch.
func (l *Runner) addSegment(r *Run, m *planMove, s int, tag uint32) {
	buf, _ := r.segmentOf(r.bytes(&m.buf), s)
	t := transport.Transfer{Peer: m.peer, Tag: tag, Kind: m.kind, Next: m.next, Buf: buf}
	if m.kind == transport.RecvFold {
		t.Fold = r.Fold
		if r.Packed != nil {
			t.Fold = r.Packed.FoldInto(len(l.batch), buf, r.place.bounds[m.buf.First]+s*r.Segment)
		}
		if m.with.Count > 0 {
			t.With, _ = r.segmentOf(r.bytes(&m.with), s)
		}
	}
	l.batch = append(l.batch, t)
}
