package flight

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/internal/watch"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// How many records Dump shows before and after the one that it is about.
const (
	dumpBefore = 8
	dumpAfter  = 4
)

// Place is a record that an error is about.
type Place struct {
	Recorders *Recorders
	Recorder  *Recorder
	Group     uint64
	Seq       uint64 // 0: the error is about no collective
}

// part is what one recorder held when it was read.
type part struct {
	flight  *Recorder
	records []record
	first   uint64 // the number of records[0]
	aside   []*Waiting
}

// Now says what the replicas are doing: the calls in progress, each with those for whom it waits, and then the records.
func (s *Recorders) Now() string {
	var b strings.Builder
	w := s.Look()
	for _, f := range s.list() {
		r, ok := f.last()
		if !ok || r.state != running {
			continue
		}
		on := ""
		if w.several {
			on = fmt.Sprintf(" on connection %d", f.Connection)
		}
		fmt.Fprintf(&b, "replica %d is in %s%s for %v", f.Replica, r.full(), on, watch.Brief(w.ago(r.began)))
		if waits, _ := w.WaitingFor(f, r.label, r.seq, r.also); waits != "" {
			b.WriteString(", " + waits)
		}
		b.WriteString("\n")
	}
	for _, l := range watch.Stragglers(watch.Lateness([]watch.Process{s.state(w, 0, timesRoom)})) {
		fmt.Fprintln(&b, l)
	}
	s.Dump(&b, nil)
	return b.String()
}

// Dump prints what the recorders hold around the places found.
func (s *Recorders) Dump(b *strings.Builder, found []Place) {
	var parts []part
	for _, f := range s.list() {
		p := part{flight: f}
		p.records, p.first, p.aside = f.read()
		parts = append(parts, p)
	}
	scale := ticks.NewScale()
	zero, since := ticks.Now(), "now"
	if p, r := firstFailure(parts, found); r != nil {
		zero, since = r.end, fmt.Sprintf("the failure of %s on replica %d", r.name(), p.flight.Replica)
	}
	fmt.Fprintf(b, "gcl: flight recorder; times are relative to %s\n", since)
	for _, p := range parts {
		p.dump(b, found, scale, zero)
	}
}

// firstFailure is the first of the failures found that is still on record.
func firstFailure(parts []part, found []Place) (part, *record) {
	for _, at := range found {
		for _, p := range parts {
			if p.flight != at.Recorder {
				continue
			}
			for _, w := range p.aside {
				if w.at(at) && w.state == failed {
					return p, &w.record
				}
			}
			for i := range p.records {
				if r := &p.records[i]; r.at(at) && r.state == failed {
					return p, r
				}
			}
		}
	}
	return part{}, nil
}

// at reports whether r is the call that an error is about, or another member's part in it.
func (r *record) at(p Place) bool { return p.Seq != 0 && r.label.Group == p.Group && r.seq == p.Seq }

// dump prints the records around the places found, and the last.
func (p part) dump(b *strings.Builder, found []Place, s ticks.Scale, zero int64) {
	f := p.flight
	about, overwritten := len(p.records)-1, ""
	for _, at := range found {
		i := slices.IndexFunc(p.records, func(r record) bool { return r.at(at) })
		if i >= 0 {
			about = i
			if at.Recorder == f {
				break
			}
		} else if at.Recorder == f && at.Seq != 0 && !slices.ContainsFunc(p.aside, func(w *Waiting) bool {
			return w.at(at)
		}) {
			overwritten = fmt.Sprintf("; #%d of group %s has been overwritten", at.Seq, wire.GroupName(at.Group))
		}
	}
	total := p.first + uint64(len(p.records))
	fmt.Fprintf(b, "replica %d, connection %d: %s%s\n", f.Replica, f.Connection, plural(total), overwritten)
	rows := [][]string{{"", "began", "took", "state", "call"}}
	lo, hi := max(about-dumpBefore, 0), min(about+dumpAfter+1, len(p.records))
	if total > 0 && (lo > 0 || p.first > 0) {
		rows = append(rows, []string{"", "", "", "", fmt.Sprintf("%d more before", p.first+uint64(lo))})
	}
	for i := lo; i < hi; i++ {
		rows = append(rows, p.row(i, found, s, zero))
	}
	if last := len(p.records) - 1; hi <= last {
		if hi < last {
			rows = append(rows, []string{"", "", "", "", fmt.Sprintf("%d more between", last-hi)})
		}
		rows = append(rows, p.row(last, found, s, zero))
	}
	for _, w := range p.aside {
		rows = append(rows, w.row(f, found, s, zero, 0))
	}
	if len(rows) > 1 {
		writeRows(b, rows)
	}
}

func plural(n uint64) string {
	if n == 1 {
		return "1 collective"
	}
	return fmt.Sprintf("%d collectives", n)
}

// row is a line of the table for record i.
func (p part) row(i int, found []Place, s ticks.Scale, zero int64) []string {
	next := int64(0)
	if i+1 < len(p.records) {
		next = p.records[i+1].began
	}
	return p.records[i].row(p.flight, found, s, zero, next)
}

func (r *record) row(f *Recorder, found []Place, s ticks.Scale, zero, next int64) []string {
	mark := ""
	if slices.ContainsFunc(found, func(at Place) bool { return at.Recorder == f && r.at(at) }) {
		mark = ">"
	}
	took := ""
	switch {
	case r.end != 0:
		took = s.Between(r.began, r.end).String()
	case r.state == done && next != 0:
		took = "< " + s.Between(r.began, next).String()
	}
	state := r.state.String()
	if r.round > 0 && r.state != done {
		state += fmt.Sprintf(" in round %d", r.round-1)
	}
	return []string{mark, s.Between(zero, r.began).Round(time.Microsecond).String(), took, state, r.text(f.describe)}
}

var stateNames = [...]string{running: "running", done: "done", failed: "failed", awaiting: "waiting for its turn"}

func (s state) String() string { return stateNames[s] }

// name is the short name of the call.
func (r *record) name() string {
	return wire.Name(transport.Call{Collective: r.collective, Seq: r.seq, Root: r.root}) + wire.Quote(r.label.Name)
}

// fingerprint is that of the call, without its method and its digest.
func (r *record) fingerprint() transport.Call {
	return transport.Call{
		Group: r.label.Group, Seq: r.seq, Count: r.count, Root: r.root,
		Collective: r.collective, Operator: r.operator, DType: r.dtype,
	}
}

// text describes the call, its data by describe, and how it was carried out if that is known.
func (r *record) text(describe func(transport.Call) string) string {
	call := r.fingerprint()
	var b strings.Builder
	if r.collective&wire.WithinReplica != 0 {
		fmt.Fprintf(&b, "%s (%d IPUs)", r.name(), r.count)
		return b.String()
	}
	if r.seq == 0 { // it has no number before its turn
		b.WriteString(wire.CollectiveName(r.collective) + wire.Quote(r.label.Name))
	} else {
		b.WriteString(r.name())
	}
	data := describe(call) + ", "
	switch {
	case r.collective == wire.Barrier:
		data = ""
	}
	if wire.IsMessage(r.collective) { // which has no group but its two replicas
		fmt.Fprintf(&b, " (%s)", describe(call))
		return b.String()
	}
	fmt.Fprintf(&b, " (%sgroup %s)", data, r.label.GroupName())
	if r.phase > 0 {
		fmt.Fprintf(&b, ", Hybrid phase %d", r.phase)
	}
	switch {
	case r.path == route.Unknown:
	case r.path == route.Local:
		b.WriteString(", local")
	case r.collective == wire.Execute:
		fmt.Fprintf(&b, ", by its schedule, %v", r.path)
	default:
		fmt.Fprintf(&b, ", %v, %v", methods.Method(r.method), r.path)
	}
	return b.String()
}

// writeRows prints a table whose first three columns end, and whose others begin, in line.
func writeRows(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0])-1)
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-1s %*s  %*s  %-*s  %s",
			row[0], widths[1], row[1], widths[2], row[2], widths[3], row[3], row[4])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
