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
		scratch := 0
		for id := range r.slots {
			scratch += r.slots[id].width
			if err := m.gone(rank, atEnd, id); err != nil {
				return fmt.Errorf("schedule: rank %d, at the end: %w", rank, err)
			}
		}
		if !m.inPlace {
			report.Scratch = max(report.Scratch, scratch)
		}
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
				report.OneOrder = report.OneOrder && have == first[f]
				report.RankOrder = report.RankOrder && have == m.terms.fold(f)
				continue
			}
			if want := m.wanted(rank, f); have != want {
				return &chunkError{f, fmt.Errorf("schedule: rank %d ends with %s as chunk %d of the output, want %s",
					rank, m.terms.show(have), f, m.terms.show(want))}
			}
		}
	}
	return nil
}

// wanted is what rank must hold as chunk f of the output of a collective that only moves data.
func (m *machine) wanted(rank, f int) value {
	return m.terms.leaf(m.contract.source(rank, m.Root, f, m.Chunks/m.Size))
}
