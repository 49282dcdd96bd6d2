package rounds

import (
	"context"

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
	Many     func(dsts, srcs [][]byte, by int, stream bool) // the same over several operands
	Packed   *pack.Packing                                  // of several tensors; else nil
	Call     transport.Call
	Parts    pack.Parts
	Segment  int // bytes that a segment of a message may have

	lists           *Lists // of a collective of a program's own; else nil
	inBase, outBase int    // the element of the larger buffer at which input and output begin
	scratch         []byte
}

// Execute implements executor by messages.
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
