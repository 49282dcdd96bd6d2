package schedule

import "fmt"

// touch says which of a round's moves uses a place, a chunk of a buffer or of a scratch slot.
type touch struct {
	turn    int32 // of the round in which it was used last; older ones do not count
	by      int32 // the move that wrote it last, or read it last; of a slot: the chunk that it begins with
	sent    int32 // one more than the move that sends it; 0: none does
	written bool
}

// flight is what the moves of one round at one rank use.
type flight struct {
	turn    int32 // counts the calls of checkFlight
	buffers [2][]touch
	slots   [][]touch // by slot, by place in it
	bases   []touch   // by slot
	parts   []Span    // of runs
}

// checkFlight checks that the moves of one round may be in flight together: see Round.Moves. Since the messages of one
// pair and the links of one fold both follow the order of the list, completing the receives in that order is always
// possible, even for a transport that can take the messages of a peer only one after the other.
func (m *machine) checkFlight(moves []Step) error {
	m.turn++
	for i := range moves {
		st := &moves[i]
		before := -1 // the link before this one, if it goes on with a fold
		goesOn := st.Verb == Fold || st.Verb == RecvReduce && st.Src == st.Dst
		if goesOn && i > 0 && moves[i-1].Verb != Send && moves[i-1].Dst == st.Dst {
			before = i - 1
		}
		if st.Verb == Fold && before < 0 {
			return fmt.Errorf("move %d (%v) is not part of a fold", i, *st)
		}
		if st.Verb == Fold && moves[before].Verb == Fold {
			return fmt.Errorf("move %d (%v) follows another local step of its fold", i, *st)
		}
		if st.Verb != Recv && !(st.Verb == RecvReduce && m.samePlace(&st.Src, &st.Dst)) {
			if err := m.claim(i, st.Verb, &st.Src, false, -1); err != nil {
				return err
			}
		}
		if st.Verb != Send {
			if err := m.claim(i, st.Verb, &st.Dst, true, before); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkThen checks that the steps after the moves of a round write nothing that these send. It comes after checkFlight,
// whose notes it reads. It returns the step that does.
func (m *machine) checkThen(then, moves []Step) (int, error) {
	for i := range then {
		st := &then[i]
		if m.isNothing(st) {
			continue
		}
		sent := int32(0)
		if slot := st.Dst.Slot; st.Dst.Buf == Scratch && slot < len(m.bases) {
			b := m.bases[slot]
			if b.turn != m.turn {
				continue // no move uses the slot
			}
			if int(b.by) != st.Dst.Base {
				sent = b.sent // the slot gets another layout
			}
		}
		for _, run := range m.runs(&st.Dst) {
			for _, t := range m.places(&run) {
				if t.turn == m.turn && sent == 0 {
					sent = t.sent
				}
			}
		}
		if sent > 0 {
			return i, fmt.Errorf("the round sends what it overwrites (move %d, %v), and is not the last",
				sent-1, moves[sent-1])
		}
	}
	return 0, nil
}

// claim notes that move i reads or writes a span. Places that move before wrote, the link before it of the same fold,
// may be written again.
func (m *machine) claim(i int, verb Verb, sp *Span, write bool, before int) error {
	if sp.Buf == Scratch {
		m.bases = m.grown(m.bases, sp.Slot+1)
		if b := &m.bases[sp.Slot]; b.turn == m.turn && int(b.by) != sp.Base {
			return fmt.Errorf("move %d begins slot %d with chunk %d, another with chunk %d in one round",
				i, sp.Slot, sp.Base, b.by)
		}
		m.bases[sp.Slot] = touch{turn: m.turn, by: int32(sp.Base), sent: m.sent(i, verb, m.bases[sp.Slot])}
	}
	if sp.Stride == 0 {
		return m.claimPlaces(i, verb, sp, sp, write, before)
	}
	for _, run := range m.runs(sp) {
		if err := m.claimPlaces(i, verb, sp, &run, write, before); err != nil {
			return err
		}
	}
	return nil
}

// claimPlaces is claim of the places of a run, of a span that is it or has it.
func (m *machine) claimPlaces(i int, verb Verb, sp, run *Span, write bool, before int) error {
	places := m.places(run)
	if err := m.terms.budget.lack(); err != nil {
		return err
	}
	for p, t := range places {
		if t.turn == m.turn && (t.written || write) && !(t.written && write && int(t.by) == before) {
			return fmt.Errorf("moves %d and %d both use %v in one round", t.by, i, *sp)
		}
		places[p] = touch{turn: m.turn, written: write, by: int32(i), sent: m.sent(i, verb, t)}
	}
	return nil
}

// sent is the note that a move leaves of what is sent, where there was another before.
func (m *machine) sent(i int, verb Verb, earlier touch) int32 {
	switch {
	case verb == Send:
		return int32(i + 1)
	case earlier.turn == m.turn:
		return earlier.sent
	}
	return 0
}

// runs are the spans without a stride of which a span consists. They are valid until the next call.
func (m *machine) runs(sp *Span) []Span {
	if had, n := cap(m.parts), sp.Count/max(sp.Run, 1)+2; sp.Stride != 0 && n > had { // one may go round the last chunk
		m.parts = make([]Span, 0, n)
		m.terms.budget.take(spanBytes * int64(n-had))
	}
	m.parts = sp.AppendRuns(m.parts[:0], m.Chunks)
	return m.parts
}

// places finds the places of a span without a stride. Input and Output are the same places when they are the same
// memory.
func (m *machine) places(sp *Span) []touch {
	of, at := &m.buffers[0], sp.First
	switch {
	case sp.Buf == Scratch:
		for sp.Slot >= len(m.slots) {
			m.slots = append(m.slots, nil)
		}
		of, at = &m.slots[sp.Slot], sp.First-sp.Base
	case sp.Buf == Output || m.inPlace:
		of = &m.buffers[1]
	}
	*of = m.grown(*of, at+sp.Count)
	return (*of)[at : at+sp.Count]
}

// grown is a list that has n places or more.
func (m *machine) grown(of []touch, n int) []touch {
	if n <= len(of) {
		return of
	}
	had := cap(of)
	of = append(of, make([]touch, n-len(of))...)
	m.terms.budget.take(touchBytes * int64(cap(of)-had))
	return of
}

// samePlace reports whether two spans are the same memory.
func (m *machine) samePlace(a, b *Span) bool {
	one := a.Buf == b.Buf || m.inPlace && a.Buf != Scratch && b.Buf != Scratch
	return one && a.Slot == b.Slot && a.Base == b.Base && a.First == b.First && a.Count == b.Count &&
		a.Stride == b.Stride && a.Run == b.Run
}
