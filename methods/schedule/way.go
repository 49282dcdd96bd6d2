package schedule

import (
	"errors"
	"slices"
	"unsafe"
)

// way records where chunks go, while a machine carries out once more a schedule that was refused. A nil way records
// nothing.
type way struct {
	m        *machine
	latest   map[spot]int // the passage that wrote a spot last
	passages []passage    // the first stands for what was there before the first round

	// The step that the machine is at:
	rank, round int
	step        Step
	src         Span // of its message, if it receives one
}

// spot has room for one chunk: in a buffer of a rank, or in a slot of its Scratch.
type spot struct {
	rank        int
	buf         Buffer
	slot, chunk int
}

// passage is a step that wrote a spot.
type passage struct {
	spot
	round  int
	step   Step
	value  value
	from   [2]int // the passages of its operands: the own or earlier one, and the one that comes
	before int    // the passage that wrote the spot before
	lost   int    // one more than the round in which the slot got another layout; 0: it did not
}

const passageBytes = int64(unsafe.Sizeof(passage{}) + unsafe.Sizeof(spot{}) + unsafe.Sizeof(0))

// traced adds the way of its chunk to an error of one. The schedule is carried out once more for that, with sets. Where
// these take too much memory the error stays as it is.
func (e *examination) traced(from source, refused error) error {
	var wrong *chunkError
	if !errors.As(refused, &wrong) {
		return refused
	}
	s, once := e.schedule, examination{schedule: e.schedule, budget: e.budget}
	if s.Collective.Contract().Output != Blocks {
		once.fault = wrong // no chunk changes its number
	}
	terms, err := once.newTerms(from, s.Again || s.Contract().Again, true)
	if err != nil {
		return refused
	}
	inPlace := (*inPlaceError)(nil)
	m := once.newMachine(terms, errors.As(refused, &inPlace))
	m.way = &way{m: m, latest: map[spot]int{}, passages: make([]passage, 1)}
	if m.err == nil {
		run(from, s.Size, []*machine{m})
	}
	if m.err == nil {
		m.err = m.outcome(&Report{})
	}
	var cell *cellError
	if !errors.As(m.err, &cell) || !errors.As(m.err, &wrong) {
		return refused
	}
	told := cellError{rank: cell.rank, round: cell.round, error: refused}
	switch {
	case cell.round != atEnd:
		told.way = m.way.ofStep(from, wrong)
	default:
		want := m.wants()
		want.each(cell.rank, func(f int) {
			if f == wrong.chunk {
				told.way, told.round = m.way.ofOutcome(cell.rank, f, want)
			}
		})
	}
	return &told
}

// begins notes the step that comes, and the span of its message if it receives one.
func (w *way) begins(rank, round int, st *Step, src *Span) {
	if w == nil {
		return
	}
	w.rank, w.round, w.step, w.src = rank, round, *st, Span{}
	if src != nil {
		w.src = *src
	}
}

// writes notes what the step has written.
func (w *way) writes(values []value) {
	if w == nil {
		return
	}
	for i, v := range values {
		at := w.at(w.rank, &w.step.Dst, i)
		p := passage{spot: at, round: w.round, step: w.step, value: v, from: w.operands(i), before: w.latest[at]}
		w.latest[at] = len(w.passages)
		w.passages = append(w.passages, p)
	}
	w.m.terms.budget.take(passageBytes * int64(len(values)))
}

// passes notes a step of other chunks, which may give a slot another layout.
func (w *way) passes(rank, round int, st *Step) {
	if w == nil || st.Verb == Send || st.Dst.Buf != Scratch {
		return
	}
	if slots := w.m.replicas[rank].slots; st.Dst.Slot < len(slots) && slots[st.Dst.Slot].base != st.Dst.Base {
		w.gone(rank, round, st.Dst.Slot)
	}
}

// gone notes that a slot gives up what it holds.
func (w *way) gone(rank, round, slot int) {
	if w == nil || round == atEnd {
		return
	}
	s := w.m.replicas[rank].slots[slot]
	for i := range s.cells {
		if at := w.latest[spot{rank, Scratch, slot, s.base + i}]; at > 0 {
			w.passages[at].lost = round + 1
		}
	}
}

// at is the spot of chunk i of a span.
func (w *way) at(rank int, sp *Span, i int) spot {
	buf, slot := w.m.memory(sp)
	return spot{rank, buf, slot, sp.chunk(i, w.m.Chunks)}
}

// sources are the spots that the step reads for chunk i: its own operand or the one that it goes on with, and the one
// that comes. had tells which of them there are.
func (w *way) sources(i int) (at [2]spot, had [2]bool) {
	st := &w.step
	switch st.Verb {
	case RecvReduce:
		at[0], had[0] = w.at(w.rank, &st.Src, i), true
	case Fold:
		at[0], had[0] = w.at(w.rank, &st.Dst, i), true
	}
	if st.Verb == Recv || st.Verb == RecvReduce {
		at[1] = w.at(st.Peer, &w.src, i)
	} else {
		at[1] = w.at(w.rank, &st.Src, i)
	}
	had[1] = true
	return at, had
}

// operands are the passages that wrote the sources of chunk i, 0 of what was there before the first round.
func (w *way) operands(i int) (of [2]int) {
	at, had := w.sources(i)
	for k := range of {
		if had[k] {
			of[k] = w.latest[at[k]]
		}
	}
	if talks := w.step.Verb == Recv || w.step.Verb == RecvReduce; talks {
		for of[1] > 0 && w.passages[of[1]].round == w.round { // messages leave before the round writes anything
			of[1] = w.passages[of[1]].before
		}
	}
	return of
}

// value is what passage p brought to a spot. What was there before the first round is the rank's contribution.
func (w *way) value(p int, at spot) value {
	if p > 0 {
		return w.passages[p].value
	}
	return w.m.terms.leaf(at.rank, at.chunk)
}

// stays reports whether what a passage has written is there in the end.
func (w *way) stays(p int) bool {
	return w.latest[w.passages[p].spot] == p && w.passages[p].lost == 0
}

// next is the passage that overwrote a spot after passage p; 0 if none did.
func (w *way) next(p int, at spot) int {
	for i := w.latest[at]; i > p; i = w.passages[i].before {
		if w.passages[i].before == p {
			return i
		}
	}
	return 0
}

// leadsTo adds passage p and those that it stands on.
func (w *way) leadsTo(p int, to map[int]bool) {
	for open := []int{p}; len(open) > 0; {
		p, open = open[len(open)-1], open[:len(open)-1]
		if p > 0 && !to[p] {
			to[p] = true
			open = append(open, w.passages[p].from[:]...)
		}
	}
}

// holds reports whether a value has the contribution of a rank.
func (w *way) holds(v value, rank int) bool {
	return v != none && w.m.terms.sets[v][rank/64]>>(rank%64)&1 == 1
}

// without lists those of some ranks whose contributions a value does not have.
func (w *way) without(v value, ranks []int) (out []int) {
	for _, r := range ranks {
		if !w.holds(v, r) {
			out = append(out, r)
		}
	}
	return out
}

// writesLater is the round in which the rank of the step first writes a chunk where the step reads it; false: never.
func (w *way) writesLater(from source, chunk int) (round int, sp Span, ever bool) {
	sp = w.step.Src
	if !sp.has(chunk, w.m.Chunks) {
		sp = w.step.Dst
	}
	writes := func(st Step) bool {
		return st.Verb != Send && st.Dst.Buf == sp.Buf && st.Dst.Slot == sp.Slot && st.Dst.has(chunk, w.m.Chunks)
	}
	one := Span{Buf: sp.Buf, Slot: sp.Slot, Base: sp.Base, First: chunk, Count: 1}
	for t := from.next(w.rank, w.round); t < from.length(w.rank); t = from.next(w.rank, t+1) {
		r := from.round(w.rank, t)
		if slices.ContainsFunc(r.Moves, writes) || slices.ContainsFunc(r.Then, writes) {
			return t, one, true
		}
	}
	return 0, one, false
}
