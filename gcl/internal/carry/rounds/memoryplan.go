package rounds

import (
	"context"
	"fmt"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// MemoryPlan carries out any method's schedule on peer memory, as a Worker of a Share with as many rounds: in each
// round every replica takes what it is to receive from where it lies at the sender, and then does its local steps.
// Those of the last round, which may overwrite what peers read in that round, come when the Share is over.
type MemoryPlan struct {
	runner  *Runner
	members []int
	plan    *Plan      // the rank's own
	from    [][]origin // by round and move: where a receive finds its message
	senders []sender
	pieces  []int // by round: one for each member. After a single round comes one of none, so that each does its own

	runs []Run           // of the call in progress
	ctx  context.Context // of the call in progress

	ins, outs      [][]byte // of the runs
	dst, srcs, now [][]byte // of one fold; now are the pieces of srcs that are at hand
}

// origin is where a message lies.
type origin struct {
	sender int // index into MemoryPlan.senders
	span   schedule.Span

	// Of a receive that goes in pieces, or of several that are one fold:
	strips []strip
	moves  int // how many, if it is the first one
}

// sender is a rank that the replica takes messages from.
type sender struct {
	rank int
	plan *Plan // says where chunks and slots lie; has no rounds
	runs []Run // of the call in progress
}

// NewMemoryPlan finds for each receive of a rank what its sender sends.
func NewMemoryPlan(l *Runner, set *Set, rank int) (*MemoryPlan, error) {
	made, err := set.rank(rank)
	if err != nil {
		return nil, err
	}
	own := *made.plan // with placements of its own
	s := &MemoryPlan{
		runner: l, members: set.members, plan: &own,
		from: make([][]origin, len(own.rounds)), pieces: make([]int, max(len(own.rounds), 2)),
	}
	own.parcels = nil // it takes messages from where they lie
	for t := range own.rounds {
		s.pieces[t] = len(set.members)
	}
	known := map[int]int{} // by rank: index into s.senders
	replica := set.members[rank]
	for t := range own.rounds {
		moves := own.rounds[t].moves
		s.from[t] = make([]origin, len(moves))
		for i := range moves {
			m := &moves[i]
			if m.kind == transport.Send {
				continue
			}
			from := set.rankOf[m.peer]
			theirs, err := set.rank(from)
			if err != nil {
				return nil, err
			}
			if have, want := len(theirs.plan.rounds), len(own.rounds); have != want { // Share wants one number of all
				return nil, fmt.Errorf("%v: rank %d has %d rounds and rank %d has %d, want as many on all ranks",
					set.Spec.Method, from, have, rank, want)
			}
			if _, ok := known[from]; !ok {
				known[from] = len(s.senders)
				layout := *theirs.plan
				layout.rounds, layout.parcels = nil, nil
				s.senders = append(s.senders, sender{rank: from, plan: &layout})
			}
			sent := theirs.sent(t, replica, m.tag)
			if sent == nil {
				return nil, fmt.Errorf("%v: rank %d receives message %d of rank %d in round %d, which does not send it",
					set.Spec.Method, rank, m.tag, from, t)
			}
			s.from[t][i] = origin{sender: known[from], span: sent.buf}
			if sent.buf.Buf == inParcel {
				s.from[t][i].span = theirs.plan.parcels[sent.buf.Slot].of
			}
		}
		s.cutUp(&own.rounds[t], s.from[t])
	}
	return s, nil
}

// Cut implements Executor.
func (s *MemoryPlan) Cut() int { return s.plan.Cut() }

// Apart implements Executor.
func (s *MemoryPlan) Apart() bool { return s.plan.Apart() }

// Summary implements Executor.
func (s *MemoryPlan) Summary() uint64 { return s.plan.Summary() }

// Length implements Executor.
func (s *MemoryPlan) Length() int { return s.plan.Length() }

// Execute implements Executor on peer memory.
func (s *MemoryPlan) Execute(ctx context.Context, runs []Run) error {
	s.runner.giveScratch(s.plan, runs)
	s.runs, s.ctx, s.ins, s.outs = runs, ctx, s.ins[:0], s.outs[:0]
	defer s.forget()
	for i := range runs {
		s.ins, s.outs = append(s.ins, runs[i].Input), append(s.outs, runs[i].Output)
	}
	mine := transport.Memory{Ins: s.ins, Outs: s.outs, Scratch: s.runner.scratch}
	err := s.runner.Memory.Share(ctx, runs[0].Call, s.members, mine, s.pieces, s)
	if err = s.runner.lengths.Ended(err); err != nil {
		return err
	}
	if last := len(s.plan.rounds) - 1; last >= 0 {
		s.local(last, nil) // nobody waits for it
		s.runner.EndRound(nil)
	}
	return nil
}

// forget holds on to nobody's buffers, also after a panic.
func (s *MemoryPlan) forget() {
	for i := range s.senders {
		clear(s.senders[i].runs)
	}
	clear(s.runs)
	clear(s.ins)
	clear(s.outs)
	clear(s.dst)
	clear(s.srcs[:cap(s.srcs)])
	clear(s.now)
	s.runs, s.ctx = nil, nil
}

// stopped reports whether the call has come to an end, so that a piece need not go on. The Share fails when it has
// ended.
func (s *MemoryPlan) stopped() bool { return s.runner.Endpoint.Err() != nil || s.ctx.Err() != nil }

// Piece implements transport.Worker: it is the rank's part of a round.
func (s *MemoryPlan) Piece(all []transport.Memory, round, _ int) {
	if round == 0 {
		s.look(all)
	}
	if s.runner.lengths.Wrong() {
		return
	}
	s.enter(round)
	for i := range s.runs {
		s.moves(round, i, &s.runs[i])
	}
	if round < len(s.plan.rounds)-1 {
		s.local(round, s.stopped)
	}
}

// enter tells of a round. If a function of a Trace panics, the others hear of that, and not of a Worker.
func (s *MemoryPlan) enter(round int) {
	if s.runner.Listener == nil {
		s.runner.StartRound(round)
		return
	}
	told := false
	defer func() {
		if !told {
			s.runner.Endpoint.Abort(flight.ErrCrash)
		}
	}()
	s.runner.StartRound(round)
	for i := range s.runs {
		s.segments(round, &s.runs[i])
	}
	told = true
}

// local carries out the steps after the moves of a round.
func (s *MemoryPlan) local(round int, stopped func() bool) {
	steps := s.plan.rounds[round].then
	for i := range s.runs {
		for k := range steps {
			s.runs[i].local(&steps[k], stopped)
		}
	}
}

// look finds the buffers of the senders. If a sender has laid open others than the call wants, the Share fails.
func (s *MemoryPlan) look(mems []transport.Memory) {
	lengths := &s.runner.lengths
	for k := range s.senders {
		from := &s.senders[k]
		m, replica := &mems[from.rank], s.members[from.rank]
		from.runs = from.runs[:0]
		if !lengths.FitsLists(replica, m, len(s.runs)) {
			return
		}
		at := 0 // in the rank's scratch memory, as giveScratch has it
		for i := range s.runs {
			own := &s.runs[i]
			r := Run{Elements: own.Elements, ElemSize: own.ElemSize, Parts: own.Parts, Packed: own.Packed,
				Segment: own.Segment, Input: m.Ins[i], Output: m.Outs[i]}
			bytes := from.plan.putAt(from.plan.placeAs(i, own.place), &r)
			input, output := from.plan.lengths(&r)
			if !lengths.FitsInput(transport.Recv, replica, r.Input, input) ||
				!lengths.FitsOutput(transport.Recv, replica, r.Output, output) ||
				!lengths.FitsScratch(replica, len(m.Scratch), at+bytes) {
				return
			}
			r.scratch = m.Scratch[at : at+bytes]
			at += memory.RoundUp(bytes, pack.Align)
			from.runs = append(from.runs, r)
		}
	}
}

// moves carries out the receives of a round in run k. A fold of several is one loop over all their operands.
func (s *MemoryPlan) moves(t, k int, me *Run) {
	moves := s.plan.rounds[t].moves
	for i := 0; i < len(moves); {
		m := &moves[i]
		if m.kind == transport.Send {
			i++
			continue
		}
		if n := s.from[t][i].moves; n > 0 {
			s.fold(s.from[t][i].strips, k, me)
			i += n
			continue
		}
		dst := me.bytes(&m.buf)
		srcs := s.srcs[:0] // in the order of the fold
		for first := i; i < len(moves) && (i == first || moves[i].next); i++ {
			from := &s.from[t][i]
			arrives := s.senders[from.sender].runs[k].bytes(&from.span)
			switch with := &moves[i].with; {
			case with.Count == 0:
				srcs = append(srcs, arrives)
			case moves[i].second:
				srcs = append(srcs, arrives, me.bytes(with))
			default:
				srcs = append(srcs, me.bytes(with), arrives)
			}
		}
		s.srcs = srcs
		s.combine(me, dst, srcs, me.place.bounds[m.buf.First])
	}
}

// combine folds srcs into dst, in pieces. One source is copied. Of several tensors that are packed, dst lies at byte
// first of the packing.
func (s *MemoryPlan) combine(me *Run, dst []byte, srcs [][]byte, first int) {
	size := min(memory.MaxPieceBytes, me.Segment)
	for at := 0; at < len(dst); at += size {
		if s.stopped() {
			return
		}
		end := min(at+size, len(dst))
		if len(srcs) == 1 {
			copy(dst[at:end], srcs[0][at:end])
			continue
		}
		for len(s.now) < len(srcs) {
			s.now = append(s.now, nil)
		}
		for r := range srcs {
			s.now[r] = srcs[r][at:end]
		}
		s.dst = append(s.dst[:0], dst[at:end])
		if me.Packed != nil {
			me.Packed.FoldMany(first+at, s.dst, s.now[:len(srcs)])
			continue
		}
		me.Many(s.dst, s.now[:len(srcs)], 0, false)
	}
}

// segments tells what the rank takes from its peers' memory in a round of one run.
func (s *MemoryPlan) segments(round int, me *Run) {
	if !s.runner.Listener.WantsSegments() {
		return
	}
	for i := range s.plan.rounds[round].moves {
		m := &s.plan.rounds[round].moves[i]
		if m.kind == transport.Send {
			continue
		}
		if pieces := s.from[round][i].strips; len(pieces) > 0 {
			left := 0
			for k := range pieces {
				left += len(me.bytes(&pieces[k].dst))
			}
			for more := true; more; more = left > 0 {
				n := min(left, me.Segment)
				left -= n
				s.runner.Listener.Segment(m.peer, m.kind, n, 0)
			}
			continue
		}
		for n := 0; ; n++ {
			part, there := me.segmentOf(me.bytes(&m.buf), n)
			if !there {
				break
			}
			s.runner.Listener.Segment(m.peer, m.kind, len(part), 0)
		}
	}
}
