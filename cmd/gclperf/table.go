package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// table prints what nccl-tests prints, column for column, and to the right of it p50, p90, p99 and allocations in both
// places. Each collective, method and implementation has a table of its own.
type table struct {
	to       io.Writer
	settings *settings

	row    []measurement // of one size, until it has all places
	latest measurement   // of the row before
	busbw  float64       // sum over rows since the header
	rows   int
	wrong  int
	err    error
}

func (t *table) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.to, format, args...)
	}
}

func (t *table) add(m measurement) error {
	if m.Collective != t.latest.Collective || m.Method != t.latest.Method ||
		m.Implementation != t.latest.Implementation {
		t.foot()
		t.head(m)
	}
	t.latest = m
	t.row = append(t.row, m)
	if len(t.row) == len(t.settings.places) {
		t.line()
	}
	return t.err
}

func (t *table) end() error {
	t.row = nil
	t.foot()
	return t.err
}

// head prints what a table is about, and its columns.
func (t *table) head(m measurement) {
	s := t.settings
	reproducible := ""
	if s.reproducible {
		reproducible = ", reproducible"
	}
	mode := fmt.Sprintf("calls back to back for %v", s.time)
	switch {
	case s.iters == 1:
		mode = "1 call back to back"
	case s.iters > 0:
		mode = fmt.Sprintf("%d calls back to back", s.iters)
	}
	if s.sync {
		mode = strings.Replace(mode, "back to back", "with a barrier before each", 1)
	}
	if s.batch {
		mode += " by a Batch"
	}
	t.printf("# gclperf %s, %d replicas, transport %s, method %s, implementation %s%s\n",
		m.Collective, m.N, m.Transport, m.Method, m.Implementation, reproducible)
	if overrides := os.Getenv("GCL_OPTIONS"); overrides != "" {
		t.printf("# GCL_OPTIONS=%s overrides the flags\n", strings.Join(strings.Fields(overrides), " "))
	}
	t.printf("# %s; time is p50; one call before and one after are checked\n#\n", mode)
	t.printf("#%71s%36s%36s%36s\n", "out-of-place", "in-place", "out-of-place", "in-place")
	t.printf("# %10s %12s %9s %11s %6s", "size", "count", "type", "redop", "root")
	for range 2 {
		t.printf(" %10s %7s %7s %8s", "time", "algbw", "busbw", "#wrong")
	}
	for range 2 {
		t.printf(" %9s %9s %9s %6s", "p50", "p90", "p99", "allocs")
	}
	t.printf("\n# %10s %12s %9s %11s %6s", "(B)", "(elements)", "", "", "")
	for range 2 {
		t.printf(" %10s %7s %7s %8s", "(us)", "(GB/s)", "(GB/s)", "")
	}
	for range 2 {
		t.printf(" %9s %9s %9s %6s", "(us)", "(us)", "(us)", "")
	}
	t.printf("\n")
}

// line prints a row.
func (t *table) line() {
	m := t.row[0]
	t.printf("  %10d %12d %9s %11s %6d", m.Bytes, m.Count, m.DType, strings.ToLower(m.Op), m.Root)
	both := [2]*measurement{}
	for i := range t.row {
		m := &t.row[i]
		at := 0
		if m.Place == inPlace.String() {
			at = 1
		}
		both[at] = m
		t.busbw += m.BusBW
		t.rows++
		t.wrong += m.Wrong
	}
	for _, m := range both {
		if m == nil {
			t.printf(" %10s %7s %7s %8s", "N/A", "N/A", "N/A", "N/A")
			continue
		}
		t.printf(" %10s %7s %7s %8d", digits(m.P50), digits(m.AlgBW), digits(m.BusBW), m.Wrong)
	}
	for _, m := range both {
		if m == nil {
			t.printf(" %9s %9s %9s %6s", "N/A", "N/A", "N/A", "N/A")
			continue
		}
		t.printf(" %9s %9s %9s %6s", digits(m.P50), digits(m.P90), digits(m.P99), fmt.Sprintf("%.4g", m.Allocs))
	}
	t.printf("\n")
	t.row = t.row[:0]
}

// foot sums up a table.
func (t *table) foot() {
	if t.rows == 0 {
		return
	}
	verdict := "OK"
	if t.wrong > 0 {
		verdict = "FAILED"
	}
	t.printf("# Wrong values         : %d %s\n", t.wrong, verdict)
	t.printf("# Avg bus bandwidth    : %.4f GB/s\n#\n", t.busbw/float64(t.rows))
	t.busbw, t.rows, t.wrong = 0, 0, 0
}

// digits prints a number with two places after the point, and fewer the larger it is.
func digits(v float64) string {
	switch {
	case v >= 1e4:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	case v >= 1 || v == 0:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
