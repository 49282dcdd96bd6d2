package flight

import (
	"fmt"
	"strings"
	"time"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/internal/watch"
)

// Whereabouts is what the flight recorders of a communicator say about who is where. It is looked at when a call has
// timed out, or somebody asks: no call pays for it.
type Whereabouts struct {
	scale   ticks.Scale
	now     int64
	several bool // there is more than one connection
	lanes   map[int][]*Recorder

	replicas map[int]*watch.Replica // what is known of them; of those of this process from when at asks for it
	heard    bool                   // replicas of other processes have been listened to: see Heard
}

// maxNamed bounds the replicas that a text names one by one.
const maxNamed = 8

// Look sets up what the recorders say now. The zero value of it, for none, knows nobody.
func (s *Recorders) Look() *Whereabouts {
	w := &Whereabouts{scale: ticks.NewScale(), now: ticks.Now(), lanes: map[int][]*Recorder{},
		replicas: map[int]*watch.Replica{}}
	if s == nil {
		return w
	}
	for _, f := range s.list() {
		w.lanes[f.Replica] = append(w.lanes[f.Replica], f)
		w.several = w.several || f.Connection > 0
	}
	return w
}

// WaitingFor says which members a replica waits for in a call on one of its connections, or "", and whether any have
// not come to it. The call has a number by its label, and another by label.Also if there is that.
func (w *Whereabouts) WaitingFor(own *Recorder, l *Label, seq, also uint64) (text string, missed bool) {
	text, missed = w.waitingFor(own, l.Members, l.Group, seq)
	if l.Also == nil {
		return text, missed
	}
	other, otherMissed := w.waitingFor(own, l.Also.Members, l.Also.Group, also)
	switch {
	case missed && otherMissed && text != other:
		return text + ", and " + other, true
	case otherMissed:
		return other, true
	}
	return text, missed
}

func (w *Whereabouts) waitingFor(own *Recorder, members []int, group, seq uint64) (text string, missed bool) {
	if own.records == nil || len(members) < 2 {
		return "", false
	}
	var phase, round int
	if r, ok := own.find(group, seq); ok {
		phase, round = int(r.phase), int(r.round)
	}
	here := ""
	if w.several {
		here = fmt.Sprintf(" on connection %d", own.Connection)
	}
	var missing, behind, unknown, arrived []string
	for _, m := range members {
		if m == own.Replica {
			continue
		}
		standing, doing := watch.Unknown, ""
		if r := w.at(m); r != nil {
			standing, doing = r.Stand(own.lane, watch.Part{Group: group, Seq: seq}, phase, round, here)
		}
		switch standing {
		case watch.Unknown:
			unknown = append(unknown, fmt.Sprint(m))
		case watch.Absent:
			missing = append(missing, fmt.Sprintf("replica %d, which %s", m, doing))
		case watch.Aside, watch.Behind:
			behind = append(behind, fmt.Sprintf("replica %d %s", m, doing))
		case watch.Come:
			arrived = append(arrived, fmt.Sprint(m))
		}
	}
	var parts []string
	if len(missing) > 0 {
		parts = append(parts, "waiting for "+few(missing, ", and for "))
	}
	parts = append(parts, few(behind, ", "))
	switch {
	case len(missing) > 0 && len(arrived) > 0:
		parts = append(parts, replicasHave(arrived, "has", "have")+" come to it")
	case len(missing) == 0 && len(unknown) == 0:
		parts = append(parts, "all members have come to it")
	}
	if len(unknown) > 0 {
		said := " not in this process"
		if w.heard {
			said += ", and silent"
		}
		parts = append(parts, replicasHave(unknown, "is", "are")+said)
	}
	if r := w.at(own.Replica); r != nil {
		if aside := r.Aside(own.lane); aside != "" {
			parts = append(parts, fmt.Sprintf("replica %d itself %s", own.Replica, aside))
		}
	}
	return few(parts, "; "), len(missing) > 0
}

// at is what is known of a replica, or nil.
func (w *Whereabouts) at(replica int) *watch.Replica {
	if r := w.replicas[replica]; r != nil || len(w.lanes[replica]) == 0 {
		return r
	}
	r := &watch.Replica{Replica: replica}
	for _, f := range w.lanes[replica] {
		r.Connections = append(r.Connections, w.ofConnection(f, 1, flightLength))
	}
	w.replicas[replica] = r
	return r
}

// few joins texts, the first few if there are many. Empty ones are left out.
func few(texts []string, separator string) string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	if more := len(out) - maxNamed; more > 0 {
		out = append(out[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, separator)
}

// replicasHave is "replica 3 has" or "replicas 0, 1, 2 have".
func replicasHave(replicas []string, one, several string) string {
	if len(replicas) == 1 {
		return "replica " + replicas[0] + " " + one
	}
	return "replicas " + few(replicas, ", ") + " " + several
}

// laneOf is a replica's recorder of a connection, or nil.
func (w *Whereabouts) laneOf(replica int, lane uint64) *Recorder {
	for _, f := range w.lanes[replica] {
		if f.lane == lane {
			return f
		}
	}
	return nil
}

// Latest names the call that a connection is in.
func (w *Whereabouts) Latest(f *Recorder) string {
	if last, ok := f.last(); ok && last.state == running {
		return last.full()
	}
	return "a function given to Start"
}

// ago is how long ago a moment was.
func (w *Whereabouts) ago(then int64) time.Duration { return w.scale.Between(then, w.now) }

// Waited is how long ago a call of the connection began, or "" if there is no record of it.
func (f *Recorder) Waited(group, seq uint64) string {
	if f == nil || f.records == nil {
		return ""
	}
	r, ok := f.find(group, seq)
	if !ok {
		return ""
	}
	return watch.Brief(ticks.NewScale().Between(r.began, ticks.Now())).String()
}

// inside reports whether a call was in progress when the communicator was aborted, if it has been, and else is now. One
// that is refused for its arguments has chosen no path.
func (r *record) inside() bool {
	return r.state == running || r.state == failed && r.path != route.Unknown
}

// group is the group of a call. A collective within a replica has none.
func (r *record) group() string {
	if r.collective&wire.WithinReplica != 0 || wire.IsMessage(r.collective) {
		return ""
	}
	return r.label.GroupName()
}

// full is the name of a call and its group.
func (r *record) full() string {
	c := watch.Call{Name: r.name(), Group: r.group()}
	return c.Full()
}

// find is the record of a call of a group, or of a later one in that group.
func (f *Recorder) find(group, seq uint64) (found record, ok bool) {
	if f == nil {
		return record{}, false
	}
	f.newest(func(r *record) bool {
		at, in := r.in(group)
		if !in {
			return true
		}
		if at >= seq {
			found, ok = *r, true
		}
		return at > seq
	})
	return found, ok
}

// last is the record of the latest call.
func (f *Recorder) last() (found record, ok bool) {
	f.newest(func(r *record) bool {
		found, ok = *r, true
		return false
	})
	return found, ok
}

// queue is the calls that have not had their turn.
func (f *Recorder) queue() (out []record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.aside {
		out = append(out, w.record)
	}
	return out
}
