package rounds

import (
	"cmp"
	"encoding/binary"
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/carry/opened"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Plan is one rank's program, made ready to meet bytes: peers are replica ids, messages have tags, and the links of a
// fold are joined.
type Plan struct {
	runner   *Runner
	members  []int
	barriers bool // one before each round

	collective schedule.Collective
	size, rank int
	root       int
	chunks     int
	needsApart bool   // input and output
	digest     uint64 // of the schedule of a program's own method, for the fingerprint
	rounds     []planRound
	slots      [][]schedule.Span // the spans that are put into each scratch slot
	parcels    []parcel          // by messages
	places     []*placement      // by run
	lists      *Lists            // of a collective of a program's own; else nil
}

// placement is where chunks and slots lie in the buffers of one run: for the number of elements, or the layout of
// several tensors, that it was asked for last.
type placement struct {
	made         uint64     // how many times it has been worked out
	elements     int        // -1: none yet, or a layout
	unit         int        // of a collective of a program's own: elements of a chunk of size 1
	layout       uint64     // its number, or 0
	parts        pack.Parts // of the run, a copy
	bounds       []int      // chunk f is elements (of a layout: bytes) bounds[f] to bounds[f+1] of the larger buffer
	outs         []int      // the same for an Output; bounds itself, but in an all-to-all whose parts differ in length
	received     []int      // memory for outs
	starts       []int      // of the slots, in elements
	parcels      []interval
	scratchElems int
}

type planRound struct {
	moves []planMove
	then  []schedule.Step

	sent   []int // parcels that are filled before the moves
	chains []chain
}

// planMove is a transfer without its buffers.
type planMove struct {
	kind transport.Kind
	next bool
	peer int
	tag  uint32
	buf  schedule.Span
	with schedule.Span // of a RecvFold; Count is 0 where there is none

	// second: the operand with comes behind what arrives, which tells where operands do not commute. Strided spans are
	// folded without it: no built-in schedule in rank order has any, and others do not get such operands.
	second bool
}

// slotAlign is the number of elements that a slot's start is a multiple of, so that its bytes are aligned for any type
// and do not share a cache line.
const slotAlign = 64

// NewPlan makes the plan of a rank. barriers: one goes before each round.
func NewPlan(on *Runner, from Programs, rank int, members []int, barriers bool) (*Plan, error) {
	spec := &from.Spec
	program, err := from.program(rank)
	if err != nil {
		return nil, err
	}
	p := &Plan{runner: on, members: members, barriers: barriers, collective: spec.Collective, size: spec.Size,
		rank: rank, root: spec.Root, chunks: spec.Chunks(), needsApart: !spec.InPlace}
	if s := from.Proved; s != nil {
		p.chunks, p.needsApart, p.digest = s.Chunks, s.NeedsApart(), binary.LittleEndian.Uint64(s.Digest[:])
		p.lists = newLists(s.Custom, rank)
	}
	steps := 0
	for _, r := range program {
		steps += len(r.Moves)
	}
	b := planBuilder{Plan: p, moves: make([]planMove, 0, steps), sent: make([]uint32, spec.Size),
		received: make([]uint32, spec.Size)}
	p.rounds = make([]planRound, 0, len(program))
	for _, r := range program {
		p.rounds = append(p.rounds, b.round(r))
	}
	return p, nil
}

// planBuilder makes the rounds of a plan.
type planBuilder struct {
	*Plan
	moves          []planMove // of all rounds
	sent, received []uint32   // by rank: the messages of the round at hand
}

// round makes one round of the plan. A Fold among the moves becomes the operand of the fold's next link, or if it is
// the last a step after the moves.
func (p *planBuilder) round(r schedule.Round) planRound {
	var out planRound
	first := len(p.moves)
	for i := range r.Moves {
		if peer := r.Moves[i].Peer; peer >= 0 {
			p.sent[peer], p.received[peer] = 0, 0
		}
	}
	var own schedule.Span // operand of a Fold that waits for the next link
	var last []schedule.Step
	moves, apart := p.settled(r.Moves)
	parcels := len(p.parcels)
	for i := 0; i < len(moves); i++ {
		st := moves[i]
		p.note(st.Dst)
		if apart {
			if steps := chainOf(moves[i:]); len(steps) > 0 {
				p.chain(&out, steps, len(p.moves)-first, parcels)
				i += len(steps) - 1
				continue
			}
		}
		if st.Verb == schedule.Fold {
			own = st.Src
			if i+1 == len(moves) || moves[i+1].Dst != st.Dst {
				last = append(last, st)
				own = schedule.Span{}
			}
			continue
		}
		m := planMove{peer: p.members[st.Peer], buf: st.Dst}
		switch st.Verb {
		case schedule.Send:
			m.kind, m.buf, m.tag = transport.Send, st.Src, p.sent[st.Peer]
			p.sent[st.Peer]++
			if st.Src.Stride != 0 {
				m.buf = p.parcel(st.Src, len(p.parcels) == parcels)
				out.sent = append(out.sent, m.buf.Slot)
			}
		case schedule.Recv:
			m.kind, m.tag = transport.Recv, p.received[st.Peer]
			p.received[st.Peer]++
		case schedule.RecvReduce:
			m.kind, m.with, m.tag = transport.RecvFold, st.Src, p.received[st.Peer]
			p.received[st.Peer]++
			if st.Src == st.Dst && i > 0 && moves[i-1].Verb != schedule.Send && moves[i-1].Dst == st.Dst {
				m.next, m.with, own = true, own, schedule.Span{}
			}
			m.second = !m.next && st.Peer < p.rank
		}
		p.moves = append(p.moves, m)
	}
	out.moves = p.moves[first:len(p.moves):len(p.moves)]
	last = slices.Grow(last, len(r.Then))
	for i := range r.Then {
		p.note(r.Then[i].Dst)
		last = r.Then[i].AppendRuns(last, p.chunks)
	}
	out.then = last
	return out
}

// chain adds the moves of a chain, of which number first of the round comes next. The round has parcels from number
// parcels on.
func (p *planBuilder) chain(out *planRound, steps []schedule.Step, first, parcels int) {
	c := chain{first: first}
	for _, st := range steps {
		l := link{step: st, pieces: st.AppendRuns(nil, p.chunks), parcel: -1}
		if st.Verb != schedule.Fold {
			buf := p.parcel(st.Dst, len(p.parcels) == parcels)
			l.parcel = buf.Slot
			p.moves = append(p.moves,
				planMove{kind: transport.Recv, peer: p.members[st.Peer], tag: p.received[st.Peer], buf: buf})
			p.received[st.Peer]++
		}
		c.links = append(c.links, l)
	}
	out.chains = append(out.chains, c)
}

// note remembers that a span is put into a slot. Spans that come again and again do so one after the other.
func (p *Plan) note(sp schedule.Span) {
	if sp.Buf != schedule.Scratch {
		return
	}
	if sp.Stride != 0 { // the last of its runs says how long the slot is
		runs := sp.AppendRuns(nil, p.chunks)
		sp = slices.MaxFunc(runs, func(a, b schedule.Span) int { return cmp.Compare(a.First, b.First) })
	}
	for sp.Slot >= len(p.slots) {
		p.slots = append(p.slots, nil)
	}
	if s := &p.slots[sp.Slot]; len(*s) == 0 || (*s)[len(*s)-1] != sp {
		*s = append(*s, sp)
	}
}

// place says where chunks and slots lie in run i, of n elements in the larger buffer or of several tensors that are
// packed. For the same as last time it has nothing to do.
func (p *Plan) place(i, n int, parts *pack.Parts, packed *pack.Packing) *placement {
	for len(p.places) <= i {
		p.places = append(p.places,
			&placement{elements: -1, bounds: make([]int, p.chunks+1), starts: make([]int, len(p.slots))})
	}
	at := p.places[i]
	switch {
	case packed != nil && at.layout == packed.Number,
		packed == nil && at.elements == n && at.parts.Equal(parts):
		return at
	case packed != nil:
		copy(at.bounds, packed.Bounds)
		at.elements, at.layout, at.outs = -1, packed.Number, at.bounds
	case p.lists != nil:
		at.unit = p.lists.split(at.bounds, n)
		at.elements, at.layout, at.outs = n, 0, at.bounds
		at.parts.Keep(parts)
	default:
		p.split(at.bounds, n, parts.Bounds)
		at.elements, at.layout, at.outs = n, 0, at.bounds
		if parts.Out != nil {
			at.received = append(at.received[:0], at.bounds...)
			p.split(at.received, n, parts.Out)
			at.outs = at.received
		}
		at.parts.Keep(parts)
	}
	at.made++
	p.putSlots(at)
	return at
}

// placeAs says where chunks and slots lie in run i on another rank, where the chunks have the same bounds.
func (p *Plan) placeAs(i int, own *placement) *placement {
	if len(p.slots) == 0 && len(own.starts) == 0 {
		return own
	}
	for len(p.places) <= i {
		p.places = append(p.places, &placement{starts: make([]int, len(p.slots))})
	}
	at := p.places[i]
	if at.made != own.made {
		at.made, at.bounds, at.outs, at.unit = own.made, own.bounds, own.outs, own.unit
		p.putSlots(at)
	}
	return at
}

// putSlots says where the slots lie, given the bounds of the chunks.
func (p *Plan) putSlots(at *placement) {
	at.scratchElems = 0
	for i, spans := range p.slots {
		at.starts[i] = at.scratchElems
		longest := 0
		for _, sp := range spans {
			longest = max(longest, at.bounds[sp.First+sp.Count]-at.bounds[sp.Base])
		}
		at.scratchElems += memory.RoundUp(longest, slotAlign)
	}
	p.putParcels(at)
}

// split fills in the bounds of the chunks of n elements. parts are those of Parts.
func (p *Plan) split(bounds []int, n int, parts []int) {
	contract := p.collective.Contract()
	switch perRank := contract.Input == schedule.Own || contract.Output == schedule.Own; {
	case len(parts) > 0:
		pack.CutParts(bounds, parts, p.chunks/p.size)
	case perRank:
		for f := range p.chunks {
			_, bounds[f+1] = chunks.SplitPadded(n, p.size, p.chunks, f)
		}
	default:
		for f := range p.chunks {
			_, bounds[f+1] = chunks.Split(n, p.chunks, f)
		}
	}
}

// Cut implements Executor.
func (p *Plan) Cut() int { return p.chunks }

// Apart implements Executor.
func (p *Plan) Apart() bool { return p.needsApart }

// Summary implements Executor.
func (p *Plan) Summary() uint64 { return p.digest }

// Length implements Executor.
func (p *Plan) Length() int { return len(p.rounds) }

// bases are the elements of the larger buffer at which the rank's input and output begin.
func (p *Plan) bases(at *placement) (input, output int) {
	own, _ := p.ownAt(at)
	contract := p.collective.Contract()
	if contract.Input == schedule.Own {
		input = own
	}
	if contract.Output == schedule.Own {
		output = own
	}
	return input, output
}

// lengths are the bytes that the rank's two buffers have in a run that is set up; opened.Unused for one that the
// schedule does not use.
func (p *Plan) lengths(r *Run) (input, output int) {
	if r.lists != nil {
		size := r.place.unit * r.ElemSize
		return r.lists.input * size, r.lists.output * size
	}
	contract, own := p.collective.Contract(), 0
	switch {
	case contract.Input != schedule.Own && contract.Output != schedule.Own:
	case r.Packed == nil && len(r.Parts.Bounds) == 0: // those of the last ranks have padding, which is in no chunk
		own = chunks.PerRank(r.Elements, p.size) * r.ElemSize
	default:
		lo, hi := p.ownAt(r.place)
		own = (hi - lo) * r.ElemSize
	}
	whole, atRoot := r.place.bounds[p.chunks]*r.ElemSize, p.rank == p.root
	return opened.Want(contract.Input, atRoot, whole, own), opened.Want(contract.Output, atRoot, whole, own)
}

// ownAt is the range of elements, of the larger buffer, that belong to the rank in a collective with a result or an
// input per rank.
func (p *Plan) ownAt(at *placement) (lo, hi int) {
	per := p.chunks / p.size
	return at.bounds[p.rank*per], at.bounds[(p.rank+1)*per]
}

// setUp makes run i, all but its scratch memory, ready to be carried out by the plan. It returns how many bytes of
// scratch it needs.
func (p *Plan) setUp(i int, r *Run) (scratchBytes int) {
	return p.putAt(p.place(i, r.Elements, &r.Parts, r.Packed), r)
}

// putAt is setUp with a placement.
func (p *Plan) putAt(at *placement, r *Run) (scratchBytes int) {
	r.place, r.lists = at, p.lists
	r.inBase, r.outBase = p.bases(at)
	return at.scratchElems * r.ElemSize
}
