package flight

import (
	"fmt"
	"strings"
	"time"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
)

// Whereabouts is what the flight recorders of a communicator say about who is where. It is looked at when a call has
// timed out, or somebody asks: no call pays for it.
type Whereabouts struct {
	scale   ticks.Scale
	now     int64
	several bool // there is more than one connection
	lanes   map[int][]*Recorder

	elsewhere map[int][]standing // by replica of another process: see Heard
}

// maxNamed bounds the replicas that a text names one by one.
const maxNamed = 8

// Look sets up what the recorders say now. The zero value of it, for none, knows nobody.
func (s *Recorders) Look() *Whereabouts {
	w := &Whereabouts{scale: ticks.NewScale(), now: ticks.Now(), lanes: map[int][]*Recorder{}}
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
	var mine progress
	if r, ok := own.find(group, seq); ok {
		mine = progressOf(&r)
	}
	var missing, behind, unknown, arrived []string
	for _, m := range members {
		if m == own.Replica {
			continue
		}
		f := w.laneOf(m, own.lane)
		if at, told := w.elsewhere[m]; told {
			switch known, come, doing := w.doingElsewhere(at, own, group, seq); {
			case !known:
				unknown = append(unknown, fmt.Sprint(m))
			case come:
				arrived = append(arrived, fmt.Sprint(m))
			default:
				missing = append(missing, fmt.Sprintf("replica %d, which %s", m, doing))
			}
			continue
		}
		if len(w.lanes[m]) == 0 {
			unknown = append(unknown, fmt.Sprint(m))
			continue
		}
		aside := w.onOthers(m, f)
		switch r, ok := f.find(group, seq); {
		case !ok:
			missing = append(missing,
				fmt.Sprintf("replica %d, which %s", m, strings.Join(append(aside, w.doing(f, own)), " and ")))
		case aside != nil:
			behind = append(behind, fmt.Sprintf("replica %d is in it, and %s", m, strings.Join(aside, " and ")))
		case r.state != done && progressOf(&r).before(mine):
			behind = append(behind, fmt.Sprintf("replica %d is in %v of it", m, progressOf(&r)))
		default:
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
		if w.elsewhere != nil {
			said += ", and silent"
		}
		parts = append(parts, replicasHave(unknown, "is", "are")+said)
	}
	if aside := w.onOthers(own.Replica, own); aside != nil {
		parts = append(parts, fmt.Sprintf("replica %d itself %s", own.Replica, strings.Join(aside, " and ")))
	}
	return few(parts, "; "), len(missing) > 0
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

// doing says what a replica that is not in a call of the connection was doing there instead.
func (w *Whereabouts) doing(f, own *Recorder) string {
	here := ""
	if w.several {
		here = fmt.Sprintf(" on connection %d", own.Connection)
	}
	if f == nil {
		return "has not opened" + strings.TrimPrefix(here, " on")
	}
	for _, p := range f.queue() {
		if p.state == awaiting {
			return fmt.Sprintf("has %s wait for its turn%s, behind %s",
				wire.CollectiveName(p.collective)+wire.Quote(p.label.Name), here, w.Latest(f))
		}
	}
	last, ok := f.last()
	switch {
	case f.IsClosed():
		return "has left" + here
	case !ok:
		return "has made no call" + here
	case last.inside():
		return "is in " + last.name() + last.whose() + here
	}
	return fmt.Sprintf("has made no call%s for %v, since %s", here, w.ago(&last), last.name()+last.whose())
}

// Latest names the call that a connection is in.
func (w *Whereabouts) Latest(f *Recorder) string {
	if last, ok := f.last(); ok && last.state == running {
		return last.name() + last.whose()
	}
	return "a function given to Start"
}

// onOthers says in which calls a replica is on connections other than one.
func (w *Whereabouts) onOthers(replica int, but *Recorder) []string {
	var out []string
	for _, f := range w.lanes[replica] {
		if f == but || f.IsClosed() {
			continue
		}
		if last, ok := f.last(); ok && last.inside() {
			out = append(out, fmt.Sprintf("is in %s%s on connection %d", last.name(), last.whose(), f.Connection))
		}
	}
	return out
}

// ago is how long ago a call was over. Of a quick one only its beginning is known, which is as good.
func (w *Whereabouts) ago(r *record) time.Duration {
	since := r.end
	if since == 0 {
		since = r.began
	}
	return brief(w.scale.Between(since, w.now))
}

// Waited is how long ago a call of the connection began, or "" if there is no record of it.
func (f *Recorder) Waited(group, seq uint64) string {
	if f == nil || f.records == nil {
		return ""
	}
	r, ok := f.find(group, seq)
	if !ok {
		return ""
	}
	return brief(ticks.NewScale().Between(r.began, ticks.Now())).String()
}

// brief is a duration for errors, of few digits.
func brief(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}

// inside reports whether a call was in progress when the communicator was aborted, if it has been, and else is now. One
// that is refused for its arguments has chosen no path.
func (r *record) inside() bool {
	return r.state == running || r.state == failed && r.path != route.Unknown
}

// whose is the group of a call, for after its name. A collective within a replica has none.
func (r *record) whose() string {
	if r.collective&wire.WithinReplica != 0 || wire.IsMessage(r.collective) {
		return ""
	}
	return " of group " + r.label.GroupName()
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

// progress is how far a replica has come in a call. The zero value comes first.
type progress struct{ phase, round int }

func progressOf(r *record) progress { return progress{int(r.phase), int(r.round)} }

func (s progress) before(o progress) bool {
	return s.phase < o.phase || s.phase == o.phase && s.round < o.round
}

// String is for a text, as in "phase 1, round 0".
func (s progress) String() string {
	var parts []string
	if s.phase > 0 {
		parts = append(parts, fmt.Sprintf("phase %d", s.phase))
	}
	if s.round > 0 {
		parts = append(parts, fmt.Sprintf("round %d", s.round-1))
	}
	if parts == nil {
		return "the beginning"
	}
	return strings.Join(parts, ", ")
}
