package gcl

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// shared carries out direct collectives on peer memory, in one pass over pieces: a piece of an all-reduce, say, is
// reduced from all inputs and stored to all outputs, whoever does it. Small messages go through Gather and Broadcast.
// It implements transport.Worker and transport.Combiner.
type shared struct {
	memory   transport.PeerMemory
	members  []int
	rank     int
	call     transport.Call
	elemSize int
	kind     kernel.Fold // that fold is the loop of
	fold     func(dsts, srcs [][]byte, by int, stream bool)
	by       int // Mean: the divisor
	stream   bool

	// Of the collective in progress.
	collective schedule.Collective
	root       int
	unit       int // bytes that are cut into pieces: a whole buffer, or one rank's part of it
	each       int // pieces of a unit

	dsts, srcs [][]byte // of one piece
	swap       []byte   // room for a piece
}

// The bytes of each buffer in a piece. What all the buffers of a piece need stays in the second-level cache, and an abort
// is noticed within some ten microseconds. Less where there is little, so that there is work for everyone, but not so
// little that the taking costs more than a tenth of the doing.
const (
	maxPieceBytes = 32 << 10
	minPieceBytes = 4 << 10
)

// piecesPerRank is how many pieces there are for each rank before they get longer than minPieceBytes: with fewer, the
// last one is waited for.
const piecesPerRank = 2

// streamBytes is the size of all outputs together from which results are stored past the caches, unless they take the
// place of inputs, which have just been read into them (the root's is the only input of a broadcast). `go test -bench Many ./internal/kernel` shows a tie at 2 to
// 4 MiB and a gain of up to 2 from 16 MiB on.
const streamBytes = 16 << 20

// lineBytes is the granularity of pieces, so that no two replicas write one cache line of aligned buffers.
const lineBytes = 64

// setUp makes ready for one collective.
func (s *shared) setUp(c *Comm, k *call, fingerprint transport.Call) {
	s.members, s.rank, s.call, s.elemSize = c.group.members, c.group.rank, fingerprint, k.dtype.Size()
	s.collective, s.root = k.collective, k.root
	s.by = 0
	if reduces(k.collective) {
		if f := c.foldOf(k); s.fold == nil || f != s.kind {
			s.kind, s.fold = f, f.Loop()
		}
		if k.operator == Mean {
			s.by = c.Size()
		}
	}
	s.stream = len(k.dst)*c.Size() >= streamBytes && (!k.inPlace() || k.collective == schedule.Broadcast)
	for len(s.dsts) < c.Size() {
		s.dsts, s.srcs = append(s.dsts, nil), append(s.srcs, nil)
	}
}

// foldOf is how the inputs of a reduction are folded.
func (c *Comm) foldOf(k *call) kernel.Fold {
	return kernel.Fold{
		Op: kernelOps[k.operator], Type: kernel.Type(k.dtype),
		Square: k.operator == SquareAdd, Wide: c.options.Reproducible,
	}
}

// run carries out a collective.
func (s *shared) run(ctx context.Context, k *call) error {
	if published := len(k.src); published <= s.memory.SmallLimit() {
		return s.small(ctx, k, published)
	}
	pieces := s.cut(k)
	err := s.memory.Share(ctx, s.call, s.members, transport.Memory{In: k.src, Out: k.dst}, pieces, s)
	clear(s.dsts) // hold on to nobody's buffers
	clear(s.srcs)
	if s.collective == schedule.ReduceScatter {
		_, have := s.shard(len(k.src), len(k.dst), s.rank)
		clear(k.dst[have:])
	}
	return err
}

// cut decides on the pieces of a collective, and says how many there are.
func (s *shared) cut(k *call) int {
	n := len(s.members)
	s.unit = len(k.src)
	units := 1
	switch s.collective {
	case schedule.ReduceScatter:
		s.unit, units = len(k.dst), n
	case schedule.AllGather:
		units = n
	case schedule.AllToAll:
		s.unit, units = len(k.src)/n, n*n
	}
	size := min(max(units*s.unit/(piecesPerRank*n), minPieceBytes), maxPieceBytes)
	s.each = (s.unit + size - 1) / size
	if units == 1 {
		s.each = (s.each + n - 1) / n * n // as many for each rank
	}
	return units * s.each
}

// part is the range of piece i of a unit of so many bytes: whole cache lines.
func (s *shared) part(bytes, i int) (lo, hi int) {
	lo, hi = chunks.Split((bytes+lineBytes-1)/lineBytes, s.each, i)
	return min(lo*lineBytes, bytes), min(hi*lineBytes, bytes)
}

// shard is where the shard of a rank begins among the bytes of an input, and how many bytes of it there are.
func (s *shared) shard(input, size, rank int) (first, have int) {
	first = min(rank*size, input)
	return first, min(size, input-first)
}

// Piece implements transport.Worker.
func (s *shared) Piece(mems []transport.Memory, i int) {
	unit, i := i/s.each, i%s.each
	switch s.collective {
	case schedule.AllReduce:
		lo, hi := s.part(s.unit, i)
		for r := range mems {
			s.srcs[r], s.dsts[r] = mems[r].In[lo:hi], mems[r].Out[lo:hi]
		}
		s.reduce(len(mems), len(mems))
	case schedule.ReduceScatter:
		first, have := s.shard(len(mems[unit].In), s.unit, unit)
		lo, hi := s.part(have, i)
		for r := range mems {
			s.srcs[r] = mems[r].In[first+lo : first+hi]
		}
		s.dsts[0] = mems[unit].Out[lo:hi]
		s.reduce(1, len(mems))
	case schedule.AllGather:
		lo, hi := s.part(s.unit, i)
		for r := range mems {
			s.copy(mems[r].Out[unit*s.unit+lo:unit*s.unit+hi], mems[unit].In[lo:hi])
		}
	case schedule.AllToAll:
		s.exchange(mems, unit/len(mems), unit%len(mems), i)
	case schedule.Broadcast:
		lo, hi := s.part(s.unit, i)
		for r := range mems {
			s.copy(mems[r].Out[lo:hi], mems[s.root].In[lo:hi])
		}
	}
}

// reduce folds the first so many srcs into the first so many dsts.
func (s *shared) reduce(dsts, srcs int) {
	if len(s.srcs[0]) > 0 {
		s.fold(s.dsts[:dsts], s.srcs[:srcs], s.by, s.stream)
	}
}

// copy copies, unless the data is there already.
func (s *shared) copy(dst, src []byte) {
	if len(dst) > 0 && &dst[0] != &src[0] {
		kernel.Copy(dst, src, s.stream)
	}
}

// exchange carries out piece i of what rank a gets from rank b in an all-to-all. Where one of the two is in place, what
// is read on one side would be written on the other: then it is a swap of the first half of the piece if a < b, else of
// the second, and both are read before either is written.
func (s *shared) exchange(mems []transport.Memory, a, b, i int) {
	lo, hi := s.part(s.unit, i)
	block := func(buf []byte, r int) []byte { return buf[r*s.unit+lo : r*s.unit+hi] }
	inPlace := func(r int) bool { return &mems[r].In[0] == &mems[r].Out[0] }
	if a == b || !inPlace(a) && !inPlace(b) {
		s.copy(block(mems[a].Out, b), block(mems[b].In, a))
		return
	}
	middle := (hi - lo) / 2 / lineBytes * lineBytes
	if a < b {
		hi = lo + middle
	} else {
		lo += middle
	}
	if lo == hi {
		return
	}
	if len(s.swap) < maxPieceBytes {
		s.swap = make([]byte, maxPieceBytes)
	}
	kept := s.swap[:hi-lo]
	copy(kept, block(mems[a].In, b))
	s.copy(block(mems[a].Out, b), block(mems[b].In, a))
	s.copy(block(mems[b].Out, a), kept)
}
