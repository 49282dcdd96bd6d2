package gcl

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"gogcl.dev/gcl/internal/price"
	"gogcl.dev/methods"
)

// String prints the explanation: the call, the reason, a table of the candidates in which the chosen one is marked, and
// the methods of the program's own that are none, each with its reason. "of the bound" is Candidate.Reached.
func (e Explanation) String() string {
	var b strings.Builder
	elements := int64(0)
	if size := e.DType.Size(); size > 0 {
		elements = e.Bytes / int64(size)
	}
	machine := e.Machine
	if e.Links != "" {
		machine += "; by " + e.Links
	}
	fmt.Fprintf(&b, "%v of %d bytes (%v x %d) over %s; %s\n%s\n",
		e.Collective, e.Bytes, e.DType, elements, price.Ranks(e.Ranks), machine, e.Why)
	if len(e.Candidates) == 0 {
		return b.String()
	}
	rows := [][]string{{"", "method", "implementation", "rounds", "barriers", "bytes sent", "estimate",
		"of the bound"}}
	for _, c := range e.Candidates {
		mark := ""
		if c.Chosen {
			mark = "*"
		}
		row := []string{mark, c.Method.String(), c.Implementation.String(),
			fmt.Sprint(c.Rounds), fmt.Sprint(c.Barriers), fmt.Sprint(c.SentBytes), rounded(c.Estimate).String(), "-"}
		if c.Reached > 0 {
			row[7] = fmt.Sprintf("%.0f %%", 100*c.Reached)
		}
		if c.Method == methods.Native { // only the agreement on the call has a price
			row[3], row[4], row[5], row[6] = row[3]+" + ?", "?", "?", row[6]+" + ?"
		}
		rows = append(rows, row)
	}
	const words = 3 // columns that begin at the left
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	b.WriteByte('\n')
	for _, row := range rows {
		for i, cell := range row {
			switch {
			case i == 0:
				fmt.Fprintf(&b, "%-1s", cell)
			case i < words:
				fmt.Fprintf(&b, " %-*s", widths[i], cell)
			default:
				fmt.Fprintf(&b, "  %*s", widths[i], cell)
			}
		}
		b.WriteByte('\n')
	}
	for _, s := range e.Skipped {
		fmt.Fprintf(&b, "no candidate: %v: %v\n", s.Method, s.Reason)
	}
	return b.String()
}

// rounded has three digits, which is more than an estimate is worth.
func rounded(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
