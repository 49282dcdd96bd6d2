package rounds

import (
	"context"
	"iter"

	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Run is one execution of a plan: the only place where a schedule meets bytes. Several runs of one plan are carried out
// at once, round by round: their messages are their own, but they go together.
type Run struct {
	place    *placement
	Elements int // in the larger buffer
	ElemSize int
	Input    []byte // what the schedule calls Input and Output; they may be the same memory
	Output   []byte
	Fold     func(dst, a, b []byte)                         // of a reduction
	Second   func(dst, a, b []byte)                         // Fold with a behind b; Fold itself where they commute
	Many     func(dsts, srcs [][]byte, by int, stream bool) // the same over several operands
	Packed   *pack.Packing                                  // of several tensors; else nil
	Call     transport.Call
	Parts    pack.Parts
	Segment  int // bytes that a segment of a message may have

	lists           *Lists // of a collective of a program's own; else nil
	inBase, outBase int    // the element of the larger buffer at which input and output begin
	scratch         []byte
}

// Execute implements Executor by messages.
func (p *Plan) Execute(ctx context.Context, runs []Run) error {
	l := p.runner
	l.giveScratch(p, runs)
	call, window, silent := runs[0].Call, p.window(runs), len(p.members) > 1
	for t := range p.rounds {
		l.StartRound(t)
		round := &p.rounds[t]
		if p.barriers {
			silent = false
			if err := l.barrier(ctx, call, p.members, t); err != nil {
				return err
			}
		}
		for _, sent := range round.sent {
			for i := range runs {
				runs[i].pack(p, sent)
			}
		}
		if len(round.moves) > 0 {
			call.Round, silent = uint32(t), false
			err := l.exchange(ctx, call, runs, round.moves, window)
			if err != nil {
				return err
			}
		}
		for k := range round.chains {
			for i := range runs {
				runs[i].unpack(&round.chains[k])
			}
		}
		for i := range runs {
			for k := range round.then {
				runs[i].local(&round.then[k], nil)
			}
		}
	}
	l.EndRound(nil)
	if silent { // the transport is told: a member that is in another call may wait for this one
		return l.Endpoint.Exchange(ctx, call, nil)
	}
	return nil
}

// giveScratch sets up the runs of a plan, each with scratch memory of the runner.
func (l *Runner) giveScratch(p *Plan, runs []Run) {
	total := 0
	for i := range runs {
		total += memory.RoundUp(p.setUp(i, &runs[i]), pack.Align)
	}
	if total > 0 {
		l.scratch = memory.Grow(l.scratch, total)
	}
	at := 0
	for i := range runs {
		bytes := runs[i].place.scratchElems * runs[i].ElemSize
		runs[i].scratch = l.scratch[at : at+bytes : at+bytes]
		at += memory.RoundUp(bytes, pack.Align)
	}
}

// barrier returns when all members are about to begin round t: everyone sends an empty message to everyone.
func (l *Runner) barrier(ctx context.Context, call transport.Call, members []int, t int) error {
	batch := l.batch[:0]
	for _, m := range members {
		if m != l.Endpoint.Rank() {
			batch = append(batch, transport.Transfer{Peer: m, Kind: transport.Send},
				transport.Transfer{Peer: m, Kind: transport.Recv})
		}
	}
	l.batch = batch
	call.Round = wire.BarrierRound | uint32(t)
	return l.Endpoint.Exchange(ctx, call, batch)
}

// exchange carries out the moves of one round of all runs.
func (l *Runner) exchange(ctx context.Context, call transport.Call, runs []Run, moves []planMove, window int) error {
	for first, batch := range l.batches(runs, moves, window) {
		l.Segments(batch, first)
		err := l.Endpoint.Exchange(ctx, call, batch)
		clear(batch) // hold on to nobody's buffers
		if err != nil {
			return err
		}
	}
	return nil
}

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
		if m.second {
			t.Fold = r.Second
		}
		if r.Packed != nil {
			t.Fold = r.Packed.FoldInto(len(l.batch), buf, r.place.bounds[m.buf.First]+s*r.Segment, m.second)
		}
		if m.with.Count > 0 {
			t.With, _ = r.segmentOf(r.bytes(&m.with), s)
		}
	}
	l.batch = append(l.batch, t)
}

// local carries out a Copy or a Fold. With stopped, which may be nil, it goes in pieces and asks before each.
func (r *Run) local(st *schedule.Step, stopped func() bool) {
	dst, src := r.bytes(&st.Dst), r.bytes(&st.Src)
	if st.Verb != schedule.Fold && memory.Address(dst) == memory.Address(src) {
		return // Output is Input, which peers may be reading
	}
	size := len(dst)
	if stopped != nil {
		size = memory.MaxPieceBytes
	}
	for at := 0; at < len(dst); at += size {
		if stopped != nil && stopped() {
			return
		}
		end := min(at+size, len(dst))
		to, from := dst[at:end], src[at:end]
		switch {
		case st.Verb != schedule.Fold:
			copy(to, from)
		case r.Packed != nil:
			r.Packed.Fold(r.place.bounds[st.Dst.First]+at, to, to, from)
		default:
			r.Fold(to, to, from)
		}
	}
}

// bytes finds the memory of a span without a stride, or of a parcel.
func (r *Run) bytes(sp *schedule.Span) []byte {
	lo, hi := r.place.bounds[sp.First], r.place.bounds[sp.First+sp.Count]
	switch sp.Buf {
	case schedule.Input:
		if r.lists != nil {
			return r.lists.bytes(r, r.Input, r.lists.in, sp.First, hi-lo)
		}
		return r.Input[(lo-r.inBase)*r.ElemSize : (hi-r.inBase)*r.ElemSize]
	case schedule.Output:
		if r.lists != nil {
			return r.lists.bytes(r, r.Output, r.lists.out, sp.First, hi-lo)
		}
		lo, hi = r.place.outs[sp.First], r.place.outs[sp.First+sp.Count]
		return r.Output[(lo-r.outBase)*r.ElemSize : (hi-r.outBase)*r.ElemSize]
	case inParcel:
		return r.parcel(sp.Slot)
	}
	start := r.place.starts[sp.Slot] + lo - r.place.bounds[sp.Base]
	return r.scratch[start*r.ElemSize : (start+hi-lo)*r.ElemSize]
}
