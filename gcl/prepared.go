package gcl

import (
	"slices"

	"gogcl.dev/tensor"
)

// prepared is what is found out about a call on several tensors before anything is sent. It is kept, since programs
// make the same few calls on the same buffers again and again, and looking at hundreds of tensors takes longer than
// to reduce them when they are small.
type prepared struct {
	words []uint64 // all that it depends on; none if it is good for one call only

	dtypes   []tensor.DType
	elements []int // in the larger of a rank's two buffers
	shards   []int // ceil(elements/G): a rank's part in a reduce-scatter or all-gather
	bytes    int   // of the larger buffers of all tensors

	// Of the fingerprint.
	common tensor.DType
	count  uint64
	digest uint64

	scheduled, published keptLayout // that it was carried out with
}

// keptLayout is a layout found before.
type keptLayout struct {
	layout *layout
	number uint64
}

// good reports whether it is still the same layout, for so many chunks.
func (k *keptLayout) good(cut int) bool {
	return k.layout != nil && k.layout.number == k.number && k.layout.chunks == cut
}

// keep remembers a layout.
func (k *keptLayout) keep(l *layout) { k.layout, k.number = l, l.number }

// preparations are those that a lane keeps.
type preparations struct {
	words  []uint64 // of the call in progress: addresses, lengths, dtypes and shapes, and what is asked for
	all    []*prepared
	last   int // used
	oldest int // the next one to be given up
	passes prepared
}

// maxPreparations bounds what is kept: of a call on 1,000 slices some 64 KiB.
const maxPreparations = 32

// find returns what is known about the call in progress, or nil.
func (ps *preparations) find() *prepared {
	for i := range ps.all {
		at := (ps.last + i) % len(ps.all)
		if p := ps.all[at]; slices.Equal(p.words, ps.words) {
			ps.last = at
			return p
		}
	}
	return nil
}

// place is where to put what is found out about a call. With passing it is not to be found again.
func (ps *preparations) place(passing bool) *prepared {
	p := &ps.passes
	switch {
	case passing:
	case len(ps.all) < maxPreparations:
		p = &prepared{}
		ps.last = len(ps.all)
		ps.all = append(ps.all, p)
	default:
		p, ps.last = ps.all[ps.oldest], ps.oldest
		ps.oldest = (ps.oldest + 1) % maxPreparations
	}
	*p = prepared{words: p.words[:0], dtypes: p.dtypes[:0], elements: p.elements[:0], shards: p.shards[:0]}
	return p
}

// sumUp works out what must be equal on all ranks: number, order, dtypes and shapes of the tensors, and the mapping.
func (p *prepared) sumUp(m *many, c *Comm, k *manyCall) {
	p.digest = c.digest
	if k.form == ofMapping {
		p.digest = mix(p.digest, 1<<63) // as no word that follows is
	}
	for t, dtype := range p.dtypes {
		if t == 0 {
			p.common = dtype
		} else if p.common != dtype {
			p.common = 0
		}
		p.count += uint64(len(m.ins[t]) / dtype.Size())
		p.bytes += p.elements[t] * dtype.Size()
		if k.form != ofTensors {
			p.digest = mix(mix(p.digest, uint64(dtype)<<32|1), uint64(p.elements[t]))
			continue
		}
		src := k.srcTensors[t]
		p.digest = mix(p.digest, uint64(dtype)<<32|uint64(src.Rank()))
		for i := range src.Rank() {
			p.digest = mix(p.digest, uint64(src.Dim(i)))
		}
	}
}
