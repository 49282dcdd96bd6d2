package schedule

import "fmt"

// outcome checks what every rank holds in the end, and completes the report.
func (m *machine) outcome(report *Report) error {
	report.OneOrder, report.RankOrder = true, true
	first := make([]value, m.Chunks) // of each chunk, the first expression seen
	for rank := range m.replicas {
		r := &m.replicas[rank]
		for id, s := range r.slots {
			if err := wasted(s.cells, id); err != nil {
				return fmt.Errorf("schedule: rank %d, at the end: %w", rank, err)
			}
		}
		per := m.Chunks / m.Size
		for f := range m.Chunks {
			if m.Collective == ReduceScatter && f/per != rank {
				continue
			}
			have := r.output[f].value
			if m.reduces() {
				if len(m.terms.contributors(have)) != m.Size || m.terms.list[have].chunk != f {
					return fmt.Errorf("schedule: rank %d ends with %s as chunk %d of the output, want chunk %d of all %d ranks",
						rank, m.terms.show(have), f, f, m.Size)
				}
				if first[f] == none {
					first[f] = have
				}
				report.OneOrder = report.OneOrder && have == first[f]
				report.RankOrder = report.RankOrder && have == m.terms.fold(f)
				continue
			}
			if want := m.wanted(rank, f); have != want {
				return fmt.Errorf("schedule: rank %d ends with %s as chunk %d of the output, want %s", rank, m.terms.show(have), f, m.terms.show(want))
			}
		}
	}
	return nil
}

// reduces reports whether the collective combines contributions.
func (m *machine) reduces() bool { return m.Collective == AllReduce || m.Collective == ReduceScatter }

// wanted is what rank must hold as chunk f of the output of a collective that only moves data.
func (m *machine) wanted(rank, f int) value {
	per := m.Chunks / m.Size
	switch m.Collective {
	case AllGather:
		return m.terms.leaf(f/per, f)
	case AllToAll:
		return m.terms.leaf(f/per, rank*per+f%per)
	default: // Broadcast
		return m.terms.leaf(m.Root, f)
	}
}
