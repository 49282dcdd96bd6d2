package onepass

import (
	"sort"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/carry/opened"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Piece implements transport.Worker.
func (s *Pass) Piece(mems []transport.Memory, _, i int) {
	s.worked = true
	lo, hi := chunks.Split(s.total/memory.LineBytes, s.pieces[0], i)
	lo, hi = lo*memory.LineBytes, hi*memory.LineBytes
	for t := s.operandAt(lo); lo < hi; t++ {
		o := &s.operands[t]
		if o.tensor != s.compared && !s.compare(mems, t) {
			return
		}
		for first := o.end - o.units*o.padded; lo < min(hi, o.end); {
			unit := (lo - first) / o.padded
			begin := first + unit*o.padded
			end := min(begin+o.padded, hi)
			if a, b := lo-begin, min(end-begin, o.unit); a < b {
				s.work(mems, t, o.rank+unit, a, b)
			}
			lo = end
		}
	}
}

// compare reports whether all members have laid open what the call wants of operand t. Else the Share fails.
func (s *Pass) compare(mems []transport.Memory, t int) bool {
	o := &s.operands[t]
	own := o.own
	for r := range mems {
		m, replica := &mems[r], s.members[r]
		if s.lists && !s.lengths.FitsLists(replica, m, s.tensors) {
			return false
		}
		if len(s.parts) > 0 {
			lo, hi := s.parts[o.tensor].Own(r)
			own = (hi - lo) * o.work.Size()
		}
		in, out := s.buffers(m, t)
		wantIn := opened.Want(s.contract.Input, r == s.root, o.whole, own)
		wantOut := opened.Want(s.contract.Output, r == s.root, o.whole, own)
		if !s.lengths.FitsInput(transport.Recv, replica, in, wantIn) ||
			!s.lengths.FitsOutput(transport.Send, replica, out, wantOut) {
			return false
		}
	}
	s.compared = o.tensor
	return true
}

// operandAt is the first operand that ends after a byte.
func (s *Pass) operandAt(at int) int {
	return sort.Search(len(s.operands), func(t int) bool { return s.operands[t].end > at })
}

// buffers are what a rank lays open of operand t.
func (s *Pass) buffers(m *transport.Memory, t int) (in, out []byte) {
	if s.lists {
		i := s.operands[t].tensor
		return m.Ins[i], m.Outs[i]
	}
	return m.In, m.Out
}

// work works on bytes lo to hi of a unit of operand t.
func (s *Pass) work(mems []transport.Memory, t, unit, lo, hi int) {
	s.stream = s.large && !s.operands[t].replaces
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
func (s *Pass) reduceUnit(mems []transport.Memory, t, unit, lo, hi int) {
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
		first, have = s.operands[t].shard(len(in), unit)
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
	s.reduce(s.operands[t].work, dsts)
}

// spreadUnit copies bytes lo to hi of a unit from the one rank that has it, its owner or the root, to those that want
// it: all ranks, its owner or the root.
func (s *Pass) spreadUnit(mems []transport.Memory, t, unit, lo, hi int) {
	own := s.operands[t].begins(unit)
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
func (s *Pass) reduce(work kernel.Type, dsts int) {
	fold := s.fold
	if s.lists {
		fold = s.loops.Many[work]
	}
	n := len(s.members)
	fold(s.dsts[:dsts], s.srcs[:n], s.by, s.stream)
}

// transfer copies, unless the data is there already.
func (s *Pass) transfer(dst, src []byte) {
	if memory.Address(dst) != memory.Address(src) {
		kernel.Copy(dst, src, s.stream)
	}
}

// exchange carries out bytes lo to hi of what rank a gets from rank b in an all-to-all. Where one of the two is in
// place, what is read on one side would be written on the other: then it swaps the two blocks, but only as far as they
// are in the first half if a < b, else in the second, and reads both before it writes either.
func (s *Pass) exchange(mems []transport.Memory, t, a, b, lo, hi int) {
	size := s.operands[t].unit
	block := func(buf []byte, r int) []byte { return buf[r*size+lo : r*size+hi] }
	inA, outA := s.buffers(&mems[a], t)
	inB, outB := s.buffers(&mems[b], t)
	if a == b || memory.Address(inA) != memory.Address(outA) && memory.Address(inB) != memory.Address(outB) {
		s.transfer(block(outA, b), block(inB, a))
		return
	}
	if middle := size / 2 / memory.LineBytes * memory.LineBytes; a < b {
		hi = min(hi, middle)
	} else {
		lo = max(lo, middle)
	}
	if lo >= hi {
		return
	}
	if len(s.swap) < memory.MaxPieceBytes {
		s.swap = make([]byte, memory.MaxPieceBytes)
	}
	kept := s.swap[:hi-lo]
	copy(kept, block(inA, b))
	s.transfer(block(outA, b), block(inB, a))
	s.transfer(block(outB, a), kept)
}

// shard is where the shard of a rank begins among the bytes of an input, and how many bytes of it there are.
func shard(input, size, rank int) (first, have int) {
	first = min(rank*size, input)
	return first, min(size, input-first)
}
