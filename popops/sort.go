package popops

import (
	"math/bits"
	"slices"
)

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
