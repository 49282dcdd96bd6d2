package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// writeTables prints what people read.
func writeTables(w io.Writer, n int, tables []table) error {
	var b strings.Builder
	for _, t := range tables {
		fmt.Fprintf(&b, "# %s, %d replicas, medians of rounds%s\n", t.collective, n, t.rounds())
		fmt.Fprintf(&b, "# %10s %12s %12s  %-12s %10s %12s %11s\n",
			"size", "ours", "best peer", "which", "peer/ours", "floor", "ours/floor")
		fmt.Fprintf(&b, "# %10s %12s %12s  %-12s %10s %12s %11s\n", "(B)", "(us)", "(us)", "", "", "(us)", "")
		var ratios, floors, large []float64
		slower, worst := 0, 0.0
		for _, r := range t.rows {
			vsPeer, vsFloor := ratio(r.peer, r.ours), ratio(r.ours, r.floor)
			ratios, floors = append(ratios, vsPeer), append(floors, vsFloor)
			if vsPeer > 0 && vsPeer < 1 {
				slower++
			}
			if r.bytes >= 32<<10 {
				large, worst = append(large, vsFloor), max(worst, vsFloor)
			}
			fmt.Fprintf(&b, "  %10d %12s %12s  %-12s %10s %12s %11s\n",
				r.bytes, digits(r.ours), digits(r.peer), r.config, digits(vsPeer), digits(r.floor), digits(vsFloor))
		}
		fmt.Fprintf(&b, "# geometric mean: peer/ours %s, slower at %d of %d sizes",
			digits(geometric(ratios)), slower, len(t.rows))
		if g := geometric(floors); g > 0 {
			fmt.Fprintf(&b, "; ours/floor %s, from 32 KiB up %s, at worst %s",
				digits(g), digits(geometric(large)), digits(worst))
		}
		fmt.Fprintf(&b, "\n\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
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
		"ours_us", "peer_us", "peer", "peer_over_ours", "floor_us", "ours_over_floor", "rounds", "rounds_used"}}
	field := func(v float64) string {
		if v == 0 {
			return ""
		}
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
	for _, t := range tables {
		for _, r := range t.rows {
			lines = append(lines, []string{t.collective, strconv.Itoa(n), strconv.Itoa(r.bytes), field(r.ours),
				field(r.peer), r.config, field(ratio(r.peer, r.ours)),
				field(r.floor), field(ratio(r.ours, r.floor)), strconv.Itoa(len(t.latencies)),
				strconv.Itoa(len(t.used))})
		}
	}
	return out.WriteAll(lines)
}
