package popops

import (
	"math/bits"
	"slices"

	"gogcl.dev/internal/kernel"
)

// scratch is a worker's memory, and what it is doing with it: updates of the rows of one group.
type scratch struct {
	pairs, other []uint64 // for sorting; made when first needed, as the next
	few          []uint64 // for look-ups in their own order
	counts       []uint32
	wide         []byte // a row of float32s, for each of outer
	most         int    // how many pairs memory is for that are sorted at once; see sortedAtOnce

	call    *rowCall
	columns [2]int
	table   []byte // of the group
	slices  []byte // the same
	off     int    // the group's first offset
	open    int    // the row that wide holds, or -1
}

// begin begins with a group.
func (s *scratch) begin(c *rowCall, group int, columns [2]int) {
	s.call, s.columns, s.open, s.off = c, columns, -1, group*c.n
	bytes := c.outer * c.entries * c.inner
	s.table = c.table[group*bytes : (group+1)*bytes]
	bytes = c.n * c.outer * c.inner
	s.slices = c.slices[group*bytes : (group+1)*bytes]
	if need := 2 * c.outer * (columns[1] - columns[0]); c.widen != nil && len(s.wide) < need {
		s.wide = make([]byte, need)
	}
}

// room is room for rowsAtOnce pairs.
func (s *scratch) room() []uint64 {
	if s.few == nil {
		s.few = make([]uint64, 0, rowsAtOnce)
	}
	return s.few
}

// end finishes the group; scratch keeps no memory of the caller's.
func (s *scratch) end() {
	s.close()
	s.call, s.table, s.slices = nil, nil, nil
}

// inOrder carries out the look-ups from to to that are of rows lo to hi, in their order.
func (s *scratch) inOrder(from, to int, lo, hi uint64) {
	span := hi - lo
	for from < to {
		pairs := s.room()
		base := from
		end := min(to, from+rowsAtOnce)
		if host := s.call.off.host; host != nil {
			for i, o := range host[s.off+from : s.off+end] {
				if uint64(o)-lo < span {
					pairs = append(pairs, pairOf(uint32(o), i))
				}
			}
		} else {
			for i, w := range s.call.off.words[s.off+from : s.off+end] {
				if uint64(w)-lo < span {
					pairs = append(pairs, pairOf(w, i))
				}
			}
		}
		from = end
		s.apply(pairs, base)
	}
}

// apply carries out pairs; their slices are counted from slice number base on.
func (s *scratch) apply(pairs []uint64, base int) {
	if len(pairs) == 0 {
		return
	}
	if s.call.widen != nil {
		s.applyWide(pairs, base)
		return
	}
	c := s.call
	at := kernel.Rows{Bytes: s.columns[1] - s.columns[0], DstStride: c.inner, SrcStride: c.outer * c.inner}
	for a := range c.outer {
		table := s.table[a*c.entries*c.inner+s.columns[0] : (a+1)*c.entries*c.inner]
		slices := s.slices[(base*c.outer+a)*c.inner+s.columns[0]:]
		switch c.verb {
		case addTo:
			c.add(table, slices, pairs, at, c.scale)
		case put:
			kernel.CopyRows(table, slices, pairs, at)
		case maxTo:
			for _, p := range pairs {
				row := table[rowOf(p)*at.DstStride:][:at.Bytes]
				c.maximum(row, row, slices[sliceOf(p)*at.SrcStride:][:at.Bytes])
			}
		}
	}
}

// applyWide adds to float32 sums of rows, one row after the other: pairs of one row come together.
func (s *scratch) applyWide(pairs []uint64, base int) {
	c := s.call
	columns := s.columns[1] - s.columns[0]
	at := kernel.Rows{Bytes: columns, SrcStride: c.outer * c.inner} // of a stride of 0: every row is the first
	for len(pairs) > 0 {
		row, n := rowOf(pairs[0]), 1
		for n < len(pairs) && rowOf(pairs[n]) == row {
			n++
		}
		if row != s.open {
			s.close()
			s.open = row
			s.eachOuter(row, c.widen, false)
		}
		for a := range c.outer {
			c.add(s.wide[2*a*columns:], s.slices[(base*c.outer+a)*c.inner+s.columns[0]:], pairs[:n], at, c.scale)
		}
		pairs = pairs[n:]
	}
}

// close rounds the sums of the open row.
func (s *scratch) close() {
	if s.open >= 0 {
		s.eachOuter(s.open, s.call.narrow, true)
		s.open = -1
	}
}

// eachOuter converts a row of the table, from float32 or to it.
func (s *scratch) eachOuter(row int, convert func(dst, src []byte), fromWide bool) {
	c := s.call
	columns := s.columns[1] - s.columns[0]
	for a := range c.outer {
		wide := s.wide[2*a*columns:][:2*columns]
		narrow := s.table[(a*c.entries+row)*c.inner+s.columns[0]:][:columns]
		if fromWide {
			convert(narrow, wide)
		} else {
			convert(wide, narrow)
		}
	}
}

// pairBytes is what a pair takes that is sorted: itself, and room beside it.
const pairBytes = 16

// pairsWithin is how many of n pairs may be sorted at once: so many that always may take 4 KiB.
func pairsWithin(proportion float64, n int) int {
	return min(n, max(fewPairs, int(proportion*WorkerBytes)/pairBytes))
}

// The sort is by digits of digitBits, the last first. 2048 counts are 8 KiB, which with what they point to stays in the
// first-level cache.
const (
	digitBits = 11
	digits    = 1 << digitBits

	// fewPairs is below how many pairs slices.Sort is faster than passes over all counts.
	fewPairs = 256

	// mostParts is into how many parts, if all rows have as many, what is sorted is split: each is a look at all
	// offsets, and a few more to find it.
	mostParts = 8
)

// sortedAtOnce is how many of n pairs are sorted at once where memory is for most: at least so many that the time grows
// with n and not with its square, which is 2 bytes for each look-up.
func sortedAtOnce(most, n int) int { return min(n, max(most, (n+mostParts-1)/mostParts)) }

// sorted carries out the look-ups of rows lo to hi, by rows, and those of a row in their order. More of them than are
// sorted at once are split by rows; those of a single row need no sorting.
func (s *scratch) sorted(lo, hi uint64) {
	if s.counts == nil {
		s.counts = make([]uint32, digits)
	}
	if room := sortedAtOnce(s.most, s.call.n); len(s.other) < room {
		s.pairs, s.other = make([]uint64, 0, room), make([]uint64, room)
	}
	pairs, all := s.gather(lo, hi)
	switch {
	case all:
		s.apply(s.sort(pairs, lo, hi), 0)
	case hi-lo == 1:
		s.inOrder(0, s.call.n, lo, hi)
	default:
		mid := lo + (hi-lo)/2
		s.sorted(lo, mid)
		s.sorted(mid, hi)
	}
}

// gather is the pairs of the look-ups of rows lo to hi, and whether these are all.
func (s *scratch) gather(lo, hi uint64) ([]uint64, bool) {
	pairs, span, n := s.pairs[:0], hi-lo, s.call.n
	most := sortedAtOnce(s.most, n)
	if host := s.call.off.host; host != nil {
		for i, o := range host[s.off : s.off+n] {
			if uint64(o)-lo < span {
				if len(pairs) == most {
					return nil, false
				}
				pairs = append(pairs, pairOf(uint32(o), i))
			}
		}
		return pairs, true
	}
	for i, w := range s.call.off.words[s.off : s.off+n] {
		if uint64(w)-lo < span {
			if len(pairs) == most {
				return nil, false
			}
			pairs = append(pairs, pairOf(w, i))
		}
	}
	return pairs, true
}

// sort is pairs, which are in the order of their slices and of rows lo to hi, by row and then slice. The result is in
// pairs' memory or in other.
func (s *scratch) sort(pairs []uint64, lo, hi uint64) []uint64 {
	if len(pairs) < fewPairs {
		slices.Sort(pairs)
		return pairs
	}
	other := s.other[:len(pairs)]
	width := bits.Len64(hi - 1 - lo)
	passes := (width + digitBits - 1) / digitBits
	if passes == 0 {
		return pairs
	}
	each := (width + passes - 1) / passes // bits of a digit: as few counts as do
	mask := uint64(1)<<each - 1
	counts := s.counts[:1<<each]
	for pass := range passes {
		shift := pass * each
		clear(counts)
		for _, p := range pairs {
			counts[(p>>32-lo)>>shift&mask]++
		}
		sum := uint32(0)
		for i, n := range counts {
			counts[i] = sum
			sum += n
		}
		for _, p := range pairs {
			at := &counts[(p>>32-lo)>>shift&mask]
			other[*at] = p
			*at++
		}
		pairs, other = other, pairs
	}
	return pairs
}
