package schedule

import "fmt"

// cell is the state of one chunk of one buffer.
type cell struct {
	value  value
	unread bool // written, and not read since
}

// slot is the state of one scratch slot: its cells from chunk base on. One without cells was never written.
type slot struct {
	base  int
	cells []cell
}

// replica is the state of one rank.
type replica struct {
	input, output []cell // the same memory when Output is Input
	slots         []slot // by number
}

// machine runs a schedule on symbols, all ranks one round at a time. Real replicas run ahead of each other, but what a
// message carries is fixed by its round's number, and nothing in flight is written, so the order does not matter.
type machine struct {
	*Schedule
	contract Contract
	terms    *terms
	inPlace  bool
	replicas []replica

	mail []mailbox // under way in this round, by from*Size + to
	used []int     // the indexes of mail in use
	slab []value   // room for values; handed out from the front

	slabSize int // values that the last slab was made for

	turn    int // counts the calls of checkFlight
	touched []touch
	bases   []touch // of slots: by is the base
}

// run carries out s and checks the outcome.
func run(s *Schedule, inPlace bool) (Report, error) {
	c := s.Collective.Contract()
	m := &machine{Schedule: s, contract: c, terms: newTerms(s.Size, s.Chunks, s.Again || c.Again), inPlace: inPlace,
		replicas: make([]replica, s.Size), mail: make([]mailbox, s.Size*s.Size)}
	for rank := range m.replicas {
		m.replicas[rank] = m.initial(rank)
	}
	report := Report{Sent: make([]int, s.Size)}
	for _, p := range s.Programs {
		report.Rounds = max(report.Rounds, len(p))
	}
	for t := range report.Rounds {
		if err := m.round(t, t == report.Rounds-1, report.Sent); err != nil {
			return Report{}, err
		}
	}
	if err := m.outcome(&report); err != nil {
		return Report{}, err
	}
	return report, nil
}

// initial is the state of a rank before the first round: its contributions in the Input, and nothing elsewhere.
func (m *machine) initial(rank int) replica {
	r := replica{input: make([]cell, m.Chunks)}
	lo, hi := m.contract.Input.chunks(rank, m.Root, m.Size, m.Chunks)
	for f := lo; f < hi; f++ {
		r.input[f].value = m.terms.leaf(rank, f)
	}
	r.output = r.input
	if !m.inPlace {
		r.output = make([]cell, m.Chunks)
	}
	return r
}

// message is what a send has put on its way.
type message struct {
	step   Step
	values []value
}

// mailbox holds the messages from one rank to another in one round.
type mailbox struct {
	messages []message
	taken    int
}

// round carries out round t of all ranks, which may be the last, and counts the chunks that each sends.
func (m *machine) round(t int, last bool, sent []int) error {
	for _, i := range m.used {
		m.mail[i] = mailbox{messages: m.mail[i].messages[:0]}
	}
	m.used = m.used[:0]
	for rank, p := range m.Programs {
		if t >= len(p) {
			continue
		}
		if err := m.checkFlight(p[t].Moves); err != nil {
			return fmt.Errorf("schedule: rank %d round %d: %w", rank, t, err)
		}
		if !last {
			if i, err := m.checkThen(p[t].Then, p[t].Moves); err != nil {
				return stepError(rank, t, "then", i, p[t].Then[i], err)
			}
		}
		for i, st := range p[t].Moves {
			if st.Verb != Send {
				continue
			}
			if err := m.send(rank, st); err != nil {
				return stepError(rank, t, "move", i, st, err)
			}
			sent[rank] += st.Src.Count
		}
	}
	for rank, p := range m.Programs {
		if t >= len(p) {
			continue
		}
		for i, st := range p[t].Moves {
			if err := m.move(rank, st); err != nil {
				return stepError(rank, t, "move", i, st, err)
			}
		}
		for i, st := range p[t].Then {
			if err := m.local(rank, st); err != nil {
				return stepError(rank, t, "then", i, st, err)
			}
		}
	}
	for _, i := range m.used {
		if box := m.mail[i]; box.taken < len(box.messages) {
			return fmt.Errorf("schedule: rank %d round %d: deadlock: rank %d never receives (%v)",
				i/m.Size, t, i%m.Size, box.messages[box.taken].step)
		}
	}
	return nil
}

// send puts a message on its way.
func (m *machine) send(rank int, st Step) error {
	values, err := m.read(rank, st.Src)
	if err != nil {
		return err
	}
	i := rank*m.Size + st.Peer
	box := &m.mail[i]
	if len(box.messages) == 0 {
		m.used = append(m.used, i)
	}
	box.messages = append(box.messages, message{st, values})
	return nil
}

// move carries out one step of the moves; sends are done already.
func (m *machine) move(rank int, st Step) error {
	switch st.Verb {
	case Send:
		return nil
	case Fold:
		return m.local(rank, st)
	}
	box := &m.mail[st.Peer*m.Size+rank]
	if box.taken == len(box.messages) {
		return fmt.Errorf("deadlock: rank %d never sends it", st.Peer)
	}
	msg := box.messages[box.taken]
	box.taken++
	if !sameSizes(m.Schedule, msg.step.Src, st.Dst) {
		return fmt.Errorf("the message (%v) has chunks of other sizes", msg.step)
	}
	values := msg.values
	if st.Verb == RecvReduce {
		own, err := m.read(rank, st.Src)
		if err != nil {
			return err
		}
		if values, err = m.combine(own, values); err != nil {
			return err
		}
	}
	return m.write(rank, st.Dst, values)
}

// local carries out a Copy or a Fold.
func (m *machine) local(rank int, st Step) error {
	if m.isNothing(st) {
		return nil
	}
	values, err := m.read(rank, st.Src)
	if err != nil {
		return err
	}
	if st.Verb == Fold {
		have, err := m.read(rank, st.Dst)
		if err != nil {
			return err
		}
		if values, err = m.combine(have, values); err != nil {
			return err
		}
	}
	return m.write(rank, st.Dst, values)
}

// isNothing reports whether a step copies Input to Output where they are the same.
func (m *machine) isNothing(st Step) bool {
	return st.Verb == Copy && m.inPlace && st.Src.Buf == Input && m.samePlace(st.Src, st.Dst)
}

// values returns room for n values.
func (m *machine) values(n int) []value {
	if len(m.slab) < n {
		m.slabSize = min(max(2*m.slabSize, 128), 4096)
		m.slab = make([]value, max(n, m.slabSize))
	}
	out := m.slab[:n:n]
	m.slab = m.slab[n:]
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

// cells finds the state behind a span. For a slot it is what was put there last, which must have the sizes asked for.
func (m *machine) cells(rank int, sp Span) ([]cell, error) {
	r := &m.replicas[rank]
	switch sp.Buf {
	case Input:
		return r.input[sp.First : sp.First+sp.Count], nil
	case Output:
		return r.output[sp.First : sp.First+sp.Count], nil
	}
	if sp.Slot >= len(r.slots) || len(r.slots[sp.Slot].cells) == 0 {
		return nil, fmt.Errorf("nothing was put into slot %d", sp.Slot)
	}
	s := &r.slots[sp.Slot]
	at := sp.First - s.base
	if sp.Base != s.base || at+sp.Count > len(s.cells) {
		return nil, fmt.Errorf("slot %d holds chunks %d to %d", sp.Slot, s.base, s.base+len(s.cells)-1)
	}
	return s.cells[at : at+sp.Count], nil
}

func (m *machine) read(rank int, sp Span) ([]value, error) {
	cells, err := m.cells(rank, sp)
	if err != nil {
		return nil, err
	}
	values := m.values(len(cells))
	for i := range cells {
		if cells[i].value == none {
			return nil, fmt.Errorf("chunk %d of %v was never written", sp.First+i, sp)
		}
		cells[i].unread = false
		values[i] = cells[i].value
	}
	return values, nil
}

func (m *machine) write(rank int, sp Span, values []value) error {
	if sp.Buf == Scratch {
		r := &m.replicas[rank]
		for sp.Slot >= len(r.slots) {
			r.slots = append(r.slots, slot{})
		}
		s := &r.slots[sp.Slot]
		if sp.Base != s.base { // what the slot held is gone
			if err := wasted(s.cells, sp.Slot); err != nil {
				return err
			}
			s.base, s.cells = sp.Base, s.cells[:0]
		}
		for len(s.cells) < sp.First-sp.Base+sp.Count {
			s.cells = append(s.cells, cell{})
		}
	}
	cells, err := m.cells(rank, sp)
	if err != nil {
		return err
	}
	for i := range cells {
		if cells[i].unread {
			return fmt.Errorf("chunk %d of %v is overwritten before it was read", sp.First+i, sp)
		}
		cells[i] = cell{values[i], true}
	}
	return nil
}

// wasted says whether a slot holds something that nobody read.
func wasted(cells []cell, slot int) error {
	for _, c := range cells {
		if c.unread {
			return fmt.Errorf("what was put into slot %d was never read", slot)
		}
	}
	return nil
}
