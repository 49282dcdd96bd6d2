package gcl

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// stepped carries out any method's schedule on peer memory: in each round every replica takes what it is to receive
// from where it lies at the sender, and a barrier ends the moves.
type stepped struct {
	lane    *lane
	members []int
	plan    *plan      // the rank's own
	then    []bool     // by round: some rank has steps after the moves
	from    [][]origin // by round and move: where a receive finds its message
	senders []sender

	ins, outs         [][]byte // of the runs
	dst, srcs, pieces [][]byte // of one fold
}

// origin is where a message lies.
type origin struct {
	sender int // index into stepped.senders
	span   schedule.Span
}

// sender is a rank that the replica takes messages from.
type sender struct {
	rank int
	plan *plan // says where chunks and slots lie; has no rounds
	runs []run // of the call in progress
}

// newStepped finds for each receive of a rank what its sender sends.
func newStepped(l *lane, set *planSet, rank int) (*stepped, error) {
	made, err := set.rank(rank)
	if err != nil {
		return nil, err
	}
	own := *made.plan // with placements of its own
	s := &stepped{lane: l, members: set.members, plan: &own, from: make([][]origin, len(own.rounds))}
	if s.then, err = set.afterMoves(); err != nil {
		return nil, err
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
			if _, ok := known[from]; !ok {
				known[from] = len(s.senders)
				layout := *theirs.plan
				layout.rounds = nil
				s.senders = append(s.senders, sender{rank: from, plan: &layout})
			}
			sent := theirs.sent(t, replica, m.tag)
			if sent == nil {
				return nil, fmt.Errorf("%v: rank %d receives message %d of rank %d in round %d, which does not send it", set.spec.Method, rank, m.tag, from, t)
			}
			s.from[t][i] = origin{known[from], sent.buf}
		}
	}
	return s, nil
}

// cut implements executor.
func (s *stepped) cut() int { return s.plan.cut() }

// apart implements executor.
func (s *stepped) apart() bool { return s.plan.apart() }

// length implements executor.
func (s *stepped) length() int { return len(s.then) }

// execute implements executor on peer memory.
func (s *stepped) execute(ctx context.Context, runs []run) error {
	s.lane.giveScratch(s.plan, runs)
	s.ins, s.outs = s.ins[:0], s.outs[:0]
	for i := range runs {
		s.ins, s.outs = append(s.ins, runs[i].input), append(s.outs, runs[i].output)
	}
	mems, err := s.lane.memory.Meet(ctx, runs[0].call, s.members, transport.Memory{Ins: s.ins, Outs: s.outs, Scratch: s.lane.scratch})
	if err == nil {
		err = s.inside(ctx, runs, mems)
	}
	for i := range s.senders {
		clear(s.senders[i].runs) // hold on to nobody's buffers
	}
	clear(s.ins)
	clear(s.outs)
	clear(s.dst)
	clear(s.srcs[:cap(s.srcs)])
	clear(s.pieces)
	return err
}

// inside carries out the rounds and parts, also if something panics, such as a function of a Trace: the others must not
// wait for ever.
func (s *stepped) inside(ctx context.Context, runs []run, mems []transport.Memory) error {
	done := false
	defer func() {
		if !done {
			cause := errInside
			if s.lane.tracing.trace != nil {
				cause = errTraceCrash
			}
			s.lane.endpoint.Abort(cause)
			s.lane.memory.Part(ctx) // says that it is aborted
		}
	}()
	s.look(runs, mems)
	err := s.rounds(ctx, runs)
	done = true
	if parted := s.lane.memory.Part(ctx); err == nil {
		err = parted
	}
	return err
}

// errInside is why replicas are aborted whose memory a panicking one was in.
var errInside = errors.New("a panic in a collective")

// look finds the buffers of the senders.
func (s *stepped) look(runs []run, mems []transport.Memory) {
	for k := range s.senders {
		from := &s.senders[k]
		m := &mems[from.rank]
		from.runs = from.runs[:0]
		at := 0 // in the rank's scratch memory, as giveScratch has it
		for i := range runs {
			own := &runs[i]
			r := run{elements: own.elements, elemSize: own.elemSize, parts: own.parts, packed: own.packed, segment: own.segment, input: m.Ins[i], output: m.Outs[i]}
			bytes := from.plan.putAt(from.plan.placeAs(i, own.place), &r)
			r.scratch = m.Scratch[at : at+bytes]
			at += roundUp(bytes, packAlign)
			from.runs = append(from.runs, r)
		}
	}
}

func (s *stepped) rounds(ctx context.Context, runs []run) error {
	for t, then := range s.then {
		s.lane.startRound(t)
		if t < len(s.plan.rounds) {
			for i := range runs {
				s.segments(t, &runs[i])
			}
			for i := range runs {
				s.moves(t, i, &runs[i])
			}
		}
		last := t == len(s.then)-1
		if then || !last {
			if err := s.lane.memory.Sync(ctx); err != nil {
				return err
			}
		}
		if t < len(s.plan.rounds) {
			steps := s.plan.rounds[t].then
			for i := range runs {
				for k := range steps {
					runs[i].local(&steps[k])
				}
			}
		}
		if then && !last {
			if err := s.lane.memory.Sync(ctx); err != nil {
				return err
			}
		}
	}
	s.lane.endRound()
	return nil
}

// moves carries out the receives of a round in run k. A fold of several is one loop over all their operands.
func (s *stepped) moves(t, k int, me *run) {
	moves := s.plan.rounds[t].moves
	for i := 0; i < len(moves); {
		m := &moves[i]
		if m.kind == transport.Send {
			i++
			continue
		}
		dst := me.bytes(m.buf)
		srcs := s.srcs[:0] // in the order of the fold, but that the own operand of a first link may stand before or after: operators are commutative
		for first := i; i < len(moves) && (i == first || moves[i].next); i++ {
			if moves[i].with.Count > 0 {
				srcs = append(srcs, me.bytes(moves[i].with))
			}
			from := &s.from[t][i]
			srcs = append(srcs, s.senders[from.sender].runs[k].bytes(from.span))
		}
		s.srcs = srcs
		s.combine(me, dst, srcs, me.place.bounds[m.buf.First])
	}
}

// combine folds srcs into dst, in pieces. One source is copied. Of several tensors that are packed, dst lies at byte
// first of the packing.
func (s *stepped) combine(me *run, dst []byte, srcs [][]byte, first int) {
	size := min(maxPieceBytes, me.segment)
	for at := 0; at < len(dst); at += size {
		if s.lane.memory.Err() != nil {
			return
		}
		end := min(at+size, len(dst))
		if len(srcs) == 1 {
			copy(dst[at:end], srcs[0][at:end])
			continue
		}
		for len(s.pieces) < len(srcs) {
			s.pieces = append(s.pieces, nil)
		}
		for r := range srcs {
			s.pieces[r] = srcs[r][at:end]
		}
		s.dst = append(s.dst[:0], dst[at:end])
		if me.packed != nil {
			me.packed.foldMany(first+at, s.dst, s.pieces[:len(srcs)])
			continue
		}
		me.many(s.dst, s.pieces[:len(srcs)], 0, false)
	}
}
