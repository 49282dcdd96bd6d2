package gcl

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// How many records Dump shows before and after the one that it is about.
const (
	dumpBefore = 8
	dumpAfter  = 4
)

// Dump says what the replicas were doing when a collective failed: a table for each connection of each replica of this
// process that shares the communicator. It takes an error of a collective, of Dup, Close, Work.Wait or Run, also
// joined to others or wrapped. For other errors it returns "".
//
// Every connection keeps its last 1,024 collectives, whether anything goes wrong or not. Shown are those around the
// failed one, which is marked; at other replicas those around their call of the same number in the same group; and the
// last. So a replica that was in another call, had not come as far, or waited for a turn can be told from those that
// waited for it:
//
//	gcl: flight recorder; times are relative to the failure of all-reduce #17 "grads" on replica 1
//	replica 1, connection 0: 17 collectives
//	      began      took  state              call
//	  -12.106ms    8.12µs  done               all-reduce #16 "grads" (ADD float32 x 1024, group {0, 1, 2, 3}), clockwise_ring, messages
//	>  -3.401ms   3.401ms  failed in round 2  all-reduce #17 "grads" (ADD float32 x 1024, group {0, 1, 2, 3}), clockwise_ring, messages
//
// A call whose data is small and goes on peer memory takes hardly longer than a look at the clock, so when it goes
// well there is no second one: "< 1.5µs" is the time until the next call began, and after the last one there is none.
//
// Dump may be called at any time, from any goroutine, while collectives run; the sooner it is called the less has been
// overwritten. Processes have recorders of their own, and so have communicators made by New on a transport that does
// not implement transport.Shared.
func Dump(err error) string {
	found := findPlaces(err)
	var b strings.Builder
	var seen []*flights
	for _, p := range found {
		if slices.Contains(seen, p.flights) {
			continue
		}
		seen = append(seen, p.flights)
		dumpCommunicator(&b, p.flights, found)
	}
	return b.String()
}

// Dump is as the function Dump, at any time and without an error: what the replicas of this process that share the
// communicator are doing now. Calls in progress come first, each with those for whom it waits:
//
//	replica 0 is in barrier #1 of group {0, 1} on connection 1 for 1.2s, waiting for replica 1, which is in barrier #1 of
//	group {0, 1} on connection 0 and has made no call on connection 1
//
// It may be called while collectives run or wait, from any goroutine, and changes nothing. For a nil or zero Comm it is
// "".
func (c *Comm) Dump() string {
	if c.check() != nil || c.lane.flights == nil {
		return ""
	}
	var b strings.Builder
	w := c.lane.flights.look()
	for _, f := range c.lane.flights.list() {
		r, ok := f.last()
		if !ok || r.state != running {
			continue
		}
		on := ""
		if w.several {
			on = fmt.Sprintf(" on connection %d", f.connection)
		}
		fmt.Fprintf(&b, "replica %d is in %s%s%s for %v", f.replica, r.name(), r.whose(), on, w.ago(&r))
		if waits, _ := w.waitingFor(f, r.label.members, r.label.group, r.seq); waits != "" {
			b.WriteString(", " + waits)
		}
		b.WriteString("\n")
	}
	dumpCommunicator(&b, c.lane.flights, nil)
	return b.String()
}

// place is a record that an error is about.
type place struct {
	flights *flights
	flight  *flight
	group   uint64
	seq     uint64 // 0: the error is about no collective
}

// recorded is an error that knows its place.
type recorded interface{ recordedAt() place }

// findPlaces collects the places of an error and of all that it wraps.
func findPlaces(err error) []place {
	if err == nil {
		return nil
	}
	var out []place
	if r, ok := err.(recorded); ok {
		if p := r.recordedAt(); p.flights != nil {
			out = append(out, p)
		}
	}
	for _, inner := range insides(err) {
		out = append(out, findPlaces(inner)...)
	}
	return out
}

// part is what one recorder held when it was read.
type part struct {
	flight  *flight
	records []record
	first   uint64 // the number of records[0]
	aside   []*waiting
}

// dumpCommunicator prints what the recorders of one communicator hold around the places found.
func dumpCommunicator(b *strings.Builder, s *flights, found []place) {
	var parts []part
	for _, f := range s.list() {
		p := part{flight: f}
		p.records, p.first, p.aside = f.read()
		parts = append(parts, p)
	}
	scale := ticks.NewScale()
	zero, since := ticks.Now(), "now"
	if p, r := firstFailure(parts, found); r != nil {
		zero, since = r.end, fmt.Sprintf("the failure of %s on replica %d", r.name(), p.flight.replica)
	}
	fmt.Fprintf(b, "gcl: flight recorder; times are relative to %s\n", since)
	for _, p := range parts {
		p.dump(b, found, scale, zero)
	}
}

// firstFailure is the first of the failures found that is still on record.
func firstFailure(parts []part, found []place) (part, *record) {
	for _, at := range found {
		for _, p := range parts {
			if p.flight != at.flight {
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
func (r *record) at(p place) bool { return p.seq != 0 && r.label.group == p.group && r.seq == p.seq }

// dump prints the records around the places found, and the last.
func (p part) dump(b *strings.Builder, found []place, s ticks.Scale, zero int64) {
	f := p.flight
	about, overwritten := len(p.records)-1, ""
	for _, at := range found {
		i := slices.IndexFunc(p.records, func(r record) bool { return r.at(at) })
		if i >= 0 {
			about = i
			if at.flight == f {
				break
			}
		} else if at.flight == f && at.seq != 0 && !slices.ContainsFunc(p.aside, func(w *waiting) bool { return w.at(at) }) {
			overwritten = fmt.Sprintf("; #%d of group %s has been overwritten", at.seq, wire.GroupName(at.group))
		}
	}
	total := p.first + uint64(len(p.records))
	fmt.Fprintf(b, "replica %d, connection %d: %s%s\n", f.replica, f.connection, plural(total), overwritten)
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
func (p part) row(i int, found []place, s ticks.Scale, zero int64) []string {
	next := int64(0)
	if i+1 < len(p.records) {
		next = p.records[i+1].began
	}
	return p.records[i].row(p.flight, found, s, zero, next)
}

func (r *record) row(f *flight, found []place, s ticks.Scale, zero, next int64) []string {
	mark := ""
	if slices.ContainsFunc(found, func(at place) bool { return at.flight == f && r.at(at) }) {
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
	return []string{mark, s.Between(zero, r.began).Round(time.Microsecond).String(), took, state, r.String()}
}

var stateNames = [...]string{running: "running", done: "done", failed: "failed", awaiting: "waiting for its turn"}

func (s state) String() string { return stateNames[s] }

// name is the short name of the call.
func (r *record) name() string {
	if r.collective&wire.WithinReplica != 0 {
		return wire.NameWithin(schedule.Collective(r.collective&^wire.WithinReplica)) + wire.Quote(r.label.name)
	}
	return wire.Name(transport.Call{Collective: r.collective, Seq: r.seq}) + wire.Quote(r.label.name)
}

// String describes the call, and how it was carried out if that is known.
func (r *record) String() string {
	call := transport.Call{
		Group: r.label.group, Seq: r.seq, Count: r.count, Root: r.root,
		Collective: r.collective, Operator: r.operator, DType: r.dtype,
	}
	var b strings.Builder
	if r.collective&wire.WithinReplica != 0 {
		fmt.Fprintf(&b, "%s (%d IPUs)", r.name(), r.count)
		return b.String()
	}
	if r.seq == 0 { // it has no number before its turn
		b.WriteString(wire.CollectiveName(r.collective) + wire.Quote(r.label.name))
	} else {
		b.WriteString(r.name())
	}
	data := describeData(call) + ", "
	switch {
	case r.collective == wire.Barrier:
		data = ""
	case r.dtype&wire.ManyTensors != 0 && r.state == awaiting: // nobody has looked at them yet
		data = "tensors, "
	}
	fmt.Fprintf(&b, " (%sgroup %s)", data, wire.GroupName(r.label.group))
	if r.phase > 0 {
		fmt.Fprintf(&b, ", %v phase %d", Hybrid, r.phase)
	}
	switch {
	case r.path == PathUnknown:
	case r.path == PathLocal:
		b.WriteString(", local")
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
		line := fmt.Sprintf("%-1s %*s  %*s  %-*s  %s", row[0], widths[1], row[1], widths[2], row[2], widths[3], row[3], row[4])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
