// Package onepass carries out collectives without a schedule: on peer memory in one pass over pieces, and those of few
// bytes by what everyone publishes on boards.
//
// It knows no schedule, no route and no rounds.
package onepass

import (
	"context"
	"slices"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/opened"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Pass carries out direct collectives on peer memory, in one pass over pieces: a piece of an all-reduce, say, is
// reduced from all inputs and stored to all outputs, whoever does it. Small messages go through Gather and Broadcast.
// It implements transport.Worker and transport.Combiner.
type Pass struct {
	memory  transport.PeerMemory
	boards  transport.Boards
	members []int
	rank    int
	call    transport.Call
	kind    kernel.Fold // that fold is the loop of
	fold    func(dsts, srcs [][]byte, by int, stream bool)
	by      int  // the divisor, where the operator divides
	segment int  // bytes: no piece is longer, but for being whole cache lines
	wide    bool // 16-bit floats are added in float32
	lengths opened.Lengths

	// Of the collective in progress.
	contract  schedule.Contract
	root      int
	operands  []operand
	parts     []pack.Parts  // by tensor; none: all ranks have equal parts
	lists     bool          // there are several operands, with several types: peers lay open lists of buffers
	tensors   int           // in each list
	compared  int           // the tensor of which the rank has compared all members' buffers last; -1: none
	loops     *pack.Packing // lists: the loops of their types
	total     int           // bytes of all operands' units, rounded up
	pieces    [1]int        // that these are cut into
	footprint int           // bytes of a rank's inputs and outputs
	cache     int           // of the last level
	large     bool          // the buffers outgrow it, and outputs may be stored past the caches
	stream    bool          // those of the piece at hand are
	worked    bool          // the rank has carried out a piece

	dsts, srcs [][]byte // of one piece
	swap       []byte   // memory of a piece

	// Of several operands that are published in one packing:
	staging   *pack.Staging
	layouts   pack.Layouts
	extents   []pack.Extent
	published pack.Packing
}

// operand is an operand cut into units of work, which lie in different places in the buffers. Where the parts of ranks
// are of different lengths, each part is one, of one unit.
type operand struct {
	tensor int // the number of the operand in the job
	work   kernel.Type
	whole  int // bytes of a buffer with the parts of all ranks
	own    int // bytes of a buffer with a rank's part, where all are equally long
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

// minPieceBytes is the least number of bytes of each buffer in a piece. Where there is little, pieces are smaller, so
// that there is work for everyone. The most is memory.MaxPieceBytes.
const minPieceBytes = 4 << 10

// leastPieceBytes is what a piece has even if there are fewer than ranks then. A call of 16 KiB by 1,024 replicas on
// four processors (go test -bench Scale ./bench) took twice as long in 1,024 pieces of a cache line.
const leastPieceBytes = 512

// piecesPerRank is how many pieces there are for each rank before they get longer than minPieceBytes: with fewer, the
// last one is waited for.
const piecesPerRank = 2

// New makes what the calls on an endpoint go by. staging is for inputs and outputs in another form.
func New(endpoint transport.Endpoint, staging *pack.Staging) Pass {
	s := Pass{staging: staging, lengths: opened.On(endpoint)}
	s.memory, _ = endpoint.(transport.PeerMemory)
	s.boards, _ = endpoint.(transport.Boards)
	return s
}

// Setting is what decides, beside a job, how a rank carries it out. It is alike on all ranks but for Rank.
type Setting struct {
	Members []int // replica ids by rank
	Rank    int
	Segment int  // bytes: no piece is longer, but for being whole cache lines
	Cache   int  // bytes of the last level
	Wide    bool // 16-bit floats are added in float32
}

// SetUp makes ready for one job. The fingerprint goes by its address: its bytes have just been written one by one, and
// to copy them in words stalls.
func (s *Pass) SetUp(in *Setting, j *job.Job, method methods.Method, fingerprint *transport.Call) {
	s.members, s.rank, s.call, s.wide = in.Members, in.Rank, *fingerprint, in.Wide
	// long before s.call is copied: reading 16 bytes right after writing one of them stalls
	s.call.Method = uint8(method)
	s.contract, s.root = j.Collective.Contract(), j.Root
	s.by, s.large, s.segment = 0, false, max(in.Segment, memory.LineBytes)
	s.cache = in.Cache
	n := len(s.members)
	if s.contract.Combines {
		if len(j.DTypes) == 1 {
			s.foldBy(j.Reduction.On(kernel.Type(j.DTypes[0]), s.wide))
		}
		if j.Reduction.Divide {
			s.by = n
		}
	}
	for len(s.dsts) < n {
		s.dsts, s.srcs = append(s.dsts, nil), append(s.srcs, nil)
	}
}

// Run carries out a job over peer memory, from these inputs.
func (s *Pass) Run(ctx context.Context, j *job.Job, ins [][]byte) error {
	s.begin(&s.published, len(ins) != 1)
	s.parts, s.tensors, s.compared = j.Parts, len(ins), -1
	if s.lists && s.contract.Combines {
		s.loops.Loops(j.Reduction.On(0, s.wide))
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
	if len(j.Parts) > 0 {
		return nil // nothing is padded
	}
	for t, out := range j.Outs {
		s.clearTail(out, j.Elements[t]*j.DTypes[t].Size())
	}
	return nil
}

// foldBy says how to fold from now on.
func (s *Pass) foldBy(f kernel.Fold) {
	if s.fold == nil || f != s.kind {
		s.kind, s.fold = f, f.Loop()
	}
}

// begin makes ready for the operands that add gives: one, or lists of them, which loops folds.
func (s *Pass) begin(loops *pack.Packing, lists bool) {
	s.operands, s.total, s.footprint = s.operands[:0], 0, 0
	s.lists, s.loops = lists, loops
}

// add adds operand t of a job, with the rank's own output and this input.
func (s *Pass) add(j *job.Job, t int, src []byte) {
	n, dst, size := len(s.members), j.Outs[t], j.DTypes[t].Size()
	o := operand{tensor: t, work: kernel.Type(j.DTypes[t]), unit: len(src), units: 1,
		whole: j.Elements[t] * size, replaces: memory.Overlap(dst, src)}
	bytes := len(dst) + len(src)
	if o.replaces {
		bytes = max(len(dst), len(src))
	}
	switch {
	case s.contract.Input == schedule.Own:
		o.own, o.units, o.replaces = len(src), n, false // but for the rank's own part, which stays where it is
	case s.contract.Output == schedule.Own:
		o.own, o.unit, o.units = len(dst), len(dst), n
	case s.contract.Input == schedule.Blocks:
		o.unit, o.units = len(src)/n, n*n
	case s.contract.Input == schedule.AtRoot:
		bytes, o.replaces = len(dst), false // likewise the root's
	}
	s.footprint += bytes
	if len(j.Parts) == 0 {
		s.put(o)
		return
	}
	for rank := range n {
		lo, hi := j.Parts[t].Own(rank)
		o.part, o.rank, o.first, o.unit, o.units = true, rank, lo*size, (hi-lo)*size, 1
		s.put(o)
	}
}

// put puts the units of an operand behind those of the operands before.
func (s *Pass) put(o operand) {
	o.padded = memory.RoundUp(o.unit, memory.LineBytes)
	s.total += o.units * o.padded
	o.end = s.total
	s.operands = append(s.operands, o)
}

// share carries out the collective on the operands.
func (s *Pass) share(ctx context.Context, mine transport.Memory) error {
	n := len(s.members)
	size := min(max(s.total/(piecesPerRank*n), minPieceBytes), memory.MaxPieceBytes, s.segment)
	pieces := (s.total + size - 1) / size
	s.pieces[0] = max(pieces, min(memory.RoundUp(pieces, n), s.total/leastPieceBytes)) // as many for each rank
	// docs/design/peer-memory.md, "Past the caches"
	s.large = s.footprint >= s.cache/4*3/n
	err := s.lengths.Ended(s.memory.Share(ctx, s.call, s.members, mine, s.pieces[:], s))
	if s.worked { // hold on to nobody's buffers
		s.worked = false
		clear(s.dsts)
		clear(s.srcs)
	}
	return err
}

// clearTail puts zeros where the rank's shard lies past the end of the input, which has input bytes. It follows a call
// that has succeeded: after a mismatch nothing is written.
func (s *Pass) clearTail(dst []byte, input int) {
	if s.contract.Output == schedule.Own {
		_, have := shard(input, len(dst), s.rank)
		clear(dst[have:])
	}
}

// Latest says of the latest call over peer memory in how many pieces it went, and whether results were stored past the
// caches. It is for tests.
func (s *Pass) Latest() (pieces int, streamed bool) {
	return s.pieces[0], s.large && slices.ContainsFunc(s.operands, func(o operand) bool { return !o.replaces })
}
