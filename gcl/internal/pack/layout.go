package pack

import (
	"cmp"
	"slices"
	"sort"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/internal/recent"
)

// Extent is a tensor as a layout sees it.
type Extent struct {
	Work     kernel.Type // of its elements while they are packed
	Elements int         // of the larger of a rank's two buffers
	Parts    []int       // nil, or where the ranks' parts of different lengths begin among these, and the last ends
}

// Layout says where the elements of several tensors lie when they are packed to go through a schedule together. Each
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
type Layout struct {
	Number  uint64 // no two of one Layouts have the same
	Extents []Extent
	Chunks  int
	ranks   int // in a collective with a result or an input per rank, how many there are; else 0

	Bounds    []int // chunk f is bytes bounds[f] to bounds[f+1]
	Fragments []Fragment
	first     []int // chunk f is fragments first[f] to first[f+1]
	stretches []stretch

	order []int // tensors as they lie in a chunk
	parts []int // those of the extents, one after the other
}

// Fragment is the part of one tensor in one chunk, elements lo to hi. Empty ones are left out.
type Fragment struct {
	Tensor, Lo, Hi int
	At             int // the byte where it begins
}

// stretch is bytes at to end of one chunk, which are of one type.
type stretch struct {
	work    kernel.Type
	at, end int
}

// Align is what chunks of a packing begin at multiples of, in bytes: a cache line, as vectors like it.
const Align = memory.LineBytes

// Bytes is the size of the packing.
func (l *Layout) Bytes() int { return l.Bounds[l.Chunks] }

// ChunkRange is some chunks of a packing: bytes at to end.
type ChunkRange struct {
	Fragments []Fragment
	At, End   int
}

// ChunkRange is chunks first to end.
func (l *Layout) ChunkRange(first, end int) ChunkRange {
	return ChunkRange{l.Fragments[l.first[first]:l.first[end]], l.Bounds[first], l.Bounds[end]}
}

// fits reports whether l is the layout of such tensors.
func (l *Layout) fits(extents []Extent, cut, ranks int) bool {
	return l.Chunks == cut && l.ranks == ranks && slices.EqualFunc(l.Extents, extents, sameExtent)
}

// fit makes l the layout of such tensors, in memory that it has as far as that goes.
func (l *Layout) fit(extents []Extent, cut, ranks int) {
	l.keep(extents)
	l.Chunks, l.ranks = cut, ranks
	l.sort()
	l.Bounds, l.Fragments = append(l.Bounds[:0], 0), l.Fragments[:0]
	l.first, l.stretches = append(l.first[:0], 0), l.stretches[:0]
	at := 0
	for f := range cut {
		begin := len(l.stretches)
		for _, t := range l.order {
			e := extents[t]
			lo, hi := l.piece(&e, f)
			if lo == hi {
				continue
			}
			l.Fragments = append(l.Fragments, Fragment{Tensor: t, Lo: lo, Hi: hi, At: at})
			end := at + (hi-lo)*e.Work.Size()
			if last := len(l.stretches) - 1; last >= begin && l.stretches[last].work == e.Work {
				l.stretches[last].end = end
			} else {
				l.stretches = append(l.stretches, stretch{e.Work, at, end})
			}
			at = end
		}
		at = memory.RoundUp(at, Align)
		l.Bounds, l.first = append(l.Bounds, at), append(l.first, len(l.Fragments))
	}
}

// keep copies the extents. Their parts are the caller's.
func (l *Layout) keep(extents []Extent) {
	l.Extents, l.parts = append(l.Extents[:0], extents...), l.parts[:0]
	for i := range extents {
		l.parts = append(l.parts, extents[i].Parts...)
	}
	rest := l.parts
	for i := range extents {
		if n := len(extents[i].Parts); n > 0 {
			l.Extents[i].Parts, rest = rest[:n:n], rest[n:]
		}
	}
}

// sameExtent reports whether two extents are alike.
func sameExtent(a, b Extent) bool {
	return a.Work == b.Work && a.Elements == b.Elements && slices.Equal(a.Parts, b.Parts)
}

// piece is chunk f of a tensor.
func (l *Layout) piece(e *Extent, f int) (lo, hi int) {
	switch {
	case e.Parts != nil:
		per := l.Chunks / l.ranks
		first := e.Parts[f/per]
		lo, hi = chunks.Split(e.Parts[f/per+1]-first, per, f%per)
		return first + lo, first + hi
	case l.ranks > 0:
		return chunks.SplitPadded(e.Elements, l.ranks, l.Chunks, f)
	}
	return chunks.Split(e.Elements, l.Chunks, f)
}

// sort puts the tensors in order: the widest type first, and of one type as they were given.
func (l *Layout) sort() {
	l.order = l.order[:0]
	for t := range l.Extents {
		l.order = append(l.order, t)
	}
	slices.SortStableFunc(l.order, func(a, b int) int {
		x, y := l.Extents[a].Work, l.Extents[b].Work
		return cmp.Or(cmp.Compare(y.Size(), x.Size()), cmp.Compare(x, y))
	})
}

// stretchAt is the number of the stretch that byte at lies in, or if it lies in none of the next.
func (l *Layout) stretchAt(at int) int {
	return sort.Search(len(l.stretches), func(i int) bool { return l.stretches[i].end > at })
}

// Layouts keeps layouts that were needed, to be found again: a program has a few sets of tensors that it
// makes calls on again and again.
type Layouts struct {
	known recent.Map[uint64, *Layout] // by hash
	made  uint64                      // how many have been numbered
}

// maxLayouts bounds what is kept: a layout of 1,000 tensors in 64 chunks takes some 2 MiB.
const maxLayouts = 32

// Of finds a layout, or makes it.
func (ls *Layouts) Of(extents []Extent, cut, ranks int) *Layout {
	hash := wire.Mix(wire.Mix(wire.Seed, uint64(cut)), uint64(ranks))
	for _, e := range extents {
		hash = wire.Mix(wire.Mix(hash, uint64(e.Work)), uint64(e.Elements))
		for _, n := range e.Parts {
			hash = wire.Mix(hash, uint64(n))
		}
	}
	l, known := ls.known.Get(hash)
	switch {
	case known && l.fits(extents, cut, ranks):
		return l
	case !known: // else it is chance
		ls.known.Most = maxLayouts
		place := ls.known.Place(hash)
		if *place == nil {
			*place = &Layout{}
		}
		l = *place
	}
	l.fit(extents, cut, ranks)
	ls.made++
	l.Number = ls.made
	return l
}
