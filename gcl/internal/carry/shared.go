package carry

import (
	"context"
	"sort"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/lane"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// shared carries out direct collectives on peer memory, in one pass over pieces: a piece of an all-reduce, say, is
// reduced from all inputs and stored to all outputs, whoever does it. Small messages go through Gather and Broadcast.
// It implements transport.Worker and transport.Combiner.
type shared struct {
	memory  transport.PeerMemory
	boards  transport.Boards
	members []int
	rank    int
	call    transport.Call
	kind    kernel.Fold // that fold is the loop of
	fold    func(dsts, srcs [][]byte, by int, stream bool)
	by      int // the divisor, where the operator divides
	segment int // bytes: no piece is longer, but for being whole cache lines

	// Of the collective in progress.
	contract  schedule.Contract
	root      int
	tiles     []tiled
	lists     bool          // there are several operands, with several types: peers lay open lists of buffers
	loops     *pack.Packing // lists: the loops of their types
	total     int           // bytes of all operands' units, rounded up
	pieces    [1]int        // that these are cut into
	footprint int           // bytes of a rank's inputs and outputs
	cache     int           // of the last level
	large     bool          // the buffers outgrow it, and outputs may be stored past the caches
	stream    bool          // those of the piece at hand are
	worked    bool          // the rank has carried out a piece

	dsts, srcs [][]byte // of one piece
	swap       []byte   // room for a piece
}

// tiled is an operand cut into units of work, which lie in different places in the buffers.
type tiled struct {
	work   kernel.Type
	unit   int // bytes of one unit: a buffer (all-reduce), a shard (reduce-scatter), a block (all-to-all)
	padded int // whole cache lines
	units  int
	end    int // of its units among those of all operands

	replaces bool // results take the place of inputs, which have just been read
}

// The bytes of each buffer in a piece. What all the buffers of a piece need stays in the second-level cache, and an
// abort is noticed within some ten microseconds. Less where there is little, so that there is work for everyone.
const (
	MaxPieceBytes = 32 << 10
	minPieceBytes = 4 << 10
)

// leastPieceBytes is what a piece has even if there are fewer than ranks then. A call of 16 KiB by 1,024 replicas on
// four processors (go test -bench Scale ./bench) took twice as long in 1,024 pieces of a cache line.
const leastPieceBytes = 512

// piecesPerRank is how many pieces there are for each rank before they get longer than minPieceBytes: with fewer, the
// last one is waited for.
const piecesPerRank = 2

// run carries out a job in one pass, or if it is small by what everyone publishes.
func (s *shared) run(ctx context.Context, w *Way, j *Job, r *route.Route, fingerprint *transport.Call) error {
	s.setUp(w, j, r, fingerprint)
	w.chosenOnePass(r)
	if r.Path == route.Small {
		if len(j.Ins) == 1 {
			return s.small(ctx, w, j)
		}
		return w.packed.small(ctx, w, j)
	}
	ins := j.Ins
	if w.Stages && j.Reads(s.rank) {
		ins = w.Carrier.stageInputs(ins)
	}
	s.begin(&w.packed.published, len(ins) != 1)
	if s.lists && s.contract.Combines {
		s.loops.Loops(w.foldOf(&j.Ask, 0))
	}
	for t, dtype := range j.DTypes {
		s.add(kernel.Type(dtype), j.Outs[t], ins[t])
	}
	mine := transport.Memory{Ins: ins, Outs: j.Outs}
	if !s.lists {
		mine = transport.Memory{In: ins[0], Out: j.Outs[0]}
	}
	if err := s.share(ctx, mine); err != nil {
		return err
	}
	for t, out := range j.Outs {
		s.clearTail(out, j.elements[t]*j.DTypes[t].Size())
	}
	return nil
}

// setUp makes ready for one job.
func (s *shared) setUp(w *Way, j *Job, r *route.Route, fingerprint *transport.Call) {
	s.members, s.rank, s.call = w.Group.Members, w.Group.Rank, *fingerprint
	// long before s.call is copied: reading 16 bytes right after writing one of them stalls
	s.call.Method = uint8(r.Method)
	s.contract, s.root = j.Collective.Contract(), j.Root
	s.by, s.large, s.segment = 0, false, max(w.Tile, lane.LineBytes)
	s.cache = w.Cache
	if s.contract.Combines {
		if len(j.DTypes) == 1 {
			s.foldBy(w.foldOf(&j.Ask, kernel.Type(j.DTypes[0])))
		}
		if j.Reduction.Divide {
			s.by = w.Size()
		}
	}
	for len(s.dsts) < w.Size() {
		s.dsts, s.srcs = append(s.dsts, nil), append(s.srcs, nil)
	}
}

// foldBy says how to fold from now on.
func (s *shared) foldBy(f kernel.Fold) {
	if s.fold == nil || f != s.kind {
		s.kind, s.fold = f, f.Loop()
	}
}

// begin makes ready for the operands that add gives: one, or lists of them, which loops folds.
func (s *shared) begin(loops *pack.Packing, lists bool) {
	s.tiles, s.total, s.footprint = s.tiles[:0], 0, 0
	s.lists, s.loops = lists, loops
}

// add adds an operand with the rank's own output and input.
func (s *shared) add(work kernel.Type, dst, src []byte) {
	n := len(s.members)
	o := tiled{work: work, unit: len(src), units: 1, replaces: lane.Overlap(dst, src)}
	bytes := len(dst) + len(src)
	if o.replaces {
		bytes = max(len(dst), len(src))
	}
	switch {
	case s.contract.Input == schedule.Own:
		o.units, o.replaces = n, false // but for the rank's own part, which stays where it is
	case s.contract.Output == schedule.Own:
		o.unit, o.units = len(dst), n
	case s.contract.Input == schedule.Blocks:
		o.unit, o.units = len(src)/n, n*n
	case s.contract.Input == schedule.AtRoot:
		bytes, o.replaces = len(dst), false // likewise the root's
	}
	s.footprint += bytes
	o.padded = lane.RoundUp(o.unit, lane.LineBytes)
	s.total += o.units * o.padded
	o.end = s.total
	s.tiles = append(s.tiles, o)
}

// share carries out the collective on the operands.
func (s *shared) share(ctx context.Context, mine transport.Memory) error {
	n := len(s.members)
	size := min(max(s.total/(piecesPerRank*n), minPieceBytes), MaxPieceBytes, s.segment)
	pieces := (s.total + size - 1) / size
	s.pieces[0] = max(pieces, min(lane.RoundUp(pieces, n), s.total/leastPieceBytes)) // as many for each rank
	// docs/peer-memory.md, "Past the caches"
	s.large = s.footprint >= s.cache/4*3/n
	err := s.memory.Share(ctx, s.call, s.members, mine, s.pieces[:], s)
	if s.worked { // hold on to nobody's buffers
		s.worked = false
		clear(s.dsts)
		clear(s.srcs)
	}
	return err
}

// clearTail puts zeros where the rank's shard lies past the end of the input, which has input bytes. It follows a call
// that has succeeded: after a mismatch nothing is written.
func (s *shared) clearTail(dst []byte, input int) {
	if s.contract.Output == schedule.Own {
		_, have := shard(input, len(dst), s.rank)
		clear(dst[have:])
	}
}

// shard is where the shard of a rank begins among the bytes of an input, and how many bytes of it there are.
func shard(input, size, rank int) (first, have int) {
	first = min(rank*size, input)
	return first, min(size, input-first)
}

// Piece implements transport.Worker.
func (s *shared) Piece(mems []transport.Memory, _, i int) {
	s.worked = true
	lo, hi := chunks.Split(s.total/lane.LineBytes, s.pieces[0], i)
	lo, hi = lo*lane.LineBytes, hi*lane.LineBytes
	for t := s.tiledAt(lo); lo < hi; t++ {
		o := &s.tiles[t]
		for first := o.end - o.units*o.padded; lo < min(hi, o.end); {
			unit := (lo - first) / o.padded
			begin := first + unit*o.padded
			end := min(begin+o.padded, hi)
			if a, b := lo-begin, min(end-begin, o.unit); a < b {
				s.work(mems, t, unit, a, b)
			}
			lo = end
		}
	}
}

// tiledAt is the first operand that ends after a byte.
func (s *shared) tiledAt(at int) int {
	return sort.Search(len(s.tiles), func(t int) bool { return s.tiles[t].end > at })
}

// buffers are what a rank lays open of operand t.
func (s *shared) buffers(m *transport.Memory, t int) (in, out []byte) {
	if s.lists {
		return m.Ins[t], m.Outs[t]
	}
	return m.In, m.Out
}

// work works on bytes lo to hi of a unit of operand t.
func (s *shared) work(mems []transport.Memory, t, unit, lo, hi int) {
	s.stream = s.large && !s.tiles[t].replaces
	switch {
	case s.contract.Combines:
		s.reduceUnit(mems, t, unit, lo, hi)
	case s.contract.Input == schedule.Blocks:
		s.exchange(mems, t, unit/len(mems), unit%len(mems), lo, hi)
	default:
		s.spreadUnit(mems, t, unit, lo, hi)
	}
}

// reduceUnit reduces bytes lo to hi of a unit from all inputs: the whole of them to all outputs or to the root's, or
// the shard of the rank whose unit it is to that rank's.
func (s *shared) reduceUnit(mems []transport.Memory, t, unit, lo, hi int) {
	first, dsts := 0, 0
	switch s.contract.Output {
	case schedule.Whole:
		for r := range mems {
			_, out := s.buffers(&mems[r], t)
			s.dsts[r] = out[lo:hi]
		}
		dsts = len(mems)
	case schedule.AtRoot:
		_, out := s.buffers(&mems[s.root], t)
		s.dsts[0], dsts = out[lo:hi], 1
	default:
		in, _ := s.buffers(&mems[s.rank], t)
		var have int
		first, have = shard(len(in), s.tiles[t].unit, unit)
		if hi = min(hi, have); lo >= hi {
			return
		}
		_, out := s.buffers(&mems[unit], t)
		s.dsts[0], dsts = out[lo:hi], 1
	}
	for r := range mems {
		in, _ := s.buffers(&mems[r], t)
		s.srcs[r] = in[first+lo : first+hi]
	}
	s.reduce(s.tiles[t].work, dsts)
}

// spreadUnit copies bytes lo to hi of a unit from the one rank that has it, its owner or the root, to those that want
// it: all ranks, its owner or the root.
func (s *shared) spreadUnit(mems []transport.Memory, t, unit, lo, hi int) {
	own := unit * s.tiles[t].unit // where the part of the unit's owner begins in a larger buffer
	from, at := s.root, own
	if s.contract.Input == schedule.Own {
		from, at = unit, 0
	}
	in, _ := s.buffers(&mems[from], t)
	switch s.contract.Output {
	case schedule.Own:
		_, out := s.buffers(&mems[unit], t)
		s.transfer(out[lo:hi], in[at+lo:at+hi])
		return
	case schedule.AtRoot:
		_, out := s.buffers(&mems[s.root], t)
		s.transfer(out[own+lo:own+hi], in[at+lo:at+hi])
		return
	}
	_, out := s.buffers(&mems[s.rank], t)
	hi = min(hi, len(out)-own) // the last ones may hold padding
	if lo >= hi {
		return
	}
	for r := range mems {
		_, out := s.buffers(&mems[r], t)
		s.transfer(out[own+lo:own+hi], in[at+lo:at+hi])
	}
}

// reduce folds all srcs into each of the first dsts buffers of s.dsts.
func (s *shared) reduce(work kernel.Type, dsts int) {
	fold := s.fold
	if s.lists {
		fold = s.loops.Many[work]
	}
	n := len(s.members)
	fold(s.dsts[:dsts], s.srcs[:n], s.by, s.stream)
}

// transfer copies, unless the data is there already.
func (s *shared) transfer(dst, src []byte) {
	if lane.Address(dst) != lane.Address(src) {
		kernel.Copy(dst, src, s.stream)
	}
}

// exchange carries out bytes lo to hi of what rank a gets from rank b in an all-to-all. Where one of the two is in
// place, what is read on one side would be written on the other: then it swaps the two blocks, but only as far as they
// are in the first half if a < b, else in the second, and reads both before it writes either.
func (s *shared) exchange(mems []transport.Memory, t, a, b, lo, hi int) {
	size := s.tiles[t].unit
	block := func(buf []byte, r int) []byte { return buf[r*size+lo : r*size+hi] }
	inA, outA := s.buffers(&mems[a], t)
	inB, outB := s.buffers(&mems[b], t)
	if a == b || lane.Address(inA) != lane.Address(outA) && lane.Address(inB) != lane.Address(outB) {
		s.transfer(block(outA, b), block(inB, a))
		return
	}
	if middle := size / 2 / lane.LineBytes * lane.LineBytes; a < b {
		hi = min(hi, middle)
	} else {
		lo = max(lo, middle)
	}
	if lo >= hi {
		return
	}
	if len(s.swap) < MaxPieceBytes {
		s.swap = make([]byte, MaxPieceBytes)
	}
	kept := s.swap[:hi-lo]
	copy(kept, block(inA, b))
	s.transfer(block(outA, b), block(inB, a))
	s.transfer(block(outB, a), kept)
}
