package main

import (
	"fmt"
	"strings"
)

// pair are two times of one size in microseconds, 0 where one is not known.
type pair struct {
	clean float64 // on the same inputs again and again
	dirty float64 // after each replica has rewritten its input
}

// dirtyRow is one size.
type dirtyRow struct {
	bytes int
	pairs []pair // one for each of the names, ours first
	which string // how the peer ran whose dirty time it is; "" where there is one way
}

// writeDirty prints, where dirty times are known, a table with both times of each that was measured. The ratios are of
// dirty times: that of the last of the names by each of the first ones, as many as are ours.
func writeDirty(b *strings.Builder, names []string, ours int, rows []dirtyRow) {
	last, known, which := len(names)-1, false, 0
	for _, r := range rows {
		if r.which != "" {
			which = 14
		}
		for _, p := range r.pairs {
			known = known || p.dirty > 0
		}
	}
	if !known {
		return
	}
	fmt.Fprintf(b, "# clean: the same inputs again and again; dirty: each replica has rewritten its input before the call\n")
	fmt.Fprintf(b, "# %10s", "size")
	for _, name := range names {
		fmt.Fprintf(b, " %20s", name)
	}
	if which > 0 {
		fmt.Fprintf(b, "  %-12s", "which, dirty")
	}
	for _, name := range names[:ours] {
		fmt.Fprintf(b, " %16s", names[last]+"/"+name)
	}
	pairs := strings.Repeat(fmt.Sprintf(" %10s%10s", "clean (us)", "dirty"), len(names))
	fmt.Fprintf(b, "\n# %10s%s%*s%s\n", "(B)", pairs, which, "", strings.Repeat(fmt.Sprintf(" %16s", "dirty"), ours))
	ratios, slower := make([][]float64, ours), make([][]float64, len(names))
	for _, r := range rows {
		fmt.Fprintf(b, "  %10d", r.bytes)
		for i, p := range r.pairs {
			fmt.Fprintf(b, " %10s%10s", digits(p.clean), digits(p.dirty))
			slower[i] = append(slower[i], ratio(p.dirty, p.clean))
		}
		if which > 0 {
			fmt.Fprintf(b, "  %-12s", r.which)
		}
		for i := range ours {
			v := ratio(r.pairs[last].dirty, r.pairs[i].dirty)
			ratios[i] = append(ratios[i], v)
			fmt.Fprintf(b, " %16s", digits(v))
		}
		b.WriteByte('\n')
	}
	var text []string
	for i, name := range names[:ours] {
		text = append(text, fmt.Sprintf("%s/%s %s", names[last], name, digits(geometric(ratios[i]))))
	}
	for i, name := range names {
		text = append(text, fmt.Sprintf("dirty/clean of %s %s", name, digits(geometric(slower[i]))))
	}
	fmt.Fprintf(b, "# geometric mean, dirty: %s\n\n", strings.Join(text, "; "))
}

// rewritten prints that of ours and of the best peer.
func (t *table) rewritten(b *strings.Builder) {
	var names []string
	for _, name := range t.transports {
		if t.inMemory() {
			name = "ours"
		}
		names = append(names, name)
	}
	ours := len(names)
	var rows []dirtyRow
	for _, r := range t.rows {
		d := dirtyRow{bytes: r.bytes, which: r.dirtyConfig}
		for i, clean := range r.ours {
			d.pairs = append(d.pairs, pair{clean, r.dirty[i]})
		}
		d.pairs = append(d.pairs, pair{r.peer, r.peerDirty})
		rows = append(rows, d)
	}
	writeDirty(b, append(names, "peer"), ours, rows)
}

// rewritten prints that of both of ours and both of C.
func (t *mpiTable) rewritten(b *strings.Builder) {
	var rows []dirtyRow
	for _, r := range t.rows {
		rows = append(rows, dirtyRow{bytes: r.bytes, pairs: []pair{{r.ours, r.dirty.ours}, {r.native, r.dirty.native},
			{r.nonblocking, r.dirty.nonblocking}, {r.blocking, r.dirty.blocking}}})
	}
	writeDirty(b, []string{"ours", "native", "C nb", "C bl"}, 2, rows)
}
