package gcl

import (
	"context"
	"errors"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// steps is what a plan needs in addition to be carried out on peer memory: where, at its sender, each message lies,
// and which rounds have steps after the moves on any rank.
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

// stepped carries out any method's schedule on peer memory: in each round every replica takes what it is to receive
// from where it lies at the sender, and a barrier ends the moves.
type stepped struct {
	*steps
	lane    *lane
	members []int
	rank    int
	all     [][]run // by run and rank: where each rank's buffers are
	runs    [][]run // those of the call in progress

	ins, outs         [][]byte // of the runs
	dst, srcs, pieces [][]byte // of one fold
}

// cut implements executor.
func (s *stepped) cut() int { return s.plans[s.rank].cut() }

// own implements executor.
func (s *stepped) own() (lo, hi int) { return s.plans[s.rank].own() }

// execute implements executor on peer memory.
func (s *stepped) execute(ctx context.Context, runs []run) error {
	s.lane.giveScratch(s.plans[s.rank], runs)
	s.ins, s.outs = s.ins[:0], s.outs[:0]
	for i := range runs {
		s.ins, s.outs = append(s.ins, runs[i].input), append(s.outs, runs[i].output)
	}
	mems, err := s.lane.memory.Meet(ctx, runs[0].call, s.members, transport.Memory{Ins: s.ins, Outs: s.outs, Scratch: s.lane.scratch})
	if err == nil {
		err = s.inside(ctx, runs, mems)
	}
	for _, ranks := range s.runs {
		clear(ranks) // hold on to nobody's buffers
	}
	s.runs = nil
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
	err := s.rounds(ctx)
	done = true
	if parted := s.lane.memory.Part(ctx); err == nil {
		err = parted
	}
	return err
}

// errInside is why replicas are aborted whose memory a panicking one was in.
var errInside = errors.New("a panic in a collective")

// look finds the buffers of all ranks.
func (s *stepped) look(runs []run, mems []transport.Memory) {
	for len(s.all) < len(runs) {
		s.all = append(s.all, make([]run, len(mems)))
	}
	s.runs = s.all[:len(runs)]
	for rank, m := range mems {
		at := 0 // in the rank's scratch memory, as giveScratch has it
		for i := range runs {
			r := run{elements: runs[i].elements, elemSize: runs[i].elemSize, parts: runs[i].parts, packed: runs[i].packed, segment: runs[i].segment, input: m.Ins[i], output: m.Outs[i]}
			bytes := s.plans[rank].setUp(i, &r)
			r.scratch = m.Scratch[at : at+bytes]
			at += roundUp(bytes, packAlign)
			if rank == s.rank {
				r.fold, r.many = runs[i].fold, runs[i].many
			}
			s.runs[i][rank] = r
		}
	}
}

func (s *stepped) rounds(ctx context.Context) error {
	own := s.plans[s.rank]
	for t, then := range s.then {
		s.lane.startRound(t)
		if t < len(own.rounds) {
			for _, runs := range s.runs {
				s.segments(t, &runs[s.rank])
			}
			for _, runs := range s.runs {
				s.moves(t, runs)
			}
		}
		last := t == len(s.then)-1
		if then || !last {
			if err := s.lane.memory.Sync(ctx); err != nil {
				return err
			}
		}
		if t < len(own.rounds) {
			for _, runs := range s.runs {
				for i := range own.rounds[t].then {
					runs[s.rank].local(&own.rounds[t].then[i])
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

// moves carries out the receives of a round in one run, given where that is at each rank. A fold of several is one loop
// over all their operands.
func (s *stepped) moves(t int, runs []run) {
	moves, me := s.plans[s.rank].rounds[t].moves, &runs[s.rank]
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
			srcs = append(srcs, runs[s.place(moves[i].peer)].bytes(s.from[t][i]))
		}
		s.srcs = srcs
		s.combine(me, dst, srcs, me.place.bounds[m.buf.First])
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
