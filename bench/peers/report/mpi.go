package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// largeBytes is the size from which on the method native is measured by a ratio, and below which by a difference.
const largeBytes = 32 << 10

// The goals for native beside the same nonblocking collective called from C.
const (
	goalRatio  = 1.15 // from largeBytes on
	goalMicros = 0.5  // below
)

// mpiRow is one size of bench/peers.sh -transport mpi, with medians of rounds in microseconds. 0 is not known.
type mpiRow struct {
	bytes                                      int
	ours, native, nonblocking, blocking, floor float64

	dirty struct{ ours, native, nonblocking, blocking float64 } // after a rewrite of the inputs
}

// mpiTable is one collective.
type mpiTable struct {
	table
	method string // of ours
	rows   []mpiRow
}

// mpiColumn is a column of the tables, and of the CSV.
type mpiColumn struct {
	title, unit, field string
	width              int
	value              func(r *mpiRow) float64 // NaN or 0: not known
	signed             bool
}

var mpiColumns = []mpiColumn{
	{"ours", "(us)", "ours_us", 9, func(r *mpiRow) float64 { return r.ours }, false},
	{"native", "(us)", "native_us", 9, func(r *mpiRow) float64 { return r.native }, false},
	{"C nb", "(us)", "nonblocking_us", 9, func(r *mpiRow) float64 { return r.nonblocking }, false},
	{"C bl", "(us)", "blocking_us", 9, func(r *mpiRow) float64 { return r.blocking }, false},
	{"floor", "(us)", "floor_us", 9, func(r *mpiRow) float64 { return r.floor }, false},
	{"native/nb", "", "native_over_nonblocking", 10, (*mpiRow).nativeRatio, false},
	{"native-nb", "(us)", "native_minus_nonblocking_us", 10, (*mpiRow).nativeExtra, true},
	{"ours/nb", "", "ours_over_nonblocking", 8,
		func(r *mpiRow) float64 { return ratio(r.ours, r.nonblocking) }, false},
	{"ours/bl", "", "ours_over_blocking", 8, (*mpiRow).vsBlocking, false},
	{"ours/floor", "", "ours_over_floor", 11, (*mpiRow).vsFloor, false},
}

func (r *mpiRow) nativeRatio() float64 { return ratio(r.native, r.nonblocking) }
func (r *mpiRow) vsBlocking() float64  { return ratio(r.ours, r.blocking) }
func (r *mpiRow) vsFloor() float64     { return ratio(r.ours, r.floor) }

// nativeExtra is what native takes longer than the nonblocking collective from C, NaN from largeBytes on.
func (r *mpiRow) nativeExtra() float64 {
	if r.native == 0 || r.nonblocking == 0 || r.bytes >= largeBytes {
		return math.NaN()
	}
	return r.native - r.nonblocking
}

// summarizeMPI makes a table of each collective, in the order in which they were measured.
func summarizeMPI(all []sample) []mpiTable {
	var out []mpiTable
	for _, s := range all {
		if !slices.ContainsFunc(out, func(t mpiTable) bool { return t.collective == s.collective }) {
			out = append(out, mpiTableOf(s.collective, all))
		}
	}
	return out
}

func mpiTableOf(collective string, all []sample) mpiTable {
	t, mine := newTable(collective, all)
	out := mpiTable{table: t}
	var sizes []int
	for _, s := range mine {
		sizes = append(sizes, s.bytes)
		if s.who == "ours" && s.config != "native" {
			out.method = s.config
		}
	}
	slices.Sort(sizes)
	for _, size := range slices.Compact(sizes) {
		clean, dirty := func(s sample) float64 { return s.micro }, func(s sample) float64 { return s.dirty }
		one := func(who string, is func(config string) bool, micro func(sample) float64) float64 {
			rounds := map[int]float64{} // the best of each
			for _, s := range mine {
				if s.bytes == size && s.who == who && is(s.config) && micro(s) > 0 {
					if best := rounds[s.round]; best == 0 || micro(s) < best {
						rounds[s.round] = micro(s)
					}
				}
			}
			return medianOf(rounds)
		}
		named := func(name string) func(string) bool { return func(config string) bool { return config == name } }
		schedules := func(config string) bool { return config != "native" }
		r := mpiRow{
			bytes:       size,
			ours:        one("ours", schedules, clean),
			native:      one("ours", named("native"), clean),
			nonblocking: one("peer", named("nonblocking"), clean),
			blocking:    one("peer", named("blocking"), clean),
			floor:       one("floor", named("floor"), clean),
		}
		r.dirty.ours, r.dirty.native = one("ours", schedules, dirty), one("ours", named("native"), dirty)
		r.dirty.nonblocking = one("peer", named("nonblocking"), dirty)
		r.dirty.blocking = one("peer", named("blocking"), dirty)
		out.rows = append(out.rows, r)
	}
	return out
}

// several reports whether a call is of several tensors: 64xallreduce.
func (t *mpiTable) several() bool { return t.collective[0] >= '0' && t.collective[0] <= '9' }

// writeMPI prints what people read.
func writeMPI(w io.Writer, n int, tables []mpiTable) error {
	var b strings.Builder
	var single []mpiTable
	for _, t := range tables {
		of := ""
		if t.several() {
			of = ", size of one tensor"
		} else {
			single = append(single, t)
		}
		fmt.Fprintf(&b, "# %s, %d replicas, ours by %s%s, medians of rounds%s\n", t.collective, n, t.method, of,
			t.rounds())
		titles, units := "", ""
		for _, c := range mpiColumns {
			titles += fmt.Sprintf(" %*s", c.width, c.title)
			units += fmt.Sprintf(" %*s", c.width, c.unit)
		}
		fmt.Fprintf(&b, "# %10s%s\n# %10s%s\n", "size", titles, "(B)", strings.TrimRight(units, " "))
		for _, r := range t.rows {
			fmt.Fprintf(&b, "  %10d", r.bytes)
			for _, c := range mpiColumns {
				fmt.Fprintf(&b, " %*s", c.width, c.text(&r))
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", mpiMeans([]mpiTable{t}, !t.several()))
		t.rewritten(&b)
	}
	if len(single) > 1 {
		fmt.Fprintf(&b, "# all collectives of one tensor\n%s", mpiMeans(single, true))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text is the number of a column, with a sign where it is a difference.
func (c *mpiColumn) text(r *mpiRow) string {
	v := c.value(r)
	switch {
	case math.IsNaN(v):
		return "-"
	case c.signed:
		return fmt.Sprintf("%+.2f", v)
	}
	return digits(v)
}

// mpiMeans sums up tables, in lines. goals says whether to compare native with what it has to reach.
func mpiMeans(tables []mpiTable, goals bool) string {
	var large, blocking, floor, largeFloor []float64
	worst, extra, measured, faster, total := 0.0, math.Inf(-1), 0, 0, 0
	for _, t := range tables {
		for _, r := range t.rows {
			if v := r.nativeRatio(); r.bytes >= largeBytes && v > 0 {
				large, worst = append(large, v), max(worst, v)
			}
			if v := r.nativeExtra(); !math.IsNaN(v) {
				measured, extra = measured+1, max(extra, v)
			}
			v := r.vsBlocking()
			if blocking = append(blocking, v); v > 0 {
				total++
			}
			if v > 0 && v < 1 {
				faster++
			}
			if floor = append(floor, r.vsFloor()); r.bytes >= largeBytes {
				largeFloor = append(largeFloor, r.vsFloor())
			}
		}
	}
	text := ""
	if goals {
		var parts []string
		if len(large) > 0 {
			parts = append(parts, fmt.Sprintf("native/nb from 32 KiB on: geometric mean %s, at worst %s (goal %s)",
				digits(geometric(large)), digits(worst), digits(goalRatio)))
		}
		if measured > 0 {
			parts = append(parts, fmt.Sprintf("native-nb below: at worst %+.2f us (goal %+.2f)", extra, goalMicros))
		}
		if len(parts) > 0 {
			text = "# " + strings.Join(parts, "; ") + "\n"
		}
	}
	text += fmt.Sprintf("# geometric mean: ours/bl %s, faster at %d of %d; ours/floor %s",
		digits(geometric(blocking)), faster, total, digits(geometric(floor)))
	if len(largeFloor) > 0 && len(largeFloor) < len(floor) {
		text += ", from 32 KiB on " + digits(geometric(largeFloor))
	}
	return text + "\n"
}

// writeMPICSV writes the same for programs, with empty fields for what is not known.
func writeMPICSV(w io.Writer, n int, tables []mpiTable) error {
	head := []string{"collective", "n", "bytes", "method"}
	for _, c := range mpiColumns {
		head = append(head, c.field)
	}
	lines := [][]string{append(head, "rounds", "rounds_used", "ours_dirty_us", "native_dirty_us",
		"nonblocking_dirty_us", "blocking_dirty_us")}
	for _, t := range tables {
		for _, r := range t.rows {
			line := []string{t.collective, strconv.Itoa(n), strconv.Itoa(r.bytes), t.method}
			for _, c := range mpiColumns {
				field := ""
				if v := c.value(&r); !math.IsNaN(v) && (v != 0 || c.signed) {
					field = strconv.FormatFloat(v, 'f', 4, 64)
				}
				line = append(line, field)
			}
			line = append(line, strconv.Itoa(len(t.latencies)), strconv.Itoa(len(t.used)))
			for _, v := range []float64{r.dirty.ours, r.dirty.native, r.dirty.nonblocking, r.dirty.blocking} {
				line = append(line, known(v))
			}
			lines = append(lines, line)
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}
