package schedule

import "fmt"

// outcome checks what every rank holds in the end, and completes the report.
func (m *machine) outcome(report *Report) error {
	first := make([]value, m.Chunks) // of each chunk, the first expression seen
	var wants *wanting
	if m.Custom != nil {
		wants = newWanting(m.terms)
	}
	for rank := range m.replicas {
		r := &m.replicas[rank]
		if m.Custom != nil {
			if err := m.customOutcome(rank, wants, report); err != nil {
				return err
			}
			continue
		}
		lo, hi := m.contract.Output.chunks(rank, m.Root, m.Size, m.Chunks)
		for f := lo; f < hi; f++ {
			if m.fault != nil && f != m.fault.chunk {
				continue
			}
			have := r.output[f-r.first].value
			if m.contract.Combines {
				if !m.terms.complete(have, f) {
					return &chunkError{f, fmt.Errorf("schedule: rank %d ends with %s as chunk %d of the output, want "+
						"chunk %d of all %d ranks", rank, m.terms.show(have), f, f, m.Size)}
				}
				if first[f] == none {
					first[f] = have
				}
				m.order(report, rank, f, first[f])
				m.rankOrder(report, rank, f, m.terms.fold)
				continue
			}
			if want := m.wanted(rank, f); have != want {
				return &chunkError{f, fmt.Errorf("schedule: rank %d ends with %s as chunk %d of the output, want %s",
					rank, m.terms.show(have), f, m.terms.show(want))}
			}
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
func (m *machine) rankOrder(report *Report, rank, f int, fold func(chunk int) value) {
	have := m.held(rank, f)
	if !report.RankOrder || have == fold(f) {
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

// wanted is what rank must hold as chunk f of the output of a collective that only moves data.
func (m *machine) wanted(rank, f int) value {
	return m.terms.leaf(m.contract.source(rank, m.Root, f, m.Chunks/m.Size))
}
