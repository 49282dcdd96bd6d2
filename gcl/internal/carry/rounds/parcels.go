package rounds

import (
	"slices"

	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/methods/schedule"
)

// parcel is a message of a strided span on its way by messages: its runs one after the other, in scratch memory.
type parcel struct {
	of    schedule.Span
	runs  []schedule.Span
	begin bool // it is the first one of its round, whose parcels lie where those of other rounds do
}

// inParcel is the buffer of a planMove's span that is parcel number Slot.
const inParcel = schedule.Scratch + 1

// chain is a receive of a strided span, or the links of a fold into one. By messages each link arrives in a parcel, and
// is put or folded into its place when the moves are over.
type chain struct {
	first int // of its moves
	links []link
}

// link is a step of a chain.
type link struct {
	step   schedule.Step
	pieces []schedule.Step // steps without a stride that together do the same
	parcel int             // in which its message arrives; -1: it is a Fold
}

// interval is where a parcel lies in scratch memory, in elements.
type interval struct{ lo, hi int }

// settled are the moves of a round, with a stride only where chunks lie apart, and whether any has one.
func (p *Plan) settled(moves []schedule.Step) (settled []schedule.Step, any bool) {
	if !slices.ContainsFunc(moves, strided) {
		return moves, false
	}
	settled = slices.Clone(moves)
	for i := range settled {
		for _, sp := range [...]*schedule.Span{&settled[i].Src, &settled[i].Dst} {
			if runs := sp.AppendRuns(nil, p.chunks); len(runs) == 1 {
				*sp = runs[0]
			}
		}
	}
	return settled, slices.ContainsFunc(settled, strided)
}

// strided reports whether a step has a strided span.
func strided(st schedule.Step) bool { return st.Src.Stride != 0 || st.Dst.Stride != 0 }

// chainOf is the chain that begins with the first of some moves. It is empty if that is a send, or no span is strided.
func chainOf(moves []schedule.Step) []schedule.Step {
	if moves[0].Verb == schedule.Send {
		return nil
	}
	n, any := 1, strided(moves[0])
	for n < len(moves) && moves[n].Verb != schedule.Send && moves[n].Dst == moves[0].Dst {
		any = any || strided(moves[n])
		n++
	}
	if !any {
		return nil
	}
	return moves[:n]
}

// parcel adds a parcel for a span. begin: it is the first one of the round.
func (p *Plan) parcel(sp schedule.Span, begin bool) (span schedule.Span) {
	p.parcels = append(p.parcels, parcel{of: sp, runs: sp.AppendRuns(nil, p.chunks), begin: begin})
	return schedule.Span{Buf: inParcel, Slot: len(p.parcels) - 1}
}

// putParcels says where parcels lie, behind the slots.
func (p *Plan) putParcels(at *placement) {
	if len(p.parcels) == 0 {
		return
	}
	if len(at.parcels) == 0 {
		at.parcels = make([]interval, len(p.parcels))
	}
	begin, end := at.scratchElems, at.scratchElems
	for i := range p.parcels {
		if p.parcels[i].begin {
			begin = at.scratchElems
		}
		e := interval{begin, begin}
		for _, run := range p.parcels[i].runs {
			e.hi += at.bounds[run.First+run.Count] - at.bounds[run.First]
		}
		at.parcels[i] = e
		begin += memory.RoundUp(e.hi-e.lo, slotAlign)
		end = max(end, begin)
	}
	at.scratchElems = end
}

// parcel is the memory of a parcel.
func (r *Run) parcel(i int) []byte {
	e := r.place.parcels[i]
	return r.scratch[e.lo*r.ElemSize : e.hi*r.ElemSize]
}

// pack fills a parcel that is to be sent.
func (r *Run) pack(p *Plan, i int) {
	to := r.parcel(i)
	runs := p.parcels[i].runs
	for k := range runs {
		to = to[copy(to, r.bytes(&runs[k])):]
	}
}

// unpack puts or folds what has arrived for a chain into its place.
func (r *Run) unpack(c *chain) {
	for i := range c.links {
		l := &c.links[i]
		if l.parcel < 0 {
			for k := range l.pieces {
				r.local(&l.pieces[k], nil)
			}
			continue
		}
		from := r.parcel(l.parcel)
		for k := range l.pieces {
			piece := &l.pieces[k]
			dst := r.bytes(&piece.Dst)
			arrived := from[:len(dst)]
			from = from[len(dst):]
			switch {
			case len(dst) == 0:
			case piece.Verb == schedule.Recv:
				copy(dst, arrived)
			case r.Packed != nil:
				r.Packed.Fold(r.place.bounds[piece.Dst.First], dst, r.bytes(&piece.Src), arrived)
			default:
				r.Fold(dst, r.bytes(&piece.Src), arrived)
			}
		}
	}
}
