package gcl

import (
	"context"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// run is one execution of a plan: the only place where a schedule meets bytes.
type run struct {
	plan     *plan
	elemSize int
	input    []byte // what the schedule calls Input and Output; they may be the same memory
	output   []byte
	fold     func(dst, a, b []byte)                         // of a reduction
	many     func(dsts, srcs [][]byte, by int, stream bool) // the same over several operands
	call     transport.Call

	inBase, outBase int // the element of the larger buffer at which input and output begin
	scratch         []byte
}

// execute implements executor by messages.
func (p *plan) execute(ctx context.Context, r run, n int) error {
	l := p.lane
	p.fit(n)
	r.plan = p
	r.inBase, r.outBase = p.bases()
	if p.scratchElems > 0 {
		l.scratch = grow(l.scratch, p.scratchElems*r.elemSize)
		r.scratch = l.scratch
	}
	for t := range p.rounds {
		l.startRound(t)
		round := &p.rounds[t]
		if p.barriers {
			if err := l.barrier(ctx, &r, p.members, t); err != nil {
				return err
			}
		}
		if len(round.moves) > 0 {
			r.call.Round = uint32(t)
			err := l.exchange(ctx, &r, round.moves)
			if err != nil {
				return err
			}
		}
		for i := range round.then {
			r.local(&round.then[i])
		}
	}
	l.endRound()
	return nil
}

// barrierRound marks the messages of the barrier before a round.
const barrierRound = 1 << 31

// barrier returns when all members are about to begin round t: everyone sends an empty message to everyone.
func (l *lane) barrier(ctx context.Context, r *run, members []int, t int) error {
	batch := l.batch[:0]
	for _, m := range members {
		if m != l.endpoint.Rank() {
			batch = append(batch, transport.Transfer{Peer: m, Kind: transport.Send}, transport.Transfer{Peer: m, Kind: transport.Recv})
		}
	}
	l.batch = batch
	r.call.Round = barrierRound | uint32(t)
	return l.endpoint.Exchange(ctx, r.call, batch)
}

// exchange hands the moves of one round to the endpoint.
func (l *lane) exchange(ctx context.Context, r *run, moves []planMove) error {
	batch := l.batch[:0]
	for i := range moves {
		m := &moves[i]
		t := transport.Transfer{Peer: m.peer, Tag: m.tag, Kind: m.kind, Next: m.next, Buf: r.bytes(m.buf)}
		if m.kind == transport.RecvFold {
			t.Fold = r.fold
			if m.with.Count > 0 {
				t.With = r.bytes(m.with)
			}
		}
		batch = append(batch, t)
	}
	l.batch = batch
	l.segments(batch)
	err := l.endpoint.Exchange(ctx, r.call, batch)
	clear(batch) // hold on to nobody's buffers
	return err
}

// local carries out a Copy or a Reduce.
func (r *run) local(st *schedule.Step) {
	dst, src := r.bytes(st.Dst), r.bytes(st.Src)
	if st.Verb == schedule.Reduce {
		r.fold(dst, dst, src)
		return
	}
	copy(dst, src) // of nothing where Output is Input
}

// bytes finds the memory of a span.
func (r *run) bytes(sp schedule.Span) []byte {
	lo, hi := r.plan.bounds[sp.First], r.plan.bounds[sp.First+sp.Count]
	switch sp.Buf {
	case schedule.Input:
		return r.input[(lo-r.inBase)*r.elemSize : (hi-r.inBase)*r.elemSize]
	case schedule.Output:
		return r.output[(lo-r.outBase)*r.elemSize : (hi-r.outBase)*r.elemSize]
	}
	start := r.plan.slots[sp.Slot].start + lo - r.plan.bounds[sp.Base]
	return r.scratch[start*r.elemSize : (start+hi-lo)*r.elemSize]
}
