package gcl

import (
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// plan is one rank's program, made ready to meet bytes: peers are replica ids, messages have tags, and the links of a fold are joined.
type plan struct {
	lane     *lane
	members  []int
	barriers bool // one before each round

	collective schedule.Collective
	size, rank int
	chunks     int
	rounds     []planRound
	slots      []slot

	// For the number of elements that the plan met last.
	elements     int   // -1: none yet
	parts        []int // as in a call, a copy
	bounds       []int // chunk f is elements bounds[f] to bounds[f+1] of the larger buffer
	scratchElems int
}

type planRound struct {
	moves []planMove
	then  []schedule.Step
}

// planMove is a transfer without its buffers.
type planMove struct {
	kind transport.Kind
	next bool
	peer int
	tag  uint32
	buf  schedule.Span
	with schedule.Span // of a RecvFold; Count is 0 where there is none
}

// slot is a scratch slot: the spans that are put into it, and where it lies.
type slot struct {
	spans []schedule.Span
	start int // in elements
}

// slotAlign is the number of elements that a slot's start is a multiple of, so that its bytes are aligned for any type and do not share a cache line.
const slotAlign = 64

// newPlan makes the plan of a rank.
func newPlan(spec methods.Spec, rank int, members []int) (*plan, error) {
	program, err := spec.Program(rank)
	if err != nil {
		return nil, err
	}
	p := &plan{members: members, collective: spec.Collective, size: spec.Size, rank: rank, chunks: spec.Chunks(), elements: -1}
	p.bounds = make([]int, p.chunks+1)
	for _, r := range program {
		p.rounds = append(p.rounds, p.round(r, members))
	}
	return p, nil
}

// round makes one round of the plan. A Reduce among the moves becomes the operand of the fold's next link, or if it is the last a step after the moves.
func (p *plan) round(r schedule.Round, members []int) planRound {
	var out planRound
	sent, received := map[int]uint32{}, map[int]uint32{}
	var own schedule.Span // operand of a Reduce that waits for the next link
	var last []schedule.Step
	for i, st := range r.Moves {
		p.note(st.Dst)
		if st.Verb == schedule.Reduce {
			own = st.Src
			if i+1 == len(r.Moves) || r.Moves[i+1].Dst != st.Dst {
				last = append(last, st)
				own = schedule.Span{}
			}
			continue
		}
		m := planMove{peer: members[st.Peer], buf: st.Dst}
		switch st.Verb {
		case schedule.Send:
			m.kind, m.buf, m.tag = transport.Send, st.Src, sent[st.Peer]
			sent[st.Peer]++
		case schedule.Recv:
			m.kind, m.tag = transport.Recv, received[st.Peer]
			received[st.Peer]++
		case schedule.RecvReduce:
			m.kind, m.with, m.tag = transport.RecvFold, st.Src, received[st.Peer]
			received[st.Peer]++
			if st.Src == st.Dst && i > 0 && r.Moves[i-1].Verb != schedule.Send && r.Moves[i-1].Dst == st.Dst {
				m.next, m.with, own = true, own, schedule.Span{}
			}
		}
		out.moves = append(out.moves, m)
	}
	for _, st := range r.Then {
		p.note(st.Dst)
	}
	out.then = append(last, r.Then...)
	return out
}

// note remembers that a span is put into a slot.
func (p *plan) note(sp schedule.Span) {
	if sp.Buf != schedule.Scratch {
		return
	}
	for sp.Slot >= len(p.slots) {
		p.slots = append(p.slots, slot{})
	}
	s := &p.slots[sp.Slot]
	if !slices.Contains(s.spans, sp) {
		s.spans = append(s.spans, sp)
	}
}

// fit works out where chunks and slots lie for n elements in the larger buffer, in parts as in a call. For the same as
// last time it has nothing to do.
func (p *plan) fit(n int, parts []int) {
	if n == p.elements && slices.Equal(parts, p.parts) {
		return
	}
	p.parts = append(p.parts[:0], parts...)
	perRank := p.collective == schedule.ReduceScatter || p.collective == schedule.AllGather
	for f := range p.chunks {
		var hi int
		switch {
		case perRank && len(parts) == 0:
			_, hi = chunks.SplitPadded(n, p.size, p.chunks, f)
		case p.collective == schedule.AllGather:
			per := p.chunks / p.size
			lo := parts[f/per]
			_, hi = chunks.Split(parts[f/per+1]-lo, per, f%per)
			hi += lo
		default:
			_, hi = chunks.Split(n, p.chunks, f)
		}
		p.bounds[f+1] = hi
	}
	p.scratchElems = 0
	for i := range p.slots {
		p.slots[i].start = p.scratchElems
		longest := 0
		for _, sp := range p.slots[i].spans {
			longest = max(longest, p.bounds[sp.First+sp.Count]-p.bounds[sp.Base])
		}
		p.scratchElems += (longest + slotAlign - 1) / slotAlign * slotAlign
	}
	p.elements = n
}

// bases are the elements of the larger buffer at which the rank's input and output begin.
func (p *plan) bases() (input, output int) {
	own, _ := p.own()
	switch p.collective {
	case schedule.ReduceScatter:
		return 0, own
	case schedule.AllGather:
		return own, 0
	}
	return 0, 0
}

// own is the range of elements, of the larger buffer, that belong to the rank in a collective with a result or an input per rank.
func (p *plan) own() (lo, hi int) {
	per := p.chunks / p.size
	return p.bounds[p.rank*per], p.bounds[(p.rank+1)*per]
}
