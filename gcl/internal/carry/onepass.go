package carry

import (
	"context"

	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// onePass carries out direct collectives on peer memory, in one pass over pieces: a piece of an all-reduce, say, is
// reduced from all inputs and stored to all outputs, whoever does it. Small messages go through Gather and Broadcast.
// It implements transport.Worker and transport.Combiner.
type onePass struct {
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
	operands  []operand
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

// operand is an operand cut into units of work, which lie in different places in the buffers. Where the parts of ranks
// are of different lengths, each part is one, of one unit.
type operand struct {
	tensor int // the number of the operand in the job
	work   kernel.Type
	unit   int // bytes of one unit: a buffer (all-reduce), a shard (reduce-scatter), a block (all-to-all)
	padded int // whole cache lines
	units  int
	end    int // of its units among those of all operands

	replaces bool // results take the place of inputs, which have just been read

	part        bool // the operand is a part
	rank, first int  // of a part: whose it is, and the byte of the larger buffer at which it begins
}

// begins is the byte of the larger buffer at which the part of a unit's owner begins.
func (o *operand) begins(unit int) int {
	if o.part {
		return o.first
	}
	return unit * o.unit
}

// shard is where a unit, a shard of an input of so many bytes, begins in the input, and how long it is.
func (o *operand) shard(input, unit int) (first, have int) {
	if o.part {
		return o.first, o.unit
	}
	return shard(input, o.unit, unit)
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
func (s *onePass) run(ctx context.Context, w *Caller, j *Job, r *route.Route, fingerprint *transport.Call) error {
	s.setUp(w, j, r, fingerprint)
	w.chosenOnePass(r)
	if r.Path == route.Small {
		return w.packer.small(ctx, w, j)
	}
	ins := j.Ins
	if w.Stages && j.Reads(s.rank) {
		ins = w.Carrier.stageInputs(ins)
	}
	s.begin(&w.packer.published, len(ins) != 1)
	if s.lists && s.contract.Combines {
		s.loops.Loops(w.foldOf(&j.Ask, 0))
	}
	for t := range j.DTypes {
		s.add(j, t, ins[t])
	}
	mine := transport.Memory{Ins: ins, Outs: j.Outs}
	if !s.lists {
		mine = transport.Memory{In: ins[0], Out: j.Outs[0]}
	}
	if err := s.share(ctx, mine); err != nil {
		return err
	}
	if len(j.parts) > 0 {
		return nil // nothing is padded
	}
	for t, out := range j.Outs {
		s.clearTail(out, j.elements[t]*j.DTypes[t].Size())
	}
	return nil
}

// setUp makes ready for one job.
func (s *onePass) setUp(w *Caller, j *Job, r *route.Route, fingerprint *transport.Call) {
	s.members, s.rank, s.call = w.Group.Members, w.Group.Rank, *fingerprint
	// long before s.call is copied: reading 16 bytes right after writing one of them stalls
	s.call.Method = uint8(r.Method)
	s.contract, s.root = j.Collective.Contract(), j.Root
	s.by, s.large, s.segment = 0, false, max(w.Segment, memory.LineBytes)
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
func (s *onePass) foldBy(f kernel.Fold) {
	if s.fold == nil || f != s.kind {
		s.kind, s.fold = f, f.Loop()
	}
}

// begin makes ready for the operands that add gives: one, or lists of them, which loops folds.
func (s *onePass) begin(loops *pack.Packing, lists bool) {
	s.operands, s.total, s.footprint = s.operands[:0], 0, 0
	s.lists, s.loops = lists, loops
}

// add adds operand t of a job, with the rank's own output and this input.
func (s *onePass) add(j *Job, t int, src []byte) {
	n, dst := len(s.members), j.Outs[t]
	o := operand{tensor: t, work: kernel.Type(j.DTypes[t]), unit: len(src), units: 1,
		replaces: memory.Overlap(dst, src)}
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
	if len(j.parts) == 0 {
		s.put(o)
		return
	}
	for rank := range n {
		lo, hi := j.parts[t].Own(rank)
		size := j.DTypes[t].Size()
		o.part, o.rank, o.first, o.unit, o.units = true, rank, lo*size, (hi-lo)*size, 1
		s.put(o)
	}
}

// put puts the units of an operand behind those of the operands before.
func (s *onePass) put(o operand) {
	o.padded = memory.RoundUp(o.unit, memory.LineBytes)
	s.total += o.units * o.padded
	o.end = s.total
	s.operands = append(s.operands, o)
}

// share carries out the collective on the operands.
func (s *onePass) share(ctx context.Context, mine transport.Memory) error {
	n := len(s.members)
	size := min(max(s.total/(piecesPerRank*n), minPieceBytes), MaxPieceBytes, s.segment)
	pieces := (s.total + size - 1) / size
	s.pieces[0] = max(pieces, min(memory.RoundUp(pieces, n), s.total/leastPieceBytes)) // as many for each rank
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
func (s *onePass) clearTail(dst []byte, input int) {
	if s.contract.Output == schedule.Own {
		_, have := shard(input, len(dst), s.rank)
		clear(dst[have:])
	}
}
