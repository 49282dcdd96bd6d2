package gcl

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// shared carries out direct collectives on peer memory, in one pass: each replica reduces its share of the elements from all inputs and stores it to all outputs, or fetches
// what it needs from where it lies. Small messages go through Gather, one barrier instead of two.
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

	dsts, srcs [][]byte // of one piece
	swap       []byte   // room for a piece
}

// pieceBytes is how much of each buffer is worked on at a time: what all the buffers of a piece need stays in the second-level cache, and an abort is noticed within some
// ten microseconds.
const pieceBytes = 32 << 10

// streamBytes is the size of all outputs together from which results are stored past the caches, unless they take the place of the inputs, which have
// just been read into them. `go test -bench Many ./internal/kernel` shows a tie at 2 to 4 MiB and a gain of up to 2 from 16 MiB on.
const streamBytes = 16 << 20

// lineBytes is the granularity of shares, so that no two replicas write one cache line of aligned buffers.
const lineBytes = 64

// setUp makes ready for one collective.
func (s *shared) setUp(c *Comm, k *call, fingerprint transport.Call) {
	s.members, s.rank, s.call, s.elemSize = c.group.members, c.group.rank, fingerprint, k.dtype.Size()
	s.by = 0
	if reduces(k.collective) {
		s.foldBy(c.foldOf(k))
		if k.operator == Mean {
			s.by = c.Size()
		}
	}
	s.stream = !k.inPlace() && len(k.dst)*c.Size() >= streamBytes
	for len(s.dsts) < c.Size() {
		s.dsts, s.srcs = append(s.dsts, nil), append(s.srcs, nil)
	}
}

// foldBy says how to fold from now on.
func (s *shared) foldBy(f kernel.Fold) {
	if s.fold == nil || f != s.kind {
		s.kind, s.fold = f, f.Loop()
	}
}

// foldOf is how the inputs of a reduction are folded.
func (c *Comm) foldOf(k *call) kernel.Fold {
	return kernel.Fold{
		Op: kernelOps[k.operator], Type: kernel.Type(k.dtype),
		Square: k.operator == SquareAdd, Wide: c.options.Reproducible,
	}
}

// run carries out a collective over n elements in the larger buffer.
func (s *shared) run(ctx context.Context, k *call) error {
	if published := len(k.src); published <= s.memory.GatherLimit() {
		return s.gather(ctx, k, published)
	}
	mems, err := s.memory.Meet(ctx, s.call, s.members, transport.Memory{In: k.src, Out: k.dst})
	if err != nil {
		return err
	}
	s.work(k, mems)
	err = s.memory.Part(ctx)
	clear(s.dsts) // hold on to nobody's buffers
	clear(s.srcs)
	return err
}

// work is this rank's part of a collective between Meet and Part.
func (s *shared) work(k *call, mems []transport.Memory) {
	switch k.collective {
	case schedule.AllReduce:
		lo, hi := s.share(len(mems[0].In), s.rank)
		s.allReduce(mems, lo, hi)
	case schedule.ReduceScatter:
		s.reduceScatter(k, mems)
	case schedule.AllGather:
		for r := range mems { // the last ones may hold padding
			lo, hi := min(r*len(k.src), len(k.dst)), min((r+1)*len(k.src), len(k.dst))
			s.copy(k.dst[lo:hi], mems[r].In)
		}
	case schedule.AllToAll:
		s.allToAll(mems)
	case schedule.Broadcast:
		s.copy(k.dst, mems[k.root].In)
	}
}

// share is the part of n bytes that a rank works on: whole cache lines.
func (s *shared) share(n, rank int) (lo, hi int) {
	lo, hi = chunks.Split((n+lineBytes-1)/lineBytes, len(s.members), rank)
	return min(lo*lineBytes, n), min(hi*lineBytes, n)
}

// allReduce reduces bytes lo to hi, which are this rank's share, from all inputs and stores them to all outputs.
func (s *shared) allReduce(mems []transport.Memory, lo, hi int) {
	for at := lo; at < hi; at += pieceBytes {
		if s.memory.Err() != nil {
			return
		}
		end := min(at+pieceBytes, hi)
		for r := range mems {
			s.srcs[r], s.dsts[r] = mems[r].In[at:end], mems[r].Out[at:end]
		}
		s.fold(s.dsts[:len(mems)], s.srcs[:len(mems)], s.by, s.stream)
	}
}

// reduceScatter reduces this rank's shard.
func (s *shared) reduceScatter(k *call, mems []transport.Memory) {
	first := min(s.rank*len(k.dst), len(k.src))
	have := min(len(k.dst), len(k.src)-first)
	for at := 0; at < have; at += pieceBytes {
		if s.memory.Err() != nil {
			return
		}
		end := min(at+pieceBytes, have)
		for r := range mems {
			s.srcs[r] = mems[r].In[first+at : first+end]
		}
		s.dsts[0] = k.dst[at:end]
		s.fold(s.dsts[:1], s.srcs[:len(mems)], s.by, s.stream)
	}
	clear(k.dst[have:])
}

// copy fetches a peer's data, or leaves it where it is.
func (s *shared) copy(dst, src []byte) {
	if len(dst) == 0 || &dst[0] == &src[0] {
		return
	}
	for at := 0; at < len(dst); at += pieceBytes {
		if s.memory.Err() != nil {
			return
		}
		end := min(at+pieceBytes, len(dst))
		kernel.Copy(dst[at:end], src[at:end], s.stream)
	}
}

// allToAll deals with the pairs of ranks that are this one's to deal with: both blocks of a pair are read before either is written, so that it does not matter
// whose Output is its Input. A pair {a, b} is the rank's whose number is lower if their sum is odd, else the other's.
func (s *shared) allToAll(mems []transport.Memory) {
	size := len(mems[0].In) / len(mems)
	block := func(buf []byte, i, at, end int) []byte { return buf[i*size+at : i*size+end] }
	s.copy(block(mems[s.rank].Out, s.rank, 0, size), block(mems[s.rank].In, s.rank, 0, size))
	for d := 1; d < len(mems); d++ {
		peer := (s.rank + d) % len(mems)
		if low := min(s.rank, peer); (s.rank == low) != ((s.rank+peer)%2 == 1) {
			continue
		}
		mine, theirs := mems[s.rank], mems[peer]
		for at := 0; at < size; at += pieceBytes {
			if s.memory.Err() != nil {
				return
			}
			end := min(at+pieceBytes, size)
			from := block(mine.In, peer, at, end)
			if len(s.swap) < pieceBytes {
				s.swap = make([]byte, pieceBytes)
			}
			if inPlace := &mine.In[0] == &mine.Out[0]; inPlace {
				kept := s.swap[:end-at]
				copy(kept, from)
				from = kept
			}
			kernel.Copy(block(mine.Out, peer, at, end), block(theirs.In, s.rank, at, end), s.stream)
			kernel.Copy(block(theirs.Out, s.rank, at, end), from, s.stream)
		}
	}
}
