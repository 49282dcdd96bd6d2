package schedule

import "fmt"

// wants is what outputs are to hold in the end: by the Contract of a built-in collective, or by the lists of a
// program's own. All but each are about the chunk that each has come to.
type wants interface {
	each(rank int, do func(chunk int)) // the chunks of a rank's output
	has(v value) bool                  // v is what the chunk is to be
	text() string                      // the same for people
	from() (chunk int, ranks []int)    // the same: whose contributions, and to which chunk
	first(have value) value            // the first expression of it that was seen; have, if there is none before
	fold() value                       // the left fold of its contributions in rank order, absent if nobody has made it
}

// outcome checks what every rank holds in the end, and completes the report.
func (m *machine) outcome(report *Report) (err error) {
	w := m.wants()
	for rank := range m.replicas {
		w.each(rank, func(f int) {
			if err == nil && (m.fault == nil || f == m.fault.chunk) {
				err = m.holds(rank, f, w, report)
			}
		})
		if err != nil {
			return err
		}
	}
	for rank := range m.replicas {
		r, scratch := &m.replicas[rank], 0
		for id := range r.slots {
			scratch += r.slots[id].width
			m.gone(rank, atEnd, id)
		}
		if !m.inPlace {
			report.Scratch = max(report.Scratch, scratch)
		}
	}
	return nil
}

// wants are those of the schedule's contract.
func (m *machine) wants() wants {
	if m.Custom != nil {
		return newWanting(m.terms, m.Custom)
	}
	return &builtinWants{machine: m, seen: make([]value, m.Chunks)}
}

// holds checks a chunk of a rank's output.
func (m *machine) holds(rank, f int, w wants, report *Report) error {
	have := m.held(rank, f)
	if !w.has(have) {
		return &cellError{rank: rank, round: atEnd, error: &chunkError{chunk: f, error: fmt.Errorf(
			"schedule: rank %d ends with %s as chunk %d of the output, want %s", rank, m.terms.show(have), f, w.text())}}
	}
	if m.contract.Combines {
		m.order(report, rank, f, w.first(have))
		m.rankOrder(report, rank, f, w.fold)
	}
	return nil
}

// builtinWants are those of a built-in collective.
type builtinWants struct {
	*machine
	seen        []value // of each chunk, the first expression
	rank, chunk int
}

func (w *builtinWants) each(rank int, do func(chunk int)) {
	w.rank = rank
	lo, hi := w.contract.Output.chunks(rank, w.Root, w.Size, w.Chunks)
	for f := lo; f < hi; f++ {
		w.chunk = f
		do(f)
	}
}

func (w *builtinWants) has(v value) bool {
	if w.contract.Combines {
		return w.terms.complete(v, w.chunk)
	}
	return v == w.moved()
}

// moved is the chunk, of a collective that only moves data.
func (w *builtinWants) moved() value {
	return w.terms.leaf(w.contract.source(w.rank, w.Root, w.chunk, w.Chunks/w.Size))
}

func (w *builtinWants) text() string {
	if w.contract.Combines {
		return fmt.Sprintf("chunk %d of all %d ranks", w.chunk, w.Size)
	}
	return w.terms.show(w.moved())
}

func (w *builtinWants) from() (chunk int, ranks []int) {
	if !w.contract.Combines {
		rank, number := w.contract.source(w.rank, w.Root, w.chunk, w.Chunks/w.Size)
		return number, []int{rank}
	}
	for rank := range w.Size {
		ranks = append(ranks, rank)
	}
	return w.chunk, ranks
}

func (w *builtinWants) first(have value) value {
	if w.seen[w.chunk] == none {
		w.seen[w.chunk] = have
	}
	return w.seen[w.chunk]
}

func (w *builtinWants) fold() value { return w.terms.fold(w.chunk) }

// order notes whether a rank holds a chunk of the result in the same order as the first rank that was looked at.
func (m *machine) order(report *Report, rank, f int, first value) {
	have := m.held(rank, f)
	if have == first || !report.OneOrder {
		return
	}
	report.OneOrder = false
	other := 0
	for m.held(other, f) != first {
		other++
	}
	report.Order = fmt.Sprintf("chunk %d is combined in one order at rank %d and in another at rank %d", f, other, rank)
	if a, b := m.terms.operands(first), m.terms.operands(have); a != "" && b != "" {
		report.Order = fmt.Sprintf("chunk %d is %s at rank %d and %s at rank %d", f, a, other, b, rank)
	}
}

// rankOrder notes whether a rank holds a chunk of the result as the left fold of the contributions in rank order, which
// fold finds. That is asked no longer once it fails.
func (m *machine) rankOrder(report *Report, rank, f int, fold func() value) {
	have := m.held(rank, f)
	if !report.RankOrder || have == fold() {
		return
	}
	report.RankOrder = false
	if !report.OneOrder {
		return // Order says that
	}
	report.Order = fmt.Sprintf("chunk %d at rank %d", f, rank)
	if a := m.terms.operands(have); a != "" {
		report.Order = fmt.Sprintf("chunk %d is %s at rank %d", f, a, rank)
	}
}

// held is what a rank has as a chunk of the output; none where it has no such chunk.
func (m *machine) held(rank, f int) value {
	r := &m.replicas[rank]
	if f < r.first || f >= r.first+len(r.output) {
		return none
	}
	return r.output[f-r.first].value
}
