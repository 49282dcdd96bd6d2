package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gogcl.dev/internal/measure"
)

// table prints the columns of nccl-tests, in at most 120 characters. With -v a comment below each row has percentiles
// and allocations. Each collective, method and implementation has a table of its own.
type table struct {
	to       io.Writer
	settings *settings

	all    []measurement // which compare puts side by side
	row    []measurement // of one size, until it has all places
	latest measurement   // of the row before
	busbw  float64       // sum over rows since the header
	rows   int
	wrong  int
	dirty  []float64 // dirty by clean times
	paths  []string  // each once
	load   float64   // sum of those that are known
	loads  int
	err    error
}

func (t *table) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.to, format, args...)
	}
}

func (t *table) add(m measurement) error {
	if m.Transport != t.latest.Transport || m.Collective != t.latest.Collective || m.Method != t.latest.Method ||
		m.Implementation != t.latest.Implementation {
		t.foot()
		t.head(m)
	}
	t.latest = m
	t.all = append(t.all, m)
	t.row = append(t.row, m)
	if len(t.row) == len(t.settings.places) {
		t.line()
	}
	return t.err
}

func (t *table) end() error {
	t.row = nil
	t.foot()
	t.compare()
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
	if t.latest.Collective == "" {
		t.printf("# gclperf %s, %s, %s, %d cores, GOMAXPROCS %d\n#\n",
			m.Version, m.Date, m.Machine, m.Cores, m.GOMAXPROCS)
	}
	t.printf("# gclperf %s, %d replicas, transport %s, method %s, implementation %s%s\n",
		m.Collective, m.N, m.Transport, m.Method, m.Implementation, reproducible)
	if text := measure.Overrides(); text != "" {
		t.printf("# GCL_OPTIONS=%s overrides the flags\n", text)
	}
	t.printf("# %s; time is p50; %s\n", mode, checks(s.tries))
	speed, unit := "algbw", "(GB/s)"
	if s.dirty {
		speed, unit = "dirty", "(us)"
		t.printf("# dirty is p50 of calls by themselves: before each all replicas rewrite their inputs and meet in a barrier\n")
	}
	third, thirdUnit := "busbw", "(GB/s)"
	switch {
	case s.cpu:
		third, thirdUnit = "cpu", "(us)"
		t.printf("# cpu is the processor time of a call, by all replicas together\n")
	case s.simulates():
		third, thirdUnit = "bound", "(%)"
		t.printf("# bound is what part of what the network allows the time is: 100 means that no method is faster\n")
	}
	t.printf("#\n")
	t.printf("#%67s%33s\n", "out-of-place", "in-place")
	t.printf("#%11s %12s %8s %11s %5s", "size", "count", "type", "redop", "root")
	for range 2 {
		t.printf(" %8s %7s %7s %7s", "time", speed, third, "#wrong")
	}
	t.printf("\n#%11s %12s %8s %11s %5s", "(B)", "(elements)", "", "", "")
	for range 2 {
		t.printf(" %8s %7s %7s %7s", "(us)", unit, thirdUnit, "")
	}
	t.printf("\n")
}

// checks says how many calls are checked.
func checks(tries int) string {
	switch tries {
	case 0:
		return "results are not checked"
	case 1:
		return "one call before and one after are checked"
	}
	return fmt.Sprintf("%d calls before and %[1]d after are checked", tries)
}

// line prints a row.
func (t *table) line() {
	m := t.row[0]
	both := [2]*measurement{}
	for i := range t.row {
		m := &t.row[i]
		at := 0
		if m.Place == measure.InPlace.String() {
			at = 1
		}
		both[at] = m
		t.busbw += m.BusBW
		t.rows++
		t.wrong += max(m.Wrong, 0)
		if m.Dirty > 0 {
			t.dirty = append(t.dirty, m.Dirty/m.P50)
		}
		if m.Path != "" && !slices.Contains(t.paths, m.Path) {
			t.paths = append(t.paths, m.Path)
		}
		if m.Load >= 0 {
			t.load += m.Load
			t.loads++
		}
	}
	t.printf("%12d %12d %8s %11s %5d", m.Bytes, m.Count, m.DType, m.Op, m.Root)
	for _, m := range both {
		if m == nil {
			t.printf(" %8s %7s %7s %7s", "N/A", "N/A", "N/A", "N/A")
			continue
		}
		wrong := "N/A"
		if m.Wrong >= 0 {
			wrong = strconv.Itoa(m.Wrong)
		}
		second := m.AlgBW
		if t.settings.dirty {
			second = m.Dirty
		}
		third := measure.Digits(m.BusBW)
		switch {
		case t.settings.cpu && m.CPU < 0:
			third = "N/A"
		case t.settings.cpu:
			third = measure.Digits(m.CPU)
		case t.settings.simulates():
			third = strconv.FormatFloat(100*m.OfBound, 'f', 0, 64)
		}
		t.printf(" %8s %7s %7s %7s", measure.Digits(m.P50), measure.Digits(second), third, wrong)
	}
	t.printf("\n")
	if t.settings.verbose {
		t.more(both)
	}
	t.row = t.row[:0]
}

// more prints a comment below a row, in its columns.
func (t *table) more(both [2]*measurement) {
	t.printf("#%51s", "p90, p99 (us), allocs")
	for _, m := range both {
		if m == nil {
			t.printf(" %8s %7s %7s %7s", "N/A", "N/A", "N/A", "")
			continue
		}
		t.printf(" %8s %7s %7s %7s", measure.Digits(m.P90), measure.Digits(m.P99), count(m.Allocs), "")
	}
	t.printf("\n")
}

// foot sums up a table.
func (t *table) foot() {
	if t.rows == 0 {
		return
	}
	switch {
	case t.settings.tries == 0:
		t.printf("# Wrong values         : not checked\n")
	case t.wrong > 0:
		t.printf("# Wrong values         : %d FAILED\n", t.wrong)
	default:
		t.printf("# Wrong values         : 0 OK\n")
	}
	t.printf("# Avg bus bandwidth    : %.4f GB/s\n", t.busbw/float64(t.rows))
	if len(t.dirty) > 0 {
		t.printf("# Dirty / clean        : %.2f, geometric mean\n", measure.GeometricMean(t.dirty))
	}
	if len(t.paths) > 0 {
		t.printf("# Data went by         : %s\n", strings.Join(t.paths, ", "))
	}
	if t.loads > 0 {
		t.printf("# Avg load             : %.2f cores busy with other programs\n", t.load/float64(t.loads))
	}
	t.printf("#\n")
	t.busbw, t.rows, t.wrong, t.load, t.loads, t.dirty, t.paths = 0, 0, 0, 0, 0, nil, nil
}

// count prints a mean number of things, with three places after the point and in seven characters at most.
func count(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.6g", math.Round(v*1000)/1000)
}
