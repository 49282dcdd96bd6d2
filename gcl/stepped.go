package gcl

import (
	"context"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// steps is what a plan needs in addition to be carried out on peer memory: where, at its sender, each message lies, and which rounds have steps after the
// moves on any rank.
type steps struct {
	plans []*plan           // by rank
	from  [][]schedule.Span // by round and move: the sender's span of a receive
	then  []bool            // by round
}

// newSteps makes the plans of all ranks, and matches the receives of one with the sends of the others.
func newSteps(spec methods.Spec, rank int, members []int) (*steps, error) {
	s := &steps{}
	rounds := 0
	for r := range members {
		p, err := newPlan(spec, r, members)
		if err != nil {
			return nil, err
		}
		s.plans = append(s.plans, p)
		rounds = max(rounds, len(p.rounds))
	}
	replica := members[rank]
	rankOf := map[int]int{}
	for r, m := range members {
		rankOf[m] = r
	}
	own := s.plans[rank]
	for t := range rounds {
		then := false
		for _, p := range s.plans {
			then = then || t < len(p.rounds) && len(p.rounds[t].then) > 0
		}
		s.then = append(s.then, then)
		if t >= len(own.rounds) {
			continue
		}
		from := make([]schedule.Span, len(own.rounds[t].moves))
		for i, m := range own.rounds[t].moves {
			if m.kind == transport.Send {
				continue
			}
			for _, sent := range s.plans[rankOf[m.peer]].rounds[t].moves {
				if sent.kind == transport.Send && sent.peer == replica && sent.tag == m.tag {
					from[i] = sent.buf
				}
			}
		}
		s.from = append(s.from, from)
	}
	for r, p := range s.plans {
		if r != rank {
			p.rounds = nil // what is left says where chunks and slots lie
		}
	}
	return s, nil
}

// stepped carries out any method's schedule on peer memory: in each round every replica takes what it is to receive from where it lies at the sender, and a barrier
// ends the moves.
type stepped struct {
	*steps
	lane    *lane
	members []int
	rank    int
	runs    []run // by rank: where each rank's buffers are

	dst, srcs, pieces [][]byte // of one fold
}

// own implements executor.
func (s *stepped) own() (lo, hi int) { return s.plans[s.rank].own() }

// execute implements executor on peer memory.
func (s *stepped) execute(ctx context.Context, r run, n int) error {
	l := s.lane
	for rank, p := range s.plans {
		p.fit(n)
		s.runs[rank].plan, s.runs[rank].elemSize = p, r.elemSize
		s.runs[rank].inBase, s.runs[rank].outBase = p.bases()
	}
	if own := s.plans[s.rank]; own.scratchElems > 0 {
		l.scratch = grow(l.scratch, own.scratchElems*r.elemSize)
		r.scratch = l.scratch
	}
	mems, err := s.lane.memory.Meet(ctx, r.call, s.members, transport.Memory{In: r.input, Out: r.output, Scratch: r.scratch})
	if err != nil {
		return err
	}
	for rank := range mems {
		s.runs[rank].input, s.runs[rank].output, s.runs[rank].scratch = mems[rank].In, mems[rank].Out, mems[rank].Scratch
	}
	s.runs[s.rank].fold, s.runs[s.rank].many = r.fold, r.many
	if s.lane.tracing.trace != nil {
		s.lane.tracing.met = true
		defer s.lane.partAfterCrash(ctx)
	}
	err = s.rounds(ctx, r.call)
	s.lane.tracing.met = false
	if parted := s.lane.memory.Part(ctx); err == nil {
		err = parted
	}
	clear(s.runs) // hold on to nobody's buffers
	clear(s.dst)
	clear(s.srcs[:cap(s.srcs)])
	clear(s.pieces)
	return err
}

func (s *stepped) rounds(ctx context.Context, call transport.Call) error {
	own := s.plans[s.rank]
	for t, then := range s.then {
		s.lane.startRound(t)
		if t < len(own.rounds) {
			s.segments(t)
			s.moves(t)
		}
		last := t == len(s.then)-1
		if then || !last {
			if err := s.lane.memory.Sync(ctx); err != nil {
				return err
			}
		}
		if t < len(own.rounds) {
			for i := range own.rounds[t].then {
				s.runs[s.rank].local(&own.rounds[t].then[i])
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

// moves carries out the receives of a round. A fold of several is one loop over all their operands.
func (s *stepped) moves(t int) {
	moves, me := s.plans[s.rank].rounds[t].moves, &s.runs[s.rank]
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
			srcs = append(srcs, s.runs[s.place(moves[i].peer)].bytes(s.from[t][i]))
		}
		s.srcs = srcs
		s.combine(dst, srcs)
	}
}

// place is the rank of a replica.
func (s *stepped) place(replica int) int {
	for rank, m := range s.members {
		if m == replica {
			return rank
		}
	}
	return -1
}

// combine folds srcs into dst, in pieces. One source is copied.
func (s *stepped) combine(dst []byte, srcs [][]byte) {
	for at := 0; at < len(dst); at += maxPieceBytes {
		if s.lane.memory.Err() != nil {
			return
		}
		end := min(at+maxPieceBytes, len(dst))
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
		s.runs[s.rank].many(s.dst, s.pieces[:len(srcs)], 0, false)
	}
}
