package gcl

import (
	"slices"

	"gogcl.dev/gcl/internal/carry"
)

// preparations are the jobs on several operands that a connection keeps, without their buffers. Programs make the same
// few calls on the same buffers again and again, and looking at hundreds of tensors takes longer than to reduce them
// when they are small. A Batch is kept by its owner.
type preparations struct {
	words  []uint64 // of the call in progress: addresses, lengths, dtypes and shapes, and what is asked for
	all    []*prepared
	last   int // used
	oldest int // the next one to be given up
	passes prepared
}

// prepared is a job, and all the words that it depends on; none if it is good for one call only.
type prepared struct {
	carry.Job
	words []uint64
}

// maxPreparations bounds what is kept: of a call on 1,000 slices some 64 KiB.
const maxPreparations = 32

// find returns the job of the call in progress, or nil.
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

// place is where to put the job of a call. With passing it is not to be found again.
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
	p.Empty()
	p.words = p.words[:0]
	return p
}
