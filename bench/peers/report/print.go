package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// writeTables prints what people read.
func writeTables(w io.Writer, n int, tables []table) error {
	var b strings.Builder
	var sockets []table
	for _, t := range tables {
		fmt.Fprintf(&b, "# %s, %d replicas, medians of rounds%s\n", t.collective, n, t.rounds())
		if !t.inMemory() {
			t.writeSockets(&b)
			sockets = append(sockets, t)
			continue
		}
		fmt.Fprintf(&b, "# %10s %12s %12s  %-12s %10s %12s %11s\n",
			"size", "ours", "best peer", "which", "peer/ours", "floor", "ours/floor")
		fmt.Fprintf(&b, "# %10s %12s %12s  %-12s %10s %12s %11s\n", "(B)", "(us)", "(us)", "", "", "(us)", "")
		var ratios, floors, large []float64
		slower, worst := 0, 0.0
		for _, r := range t.rows {
			ours := r.ours[0]
			vsPeer, vsFloor := ratio(r.peer, ours), ratio(ours, r.floor[0])
			ratios, floors = append(ratios, vsPeer), append(floors, vsFloor)
			if vsPeer > 0 && vsPeer < 1 {
				slower++
			}
			if r.bytes >= 32<<10 {
				large, worst = append(large, vsFloor), max(worst, vsFloor)
			}
			fmt.Fprintf(&b, "  %10d %12s %12s  %-12s %10s %12s %11s\n",
				r.bytes, digits(ours), digits(r.peer), r.config, digits(vsPeer), digits(r.floor[0]), digits(vsFloor))
		}
		fmt.Fprintf(&b, "# geometric mean: peer/ours %s, slower at %d of %d sizes",
			digits(geometric(ratios)), slower, len(t.rows))
		if g := geometric(floors); g > 0 {
			fmt.Fprintf(&b, "; ours/floor %s, from 32 KiB up %s, at worst %s",
				digits(g), digits(geometric(large)), digits(worst))
		}
		fmt.Fprintf(&b, "\n\n")
		t.rewritten(&b)
	}
	if len(sockets) > 1 {
		fmt.Fprintf(&b, "# all collectives: %s\n", means(sockets))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// inMemory reports whether ours shared memory, as goroutines or as processes. Their floor is that of threads.
func (t *table) inMemory() bool {
	return len(t.transports) == 1 && floorOf(t.transports[0]) == memoryFloor
}

// writeSockets prints the rows of replicas over sockets, of which there are several kinds. The floor of each kind is
// what its sockets alone can do.
func (t *table) writeSockets(b *strings.Builder) {
	fmt.Fprintf(b, "# %10s", "size")
	for _, name := range t.transports {
		fmt.Fprintf(b, " %12s", name)
	}
	fmt.Fprintf(b, " %12s  %-12s", "best peer", "which")
	for _, name := range t.transports {
		fmt.Fprintf(b, " %10s", "peer/"+name)
	}
	for _, name := range t.transports {
		fmt.Fprintf(b, " %11s", name+"/floor")
	}
	fmt.Fprintf(b, "\n# %10s%s\n", "(B)", strings.Repeat(fmt.Sprintf(" %12s", "(us)"), len(t.transports)+1))
	for _, r := range t.rows {
		fmt.Fprintf(b, "  %10d", r.bytes)
		for _, ours := range r.ours {
			fmt.Fprintf(b, " %12s", digits(ours))
		}
		fmt.Fprintf(b, " %12s  %-12s", digits(r.peer), r.config)
		for _, ours := range r.ours {
			fmt.Fprintf(b, " %10s", digits(ratio(r.peer, ours)))
		}
		for i, ours := range r.ours {
			fmt.Fprintf(b, " %11s", digits(ratio(ours, r.floor[i])))
		}
		fmt.Fprintln(b)
	}
	fmt.Fprintf(b, "# %s\n\n", means([]table{*t}))
	t.rewritten(b)
}

// means sums up tables that have the same transports: the ratio for each over all their rows, and what it would be for
// the floor.
func means(tables []table) string {
	var out []string
	for i, name := range tables[0].transports {
		var ratios, floors []float64
		slower, worst := 0, math.Inf(1)
		for _, t := range tables {
			for _, r := range t.rows {
				floors = append(floors, ratio(r.peer, r.floor[i]))
				v := ratio(r.peer, r.ours[i])
				if v == 0 {
					continue
				}
				ratios, worst = append(ratios, v), min(worst, v)
				if v < 1 {
					slower++
				}
			}
		}
		if len(ratios) > 0 {
			text := fmt.Sprintf("peer/%s %s, slower at %d of %d, at worst %s",
				name, digits(geometric(ratios)), slower, len(ratios), digits(worst))
			if g := geometric(floors); g > 0 {
				text += ", peer/floor " + digits(g)
			}
			out = append(out, text)
		}
	}
	return "geometric mean: " + strings.Join(out, "; ")
}

// rounds says which rounds were used, and what the machine was like in each.
func (t *table) rounds() string {
	var list []string
	for _, ns := range t.latencies {
		list = append(list, digits(ns))
	}
	text := "\n# core to core latency by round (ns): " + strings.Join(list, " ")
	switch {
	case t.slow:
		return text + fmt.Sprintf("; %d or more in all: none was left out", slowNanos)
	case len(t.used) < len(t.latencies):
		return text + fmt.Sprintf("; left out the %d with %d or more", len(t.latencies)-len(t.used), slowNanos)
	}
	return text
}

// digits prints a number that is not known as a dash, others with two places after the point, and fewer the larger it
// is.
func digits(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v >= 1e4:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// writeCSV writes the same for programs, with empty fields for what is not known.
func writeCSV(w io.Writer, n int, tables []table) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"collective", "n", "bytes",
		"ours_us", "peer_us", "peer", "peer_over_ours", "floor_us", "ours_over_floor", "rounds", "rounds_used",
		"transport", "ours_dirty_us", "peer_dirty_us", "peer_dirty"}}
	for _, t := range tables {
		for _, r := range t.rows {
			for i, ours := range r.ours {
				lines = append(lines, []string{t.collective, strconv.Itoa(n), strconv.Itoa(r.bytes), known(ours),
					known(r.peer), r.config, known(ratio(r.peer, ours)),
					known(r.floor[i]), known(ratio(ours, r.floor[i])), strconv.Itoa(len(t.latencies)),
					strconv.Itoa(len(t.used)), t.transports[i], known(r.dirty[i]), known(r.peerDirty), r.dirtyConfig})
			}
		}
	}
	return out.WriteAll(lines)
}

// known is a number for programs, "" for one that is not known.
func known(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 4, 64)
}
