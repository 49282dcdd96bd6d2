package schedule

import (
	"cmp"
	"fmt"
	"slices"
)

// holder follows what one rank holds while a Builder makes its program.
type holder struct {
	rank    int
	program Program
	chunks  int // of the schedule

	outLo, outHi int   // the chunks that the Output holds: outLo to outHi-1
	ins, outs    []int // the same of both buffers, of a collective of a program's own; else nil

	at     []place          // by chunk
	sent   []int            // by chunk: one more than the round in which it was sent last
	lent   map[inRound]bool // which chunks go from Input or Output in which round
	came   []built          // by chunk: the message in which it came last
	lowest []int            // by slot: the first chunk that is ever put there

	sending map[inSlot]int // by chunk in a slot: one more than the round in which it was sent from there last
}

// inSlot is the place of a chunk in a slot.
type inSlot struct{ slot, chunk int }

// inRound is a chunk that is sent in a round.
type inRound struct{ chunk, round int }

// place is where a rank holds a chunk.
type place struct {
	held  bool
	buf   Buffer
	slot  int
	round int // in which it got there
}

// program makes the program of a rank from its messages.
func (b *Builder) program(rank int, messages []built) (Program, error) {
	slices.SortStableFunc(messages, func(a, b built) int { return cmp.Compare(a.round, b.round) })
	contract := b.s.Collective.Contract()
	outLo, outHi := contract.Output.chunks(rank, b.s.Root, b.s.Size, b.s.Chunks)
	h := &holder{
		rank: rank, program: make(Program, b.rounds), chunks: b.s.Chunks,
		outLo: outLo, outHi: outHi, sending: map[inSlot]int{},
		at: make([]place, b.s.Chunks), sent: make([]int, b.s.Chunks), lent: map[inRound]bool{},
		came: make([]built, b.s.Chunks),
	}
	lo, hi := contract.Input.chunks(rank, b.s.Root, b.s.Size, b.s.Chunks)
	if own := b.s.Custom; own != nil {
		h.ins, h.outs = own.Inputs[rank], append([]int{}, own.Outputs[rank]...)
		for _, f := range own.Inputs[rank] {
			h.at[f] = place{held: true, buf: Input}
		}
		lo, hi = 0, 0
	}
	for f := lo; f < hi; f++ {
		h.at[f] = place{held: true, buf: Input}
	}
	for len(messages) > 0 {
		t, n := messages[0].round, 1
		for n < len(messages) && messages[n].round == t {
			n++
		}
		sends, receives := apart(rank, messages[:n])
		for _, m := range sends {
			if err := h.send(t, m); err != nil {
				return nil, err
			}
		}
		for _, m := range receives {
			if err := h.receive(t, m); err != nil {
				return nil, err
			}
		}
		messages = messages[n:]
	}
	h.finish()
	h.base()
	return h.program, nil
}

// apart parts the messages of a round. Receives come by their chunks, so that folds into the same ones follow each
// other. Sends to one peer come by their chunks too, since the i-th send meets the i-th receive; which peer comes when
// stays as it was.
func apart(rank int, messages []built) (sends, receives []built) {
	for _, m := range messages {
		if m.from == rank {
			sends = append(sends, m)
		} else {
			receives = append(receives, m)
		}
	}
	slices.SortStableFunc(receives, byChunks)
	sorted, next := slices.Clone(sends), map[int]int{}
	slices.SortStableFunc(sorted, func(a, b built) int { return cmp.Or(cmp.Compare(a.to, b.to), byChunks(a, b)) })
	for i, s := range slices.Backward(sorted) {
		next[s.to] = i
	}
	for i, m := range sends {
		sends[i] = sorted[next[m.to]]
		next[m.to]++
	}
	return sends, receives
}

func byChunks(a, b built) int {
	return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.n, b.n), cmp.Compare(a.stride, b.stride),
		cmp.Compare(a.run, b.run))
}

// over goes over the chunks of a message.
func (h *holder) over(m *built) walk {
	sp := m.span()
	return sp.walk(h.chunks)
}

// move adds a step to the moves of a round.
func (h *holder) move(t int, st Step) {
	h.program[t].Moves = append(h.program[t].Moves, st)
}

// keeps reports whether the Output holds the chunks of a message.
func (h *holder) keeps(m built) bool {
	if h.outs != nil {
		return h.inList(h.outs, m)
	}
	if m.stride == 0 {
		return m.first >= h.outLo && m.first+m.n <= h.outHi
	}
	at := h.over(&m)
	for range m.n {
		if f := at.next(); f < h.outLo || f >= h.outHi {
			return false
		}
	}
	return true
}

// span is where the chunks of a message lie, in one piece. Chunks that lie apart are put side by side when the round
// before ends: those of the Input beside the others in the Output, if that has all of these, or all of them in a slot.
func (h *holder) span(t int, m built) (Span, error) {
	first := h.at[m.first]
	together, inOutput := true, h.keeps(m)
	at := h.over(&m)
	for range m.n {
		f := at.next()
		if !h.at[f].held { // sends are made before receives
			return Span{}, fmt.Errorf("schedule: round %d: rank %d does not hold chunk %d when the round begins",
				t, h.rank, f)
		}
		together = together && h.at[f].buf == first.buf && h.at[f].slot == first.slot
		inOutput = inOutput && h.at[f].buf != Scratch
	}
	if together && (h.outs == nil || first.buf == Scratch || h.inList(h.listed(first.buf), m)) {
		return h.holds(first, m), nil
	}
	if t == 0 {
		return Span{}, fmt.Errorf("schedule: round 0: chunks %s do not lie one after the other in the input of rank %d: "+
			"want a message of each", m.chunks(), h.rank)
	}
	to := place{held: true, buf: Output, round: t}
	if !inOutput {
		to.buf, to.slot = Scratch, h.free(t-1, m)
	}
	at = h.over(&m)
	for range m.n {
		f := at.next()
		if inOutput && h.at[f].buf == Output {
			continue
		}
		r := &h.program[t-1]
		r.Then = append(r.Then, Step{Verb: Copy, Peer: -1, Src: h.in(h.at[f], f, 1), Dst: h.in(to, f, 1)})
		h.at[f] = to
	}
	return h.holds(h.at[m.first], m), nil
}

// inList reports whether a list has the chunks of a message, those of each run one after the other.
func (h *holder) inList(list []int, m built) bool {
	return !slices.ContainsFunc(m.span().AppendRuns(nil, h.chunks), func(run Span) bool {
		return placeIn(list, run.First, run.Count) < 0
	})
}

// listed is what a buffer holds, of a collective of a program's own.
func (h *holder) listed(buf Buffer) []int {
	if buf == Input {
		return h.ins
	}
	return h.outs
}

// send adds the send of a message.
func (h *holder) send(t int, m built) error {
	src, err := h.span(t, m)
	if err != nil {
		return err
	}
	at := h.over(&m)
	for range m.n {
		f := at.next()
		h.sent[f] = t + 1
		if src.Buf == Scratch {
			h.sending[inSlot{src.Slot, f}] = t + 1
		} else {
			h.lent[inRound{f, t}] = true
		}
	}
	h.move(t, Step{Verb: Send, Peer: m.to, Src: src})
	return nil
}

// receive adds the receive of a message. In the Output, if that has room for it, it may take the place of the Input:
// unless the round sends that.
func (h *holder) receive(t int, m built) error {
	held, goesOn, busy := 0, false, false
	at := h.over(&m)
	for range m.n {
		f := at.next()
		if h.at[f].held {
			held++
		}
		if h.at[f].held && h.at[f].round == t+1 {
			goesOn = true
			if !m.fold || byChunks(m, h.came[f]) != 0 {
				return fmt.Errorf("schedule: round %d: chunks %s come to rank %d, and another message of the round goes "+
					"into some of them; want the same chunks in both, and folds after the first", t, m.chunks(), h.rank)
			}
		}
		busy = busy || h.sent[f] == t+1
		h.came[f] = m
	}
	var src Span
	if m.fold && held > 0 {
		switch {
		case held < m.n:
			return fmt.Errorf("schedule: round %d: rank %d holds some of chunks %s and not all, into which it folds", t,
				h.rank, m.chunks())
		case goesOn:
			src = h.holds(h.at[m.first], m)
			h.move(t, Step{Verb: RecvReduce, Peer: m.from, Src: src, Dst: src})
			return nil
		}
		var err error
		if src, err = h.span(t, m); err != nil {
			return err
		}
	}
	to := place{held: true, buf: Output, round: t + 1}
	if !h.keeps(m) || busy {
		to = place{held: true, buf: Scratch, slot: h.free(t, m), round: t + 1}
	}
	dst := h.holds(to, m)
	if src.Count > 0 {
		h.move(t, Step{Verb: RecvReduce, Peer: m.from, Src: src, Dst: dst})
	} else {
		h.move(t, Step{Verb: Recv, Peer: m.from, Dst: dst})
	}
	at = h.over(&m)
	for range m.n {
		h.at[at.next()] = to
	}
	return nil
}

// free is the first slot in which none of a message's chunks lies, nor goes from in round t or later.
func (h *holder) free(t int, m built) int {
	taken := map[int]bool{}
	chunks := h.over(&m)
	for range m.n {
		if at := h.at[chunks.next()]; at.held && at.buf == Scratch {
			taken[at.slot] = true
		}
	}
	slot := 0
	for taken[slot] || h.isSending(slot, t, m) {
		slot++
	}
	return slot
}

// isSending says whether round t or a later one sends one of a message's chunks from a slot.
func (h *holder) isSending(slot, t int, m built) bool {
	chunks := h.over(&m)
	for range m.n {
		if h.sending[inSlot{slot, chunks.next()}] > t {
			return true
		}
	}
	return false
}

// holds is the span of a message's chunks at a place.
func (h *holder) holds(at place, m built) Span {
	sp := h.in(at, m.first, m.n)
	sp.Stride, sp.Run = m.stride, m.run
	if at.buf == Scratch && m.stride != 0 {
		chunks := h.over(&m)
		for range m.n {
			h.lowest[at.slot] = min(h.lowest[at.slot], chunks.next())
		}
	}
	return sp
}

// in is a span of chunks at a place. A slot's base is put in by base.
func (h *holder) in(at place, first, n int) Span {
	if at.buf != Scratch {
		return Span{Buf: at.buf, First: first, Count: n}
	}
	for at.slot >= len(h.lowest) {
		h.lowest = append(h.lowest, first)
	}
	h.lowest[at.slot] = min(h.lowest[at.slot], first)
	return Part(at.slot, 0, first, n)
}

// finish copies results into the Output, each when a round ends: see ripe.
func (h *holder) finish() {
	n := h.outHi - h.outLo
	if h.outs != nil {
		n = len(h.outs)
	}
	for i := 0; i < n; {
		first := h.output(i)
		at, t, f := h.at[first], h.ripe(first), first+1
		for i++; i < n && h.output(i) == f && h.at[f] == at && h.ripe(f) == t && h.together(at, first, f); i++ {
			f++
		}
		if !at.held || at.buf == Output {
			continue
		}
		for t >= len(h.program) {
			h.program = append(h.program, Round{})
		}
		r := &h.program[t]
		r.Then = append(r.Then, Step{Verb: Copy, Peer: -1, Src: h.in(at, first, f-first), Dst: Out(first, f-first)})
	}
}

// output is the chunk at a place of the Output.
func (h *holder) output(i int) int {
	if h.outs != nil {
		return h.outs[i]
	}
	return h.outLo + i
}

// together reports whether chunks lie one after the other at a place.
func (h *holder) together(at place, first, last int) bool {
	return h.outs == nil || at.buf == Scratch || placeIn(h.listed(at.buf), first, last-first+1) >= 0
}

// ripe is the round at whose end a chunk is copied into the Output: that in which it came to be where it is, or if that
// sends what the copy would overwrite the next that does not. The last round may. A rank that has only what it had in
// the beginning copies in round 0.
func (h *holder) ripe(f int) int {
	t := max(h.at[f].round-1, 0)
	for h.at[f].buf == Scratch && h.lent[inRound{f, t}] && t+1 < len(h.program) {
		t++
	}
	return t
}

// base writes into all spans with which chunk their slot begins.
func (h *holder) base() {
	put := func(sp *Span) {
		if sp.Buf == Scratch {
			sp.Base = h.lowest[sp.Slot]
		}
	}
	for t := range h.program {
		for _, steps := range [...][]Step{h.program[t].Moves, h.program[t].Then} {
			for i := range steps {
				put(&steps[i].Src)
				put(&steps[i].Dst)
			}
		}
	}
}
