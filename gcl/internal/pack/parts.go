package pack

import (
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/wire"
)

// Parts say where the parts of the ranks lie in an operand whose parts are of different lengths. The zero value: the
// parts are equal.
//
//	counts 3, 0, 2
//	Bounds 0        3 3     5
//	       │ a0 a1 a2││ c0 c1│
type Parts struct {
	// Bounds: part i is elements Bounds[i] to Bounds[i+1] of the larger buffer, on all ranks. Of an all-to-all it is
	// what the rank has for rank i in its Input, on this rank alone.
	Bounds []int

	// Out is Bounds of the Output of an all-to-all, where part i comes from rank i. Else it is nil.
	Out []int
}

// Equal reports whether two operands have their parts at the same places.
func (p *Parts) Equal(q *Parts) bool {
	return slices.Equal(p.Bounds, q.Bounds) && slices.Equal(p.Out, q.Out)
}

// Keep makes p a copy of q in memory of its own.
func (p *Parts) Keep(q *Parts) {
	p.Bounds = append(p.Bounds[:0], q.Bounds...)
	if q.Out == nil {
		p.Out = nil
		return
	}
	p.Out = append(p.Out[:0], q.Out...)
}

// Unequal reports whether an engine, which gives all ranks parts of one length, cannot carry them out. No rank knows
// that of the parts of an all-to-all, which other ranks have other ones of.
func (p *Parts) Unequal() bool {
	for i := 1; i < len(p.Bounds); i++ {
		if p.Bounds[i]-p.Bounds[i-1] != p.Bounds[1] {
			return true
		}
	}
	return p.Out != nil
}

// Own is the range of elements of the larger buffer that belong to a rank.
func (p *Parts) Own(rank int) (lo, hi int) { return p.Bounds[rank], p.Bounds[rank+1] }

// Hash adds to a hash what all ranks must have alike: where the parts begin, or of an all-to-all that there are some.
func (p *Parts) Hash(hash uint64) uint64 {
	hash = wire.Mix(hash, partsMark)
	if p.Out != nil {
		return hash
	}
	for _, n := range p.Bounds[1:] {
		hash = wire.Mix(hash, uint64(n))
	}
	return hash
}

// partsMark stands before the bounds of parts in a hash: no word of a call without parts is like it.
const partsMark = 1 << 62

// CutParts fills in the bounds of chunks that belong to ranks, per of them to each: a part is cut as chunks.Split
// cuts it.
func CutParts(bounds, parts []int, per int) {
	for f := range len(bounds) - 1 {
		lo := parts[f/per]
		_, hi := chunks.Split(parts[f/per+1]-lo, per, f%per)
		bounds[f+1] = lo + hi
	}
}
