package popops

import "slices"

// tableMapping is who has which elements of the table: those that updates of the most look-ups leave to a worker, or
// where there are none, entries shared out.
func (p *Plan) tableMapping(w *window) Mapping {
	how := p.choices[len(p.choices)-1].update
	if p.options.NotForUpdate {
		how.workers, how.by = p.choices[len(p.choices)-1].slice.workers, byRows
	}
	return p.mapping(w, how, p.entries)
}

// sliceMapping is who has which elements of n slices: those that look-ups leave to a worker, or in a plan for updates
// only, those that updates do, which are look-ups shared out where rows of the table are.
func (p *Plan) sliceMapping(w *window, n int) Mapping {
	i, _ := slices.BinarySearch(p.lookUps, n)
	how := p.choices[i].slice
	if p.options.NotForSlice {
		how = p.choices[i].update
		if how.by == byRows {
			how.by = byLookUps
		}
	}
	return p.mapping(w, how, n)
}

// mapping is who has which elements of a table, or of slices, by how a call with n entries, or look-ups, is split.
func (p *Plan) mapping(w *window, how how, n int) Mapping {
	outer, inner := w.around(w.dims[0])
	size := p.dtype.Size()
	m := make(Mapping, p.crews.workers)
	if outer == 0 || inner == 0 || n == 0 {
		return m
	}
	call := rowCall{groups: p.groups, n: n, entries: n, outer: outer, inner: inner * size}
	parts := make([]part, how.workers)
	for i := range parts {
		parts[i] = how.part(&call, i)
	}
	at := 0
	for g := range p.groups {
		table := how.by != byLookUps
		for x := range outer * n { // a table lies by outer, entry; slices by look-up, outer
			row := g*n + x%n
			if !table {
				row = g*n + x/outer
			}
			for i := range parts {
				q := &parts[i]
				rows := q.rows
				if how.by == byLookUps {
					rows = q.lookUps
				}
				if rows[0] <= row && row < rows[1] {
					m.add(i, at+q.columns[0]/size, at+q.columns[1]/size)
				}
			}
			at += inner
		}
	}
	return m
}
