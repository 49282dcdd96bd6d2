package schedule

import (
	"errors"
	"fmt"
	"unsafe"
)

// cell is the state of one chunk of one buffer.
type cell struct {
	value  value
	unread bool // written, and not read since
}

// slot is the state of one scratch slot: its cells from chunk base on. One without cells was never written.
type slot struct {
	base  int
	cells []cell
	width int // the most chunks that it ever had room for
}

// replica is the state of one rank. The Input, which is never written, has none: but when it is the Output.
type replica struct {
	first  int    // chunk of the first cell
	output []cell // of the Output, and of the Input when that is the same memory
	slots  []slot // by number
}

// machine runs a schedule on symbols, all ranks one round at a time. Real replicas run ahead of each other, but what a
// message carries is fixed by its round's number, and nothing in flight is written, so the order does not matter.
type machine struct {
	*Schedule
	contract Contract
	terms    *terms
	inPlace  bool
	replicas []replica
	tally    *tally      // nil: nobody asks
	way      *way        // nil: nobody asks
	fault    *chunkError // of the one chunk that matters; nil: all do
	err      error       // the first fault

	mail mail
	slab []value // room for values of a round
	used int     // of slab

	flight
}

// What a machine takes of the budget of a check.
const (
	valueBytes = int64(unsafe.Sizeof(value(0)))
	cellBytes  = int64(unsafe.Sizeof(cell{}))
	slotBytes  = int64(unsafe.Sizeof(slot{}))
	touchBytes = int64(unsafe.Sizeof(touch{}))
	spanBytes  = int64(unsafe.Sizeof(Span{}))
)

// newMachine makes a machine in the state before the first round.
func (e *examination) newMachine(terms *terms, inPlace bool) *machine {
	s := e.schedule
	m := &machine{Schedule: s, contract: s.Contract(), terms: terms, inPlace: inPlace,
		replicas: make([]replica, s.Size), fault: e.fault, mail: newMail(s.Size)}
	for rank := range m.replicas {
		m.replicas[rank] = m.initial(rank)
		if err := terms.budget.lack(); err != nil {
			m.err = fmt.Errorf("schedule: %w", err)
			break
		}
	}
	return m
}

// run carries out the programs of a schedule on several machines, in step, so that each round of a rank is fetched once
// for all of them. A machine that finds a fault stops, and has it in err. Those after the first stop with the first.
func run(from source, size int, machines []*machine) (rounds int) {
	a := newAgenda(from, size)
	for t := range a.rounds {
		active, last := a.at(t), t == a.rounds-1
		for _, m := range machines {
			m.mail.empty()
			m.used = 0
		}
		for _, rank := range active {
			round := from.round(int(rank), t)
			for _, m := range machines {
				if m.err == nil {
					m.err = m.begin(int(rank), t, round, last)
				}
			}
		}
		for _, m := range machines {
			m.mail.sort()
			m.tally.sorted(&m.mail)
		}
		for _, rank := range active {
			round := from.round(int(rank), t)
			for _, m := range machines {
				if m.err == nil {
					m.err = m.complete(int(rank), t, round)
				}
			}
			a.enter(int(rank), t+1)
		}
		for _, m := range machines {
			if m.err == nil {
				m.err = m.left(t)
			}
		}
		if machines[0].err != nil {
			break
		}
	}
	return a.rounds
}

// initial is the state of a rank before the first round: its contributions in the Input, and nothing elsewhere.
func (m *machine) initial(rank int) replica {
	lo, hi := m.contract.Output.chunks(rank, m.Root, m.Size, m.Chunks)
	inLo, inHi := m.contract.Input.chunks(rank, m.Root, m.Size, m.Chunks)
	switch {
	case !m.inPlace:
	case lo == hi:
		lo, hi = inLo, inHi
	case inLo < inHi:
		lo, hi = min(lo, inLo), max(hi, inHi)
	}
	r := replica{first: lo, output: make([]cell, hi-lo)}
	m.terms.budget.take(cellBytes * int64(hi-lo))
	if !m.inPlace && !m.terms.exact() {
		return r // contributions become values when they are read
	}
	put := func(f int) {
		v := m.terms.leaf(rank, f)
		if m.inPlace {
			r.output[f-lo].value = v
		}
	}
	if m.Custom != nil {
		for _, f := range m.Custom.Inputs[rank] {
			put(f)
		}
		return r
	}
	for f := inLo; f < inHi; f++ {
		put(f)
	}
	return r
}

// begin checks the steps of a rank in round t, which may be the last, and puts what it sends on its way.
func (m *machine) begin(rank, t int, round Round, last bool) error {
	if m.fault == nil {
		if err := m.checkFlight(round.Moves); err != nil {
			return &cellError{rank: rank, round: t, error: fmt.Errorf("schedule: rank %d round %d: %w", rank, t, err)}
		}
	}
	if m.fault == nil && !last {
		if i, err := m.checkThen(round.Then, round.Moves); err != nil {
			return stepError(rank, t, "then", i, round.Then[i], err)
		}
	}
	m.tally.enters(round)
	for i := range round.Moves {
		if st := m.part(&round.Moves[i]); st != nil && st.Verb == Send {
			m.way.begins(rank, t, st, nil)
			if err := m.send(rank, st); err != nil {
				return stepError(rank, t, "move", i, round.Moves[i], err)
			}
		}
	}
	return nil
}

// complete carries out the other steps of a rank in round t.
func (m *machine) complete(rank, t int, round Round) error {
	for i := range round.Moves {
		if st := m.part(&round.Moves[i]); st != nil {
			if err := m.move(rank, t, st); err != nil {
				return stepError(rank, t, "move", i, round.Moves[i], err)
			}
		} else {
			m.way.passes(rank, t, &round.Moves[i])
		}
	}
	for i := range round.Then {
		if st := m.part(&round.Then[i]); st != nil {
			if err := m.local(rank, t, st); err != nil {
				return stepError(rank, t, "then", i, round.Then[i], err)
			}
		} else {
			m.way.passes(rank, t, &round.Then[i])
		}
	}
	return nil
}

// left says which message of round t nobody has received.
func (m *machine) left(t int) error {
	msg := m.mail.left()
	if msg == nil {
		return nil
	}
	return &cellError{rank: int(msg.from), round: t, error: fmt.Errorf("schedule: rank %d round %d: deadlock: rank %d "+
		"never receives (%v)", msg.from, t, msg.to, sending(int(msg.to), msg.src))}
}

// sending is the step that sends a span.
func sending(to int, src Span) Step { return Step{Verb: Send, Peer: to, Src: src} }

// send puts a message on its way.
func (m *machine) send(rank int, st *Step) error {
	if err := m.terms.budget.lack(); err != nil {
		return err
	}
	values, err := m.read(rank, &st.Src)
	if err != nil {
		return err
	}
	m.mail.put(rank, st.Peer, &st.Src, values)
	return nil
}

// move carries out one step of the moves; sends are done already.
func (m *machine) move(rank, t int, st *Step) error {
	switch st.Verb {
	case Send:
		return nil
	case Fold:
		return m.local(rank, t, st)
	}
	if err := m.terms.budget.lack(); err != nil {
		return err
	}
	msg := m.mail.take(st.Peer, rank)
	if msg == nil {
		return fmt.Errorf("deadlock: rank %d never sends it", st.Peer)
	}
	if !sameSizes(m.Schedule, &msg.src, &st.Dst) {
		return fmt.Errorf("the message (%v) has chunks of other sizes", sending(rank, msg.src))
	}
	m.way.begins(rank, t, st, &msg.src)
	values := msg.values
	if st.Verb == RecvReduce {
		own, err := m.read(rank, &st.Src)
		if err != nil {
			return err
		}
		if values, err = m.combine(own, values); err != nil {
			return err
		}
	} else {
		m.tally.receives(m.terms, rank, t, st, values)
	}
	return m.write(rank, t, &st.Dst, values)
}

// local carries out a Copy or a Fold.
func (m *machine) local(rank, t int, st *Step) error {
	if m.isNothing(st) {
		return nil
	}
	if m.crosses(st) {
		return errors.New("it reads chunks that it has written")
	}
	if err := m.terms.budget.lack(); err != nil {
		return err
	}
	m.way.begins(rank, t, st, nil)
	values, err := m.read(rank, &st.Src)
	if err != nil {
		return err
	}
	if st.Verb == Fold {
		have, err := m.read(rank, &st.Dst)
		if err != nil {
			return err
		}
		if values, err = m.combine(have, values); err != nil {
			return err
		}
	}
	return m.write(rank, t, &st.Dst, values)
}

// isNothing reports whether a step copies Input to Output where they are the same.
func (m *machine) isNothing(st *Step) bool {
	return st.Verb == Copy && m.inPlace && st.Src.Buf == Input && m.samePlace(&st.Src, &st.Dst)
}

// crosses reports whether a local step writes a chunk that it reads as the operand of another. Its runs, and the pieces
// of a long one, are carried out one after the other.
func (m *machine) crosses(st *Step) bool {
	srcBuf, srcSlot := m.memory(&st.Src)
	dstBuf, dstSlot := m.memory(&st.Dst)
	switch {
	case srcBuf != dstBuf || srcSlot != dstSlot:
		return false
	case st.Src.Base != st.Dst.Base:
		return true // the chunks of the slot have other places
	case m.contract.Output != Blocks:
		return false // both spans have the same chunks
	case st.Src.Stride == 0 && st.Dst.Stride == 0:
		apart := st.Src.First - st.Dst.First
		return apart != 0 && -st.Src.Count < apart && apart < st.Src.Count
	}
	at := make(map[int]int, st.Src.Count)
	src, dst := st.Src.walk(m.Chunks), st.Dst.walk(m.Chunks)
	for i := range st.Src.Count {
		at[src.next()] = i
	}
	for i := range st.Dst.Count {
		if j, ok := at[dst.next()]; ok && j != i {
			return true
		}
	}
	return false
}

// memory says in which memory a span lies.
func (m *machine) memory(sp *Span) (buf Buffer, slot int) {
	if m.inPlace && sp.Buf == Input {
		return Output, 0
	}
	return sp.Buf, sp.Slot
}

// values returns room for n values, until the round is over.
func (m *machine) values(n int) []value {
	if m.used+n > len(m.slab) {
		m.slab, m.used = make([]value, max(n, 2*len(m.slab), 128)), 0 // values of the old one are still in use
		m.terms.budget.take(valueBytes * int64(len(m.slab)))
	}
	out := m.slab[m.used : m.used+n : m.used+n]
	m.used += n
	return out
}

func (m *machine) combine(a, b []value) ([]value, error) {
	out := m.values(len(a))
	for i := range a {
		v, err := m.terms.combine(a[i], b[i])
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// cells finds the state behind a span without a stride. For a slot it is what was put there last, which must have the
// sizes asked for. The Input has a state only when it is the Output.
func (m *machine) cells(rank int, sp *Span) ([]cell, error) {
	r := &m.replicas[rank]
	if sp.Buf != Scratch {
		at := sp.First - r.first
		return r.output[at : at+sp.Count], nil
	}
	if sp.Slot >= len(r.slots) || len(r.slots[sp.Slot].cells) == 0 {
		return nil, &chunkError{sp.First, true, fmt.Errorf("nothing was put into slot %d", sp.Slot)}
	}
	s := &r.slots[sp.Slot]
	at := sp.First - s.base
	if sp.Base != s.base || at+sp.Count > len(s.cells) {
		return nil, &chunkError{sp.First, true,
			fmt.Errorf("slot %d holds chunks %d to %d", sp.Slot, s.base, s.base+len(s.cells)-1)}
	}
	return s.cells[at : at+sp.Count], nil
}

func (m *machine) read(rank int, sp *Span) ([]value, error) {
	values := m.values(sp.Count)
	if sp.Stride == 0 {
		return values, m.readRun(values, rank, sp, sp)
	}
	to := values
	for _, run := range m.runs(sp) {
		if err := m.readRun(to, rank, sp, &run); err != nil {
			return nil, err
		}
		to = to[run.Count:]
	}
	return values, nil
}

// readRun is read of a run, of a span that is it or has it.
func (m *machine) readRun(values []value, rank int, sp, run *Span) error {
	values = values[:run.Count]
	if run.Buf == Input && !m.inPlace {
		for i := range values {
			values[i] = m.terms.leaf(rank, run.First+i)
		}
		return nil
	}
	cells, err := m.cells(rank, run)
	if err != nil {
		return err
	}
	for i := range cells {
		if cells[i].value == none {
			return &chunkError{run.First + i, true, fmt.Errorf("chunk %d of %v was never written", run.First+i, *sp)}
		}
		cells[i].unread = false
		values[i] = cells[i].value
	}
	return nil
}

func (m *machine) write(rank, t int, sp *Span, values []value) error {
	if sp.Buf == Scratch {
		r := &m.replicas[rank]
		if sp.Slot >= len(r.slots) {
			m.terms.budget.take(slotBytes * int64(sp.Slot+1-len(r.slots)))
			r.slots = append(r.slots, make([]slot, sp.Slot+1-len(r.slots))...)
		}
		s := &r.slots[sp.Slot]
		if sp.Base != s.base { // what the slot held is gone
			m.gone(rank, t, sp.Slot)
			s.base, s.cells = sp.Base, s.cells[:0]
		}
		if more := m.end(sp) - sp.Base - len(s.cells); more > 0 {
			had := cap(s.cells)
			s.cells = append(s.cells, make([]cell, more)...)
			m.terms.budget.take(cellBytes * int64(cap(s.cells)-had))
		}
		s.width = max(s.width, len(s.cells))
	}
	if sp.Stride == 0 {
		if err := m.writeRun(rank, t, sp, sp, values); err != nil {
			return err
		}
	} else {
		from := values
		for _, run := range m.runs(sp) {
			if err := m.writeRun(rank, t, sp, &run, from[:run.Count]); err != nil {
				return err
			}
			from = from[run.Count:]
		}
	}
	m.tally.writes(m.terms, rank, values)
	m.way.writes(values)
	return nil
}

// end is one more than the last chunk of a span.
func (m *machine) end(sp *Span) int {
	if sp.Stride == 0 {
		return sp.First + sp.Count
	}
	end := 0
	for _, run := range m.runs(sp) {
		end = max(end, run.First+run.Count)
	}
	return end
}

// writeRun is write of a run, of a span that is it or has it.
func (m *machine) writeRun(rank, t int, sp, run *Span, values []value) error {
	cells, err := m.cells(rank, run)
	if err != nil {
		return err
	}
	for i := range cells {
		if cells[i].unread {
			m.tally.unused(rank, t, func() string {
				return fmt.Sprintf("chunk %d of %v is overwritten before it was read", run.First+i, *sp)
			})
		}
		cells[i] = cell{values[i], true}
	}
	return nil
}

// gone is called before what a slot holds is given up, in round t or atEnd. The tally counts what nobody has read.
func (m *machine) gone(rank, t, slot int) {
	m.way.gone(rank, t, slot)
	if m.tally == nil {
		return
	}
	for _, c := range m.replicas[rank].slots[slot].cells {
		if c.unread {
			m.tally.unused(rank, t, func() string {
				return fmt.Sprintf("what was put into slot %d was never read: %s", slot, m.terms.show(c.value))
			})
		}
	}
}
