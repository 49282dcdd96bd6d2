package gcl

import (
	"cmp"
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/internal/kernel"
)

// extent is a tensor as a layout sees it.
type extent struct {
	work     kernel.Type // of its elements while they are packed
	elements int         // of the larger of a rank's two buffers
}

// layout says where the elements of several tensors lie when they are packed to go through a schedule together. Each
// tensor is cut into chunks on its own; chunk f of the packing is chunk f of every tensor, one after the other.
// Within a chunk, tensors of one type lie together, the widest types first, so that every element is aligned and only
// the end of a chunk is padded.
//
//	float32 a of 4, float16 b of 3, float32 c of 2, in two chunks
//	byte     0         8    12     14   64        72   76       80   128
//	         │ a0 a1   │ c0 │ b0   │ ···│ a2 a3   │ c1 │ b1 b2  │ ···│
//	         └ chunk 0 ────────────────┘└ chunk 1 ──────────────────┘
//
// A piece of it that begins and ends at multiples of 8 bytes cuts no element, which is all that a fold asks for.
type layout struct {
	number  uint64 // no two layouts of a lane have the same
	extents []extent
	chunks  int
	ranks   int // in a collective with a result or an input per rank, how many there are; else 0

	bounds    []int // chunk f is bytes bounds[f] to bounds[f+1]
	fragments []fragment
	first     []int // chunk f is fragments first[f] to first[f+1]
	stretches []stretch

	order []int // tensors as they lie in a chunk
}

// fragment is the part of one tensor in one chunk, elements lo to hi. Empty ones are left out.
type fragment struct {
	tensor, lo, hi int
	at             int // the byte where it begins
}

// stretch is bytes at to end of one chunk, which are of one type.
type stretch struct {
	work    kernel.Type
	at, end int
}

// packAlign is what chunks of a packing begin at multiples of, in bytes: a cache line, as vectors like it.
const packAlign = 64

// bytes is the size of the packing.
func (l *layout) bytes() int { return l.bounds[l.chunks] }

// chunkRange is some chunks of a packing: bytes at to end.
type chunkRange struct {
	fragments []fragment
	at, end   int
}

// chunkRange is chunks first to end.
func (l *layout) chunkRange(first, end int) chunkRange {
	return chunkRange{l.fragments[l.first[first]:l.first[end]], l.bounds[first], l.bounds[end]}
}

// fits reports whether l is the layout of such tensors.
func (l *layout) fits(extents []extent, cut, ranks int) bool {
	return l.chunks == cut && l.ranks == ranks && slices.Equal(l.extents, extents)
}

// fit makes l the layout of such tensors, in memory that it has as far as that goes.
func (l *layout) fit(extents []extent, cut, ranks int) {
	l.extents = append(l.extents[:0], extents...)
	l.chunks, l.ranks = cut, ranks
	l.sort()
	l.bounds, l.fragments = append(l.bounds[:0], 0), l.fragments[:0]
	l.first, l.stretches = append(l.first[:0], 0), l.stretches[:0]
	at := 0
	for f := range cut {
		begin := len(l.stretches)
		for _, t := range l.order {
			e := extents[t]
			lo, hi := l.piece(e.elements, f)
			if lo == hi {
				continue
			}
			l.fragments = append(l.fragments, fragment{tensor: t, lo: lo, hi: hi, at: at})
			end := at + (hi-lo)*e.work.Size()
			if last := len(l.stretches) - 1; last >= begin && l.stretches[last].work == e.work {
				l.stretches[last].end = end
			} else {
				l.stretches = append(l.stretches, stretch{e.work, at, end})
			}
			at = end
		}
		at = roundUp(at, packAlign)
		l.bounds, l.first = append(l.bounds, at), append(l.first, len(l.fragments))
	}
}

// piece is chunk f of a tensor of n elements.
func (l *layout) piece(n, f int) (lo, hi int) {
	if l.ranks > 0 {
		return chunks.SplitPadded(n, l.ranks, l.chunks, f)
	}
	return chunks.Split(n, l.chunks, f)
}

// sort puts the tensors in order: the widest type first, and of one type as they were given.
func (l *layout) sort() {
	l.order = l.order[:0]
	for t := range l.extents {
		l.order = append(l.order, t)
	}
	slices.SortStableFunc(l.order, func(a, b int) int {
		x, y := l.extents[a].work, l.extents[b].work
		return cmp.Or(cmp.Compare(y.Size(), x.Size()), cmp.Compare(x, y))
	})
}

// stretchAt is the number of the stretch that byte at lies in, or if it lies in none of the next.
func (l *layout) stretchAt(at int) int {
	lo, hi := 0, len(l.stretches)
	for lo < hi {
		if mid := (lo + hi) / 2; l.stretches[mid].end <= at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// layouts keeps the layouts that a lane has needed, to be found again: a program has a few sets of tensors that it
// makes calls on again and again.
type layouts struct {
	byHash map[uint64]*layout
	made   uint64 // how many have been numbered
	all    []kept // in the order of their making, round and round
	oldest int
}

type kept struct {
	hash   uint64
	layout *layout
}

// maxLayouts bounds what is kept: a layout of 1,000 tensors in 64 chunks takes some 2 MiB. Past it the oldest is made
// anew.
const maxLayouts = 32

// of finds a layout, or makes it.
func (ls *layouts) of(extents []extent, cut, ranks int) *layout {
	hash := mix(mix(hashSeed, uint64(cut)), uint64(ranks))
	for _, e := range extents {
		hash = mix(mix(hash, uint64(e.work)), uint64(e.elements))
	}
	l := ls.byHash[hash]
	switch {
	case l != nil && l.fits(extents, cut, ranks):
		return l
	case l != nil: // chance
	case len(ls.all) < maxLayouts:
		l = &layout{}
		ls.all = append(ls.all, kept{hash, l})
	default:
		place := &ls.all[ls.oldest]
		ls.oldest = (ls.oldest + 1) % maxLayouts
		delete(ls.byHash, place.hash)
		place.hash, l = hash, place.layout
	}
	if ls.byHash == nil {
		ls.byHash = map[uint64]*layout{}
	}
	ls.byHash[hash] = l
	l.fit(extents, cut, ranks)
	ls.made++
	l.number = ls.made
	return l
}

// roundUp is the least multiple of unit that is at least n.
func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// hashSeed is where mix begins.
const hashSeed = fnvOffset

// mix adds a number to a hash, a word at a time, where fnv takes it byte by byte: a call on many tensors has hundreds
// of numbers. Two hashes that differ in one number differ.
func mix(hash, n uint64) uint64 {
	hash = (hash ^ n) * 0x9e3779b97f4a7c15 // odd, 2^64 by the golden ratio (Knuth, volume 3, 6.4)
	return hash ^ hash>>32
}
