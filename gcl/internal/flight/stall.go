package flight

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"gogcl.dev/internal/ticks"
	"gogcl.dev/internal/watch"
)

// Stall is a call of replicas of this process that has waited for long.
type Stall struct {
	Replicas []int         // which are in it, ascending
	Call     string        // its name, and its group
	Waited   time.Duration // since the first of them began it
	Why      string        // who has not come, and what each of those does
}

// stalls looks for calls that wait for long, while a connection is open.
type stalls struct {
	after time.Duration // 0: it does not look
	say   func([]Stall, []watch.Process)
	timer *time.Timer // of the looks; nil: none has been asked for

	armed   bool                      // the timer is set
	looking bool                      // a look goes on, and is waited for at the end
	asking  bool                      // it asks other processes, and is not
	ended   sync.Cond                 // looking is false
	noted   map[stalled]time.Duration // how long they have to wait until that is said the next time; the look's
}

// stalled is a call in progress.
type stalled struct{ lane, group, seq uint64 }

// looksPerStall is how often the stalls are looked for in the time after which a call is one.
const looksPerStall = 8

// inquiryTime is how long replicas of other processes are waited for that are asked what they do.
const inquiryTime = time.Second

// Watch has say called, on a goroutine of its own, for calls that have waited for so long, and again each time that
// they have waited twice as long, with what other processes have said who were asked. It looks while a connection is
// open. The first Watch counts.
func (s *Recorders) Watch(after time.Duration, say func([]Stall, []watch.Process)) {
	if s == nil || after <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalls.after == 0 {
		s.stalls.after, s.stalls.say, s.stalls.ended.L = after, say, &s.mu
		s.lookLater()
	}
}

// lookLater has the next look at the calls made. The caller holds s.mu. The timer does not keep the recorders: of a
// communicator that nobody has closed, and nobody has any more, nothing is left.
func (s *Recorders) lookLater() {
	w := &s.stalls
	if w.after <= 0 || s.open <= 0 || w.armed || w.looking || w.asking {
		return
	}
	w.armed = true
	pause := max(w.after/looksPerStall, time.Millisecond)
	if w.timer != nil {
		w.timer.Reset(pause)
		return
	}
	kept := weak.Make(s)
	w.timer = time.AfterFunc(pause, func() {
		if s := kept.Value(); s != nil {
			s.lookForStalls()
		}
	})
}

// closed is told that a connection is no more. After the last one nobody looks any more, but for who is waiting for
// other processes.
func (s *Recorders) closed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.stalls
	if s.open--; s.open > 0 {
		return
	}
	s.leave()
	if w.armed && w.timer.Stop() {
		w.armed = false
	}
	for w.armed || w.looking {
		w.ended.Wait()
	}
	for len(s.atEnd) > 0 {
		f := s.atEnd[0]
		s.atEnd = s.atEnd[1:]
		s.mu.Unlock()
		f()
		s.mu.Lock()
	}
}

// lookForStalls says which calls have waited for long.
func (s *Recorders) lookForStalls() {
	s.mu.Lock()
	w := &s.stalls
	if w.armed = false; !s.goesOn() {
		w.noted = nil
		w.ended.Broadcast()
		s.lookLater()
		s.mu.Unlock()
		return
	}
	w.looking = true
	s.mu.Unlock()
	found := s.findStalls()
	where, heard := s.Look(), []watch.Process(nil)
	if len(found) > 0 && s.hears() && asks(found) {
		s.lookIs(false, true) // other processes may keep it waiting, and nobody is to wait for it meanwhile
		heard = where.hear(s, func(r Reports) [][]byte { return r.Inquire(inquiryTime) })
		s.lookIs(true, false)
	}
	var stalls []Stall
	for _, f := range found {
		if stall, ok := where.stall(f); ok {
			stalls = append(stalls, stall)
		}
	}
	if len(stalls) > 0 && s.isOpen() {
		w.say(stalls, heard)
	}
	s.lookIs(false, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookLater()
}

// goesOn reports whether a call goes on that did at the last look. It allocates nothing, so that a look does not, where
// nobody waits. The caller holds s.mu.
func (s *Recorders) goesOn() (found bool) {
	for _, f := range s.all {
		head := f.head.Load()
		found = found || head%2 == 1 && head == f.looked
		f.looked = head
	}
	return found
}

// lookIs notes what a look does.
func (s *Recorders) lookIs(looking, asking bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalls.looking, s.stalls.asking = looking && s.open > 0, asking
	s.stalls.ended.Broadcast()
}

// isOpen reports whether there is a connection.
func (s *Recorders) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open > 0
}

// maxAskers bounds the members of a call that ask all others, who have all waited for as long.
const maxAskers = 16

// asks reports whether this process asks the others about calls: it has a member in one of them who does.
func asks(found []*Recorder) bool {
	return slices.ContainsFunc(found, func(f *Recorder) bool {
		r, ok := f.last()
		return ok && r.label.Rank%((len(r.label.Members)+maxAskers-1)/maxAskers) == 0
	})
}

// inProgress is a call in progress, and a recorder that has it: that of the lowest replica speaks for all.
type inProgress struct {
	stalled
	recorder *Recorder
	waited   time.Duration // there
}

// inProgress lists the calls in progress.
func (s *Recorders) inProgress(w *Whereabouts) (all []inProgress) {
	seen := map[stalled]bool{}
	for _, f := range s.list() {
		r, ok := f.last()
		if !ok || r.state != running {
			continue
		}
		call := inProgress{stalled{f.lane, r.label.Group, r.seq}, f, w.scale.Between(r.began, w.now)}
		if !seen[call.stalled] {
			all, seen[call.stalled] = append(all, call), true
		}
	}
	return all
}

// findStalls returns a recorder of each call of which it is time to say that it waits.
func (s *Recorders) findStalls() (found []*Recorder) {
	seen := map[stalled]time.Duration{}
	for _, call := range s.inProgress(s.Look()) {
		next := max(s.stalls.noted[call.stalled], s.stalls.after)
		if call.waited >= next {
			found = append(found, call.recorder)
			for next <= call.waited {
				next *= 2
			}
		}
		seen[call.stalled] = next
	}
	s.stalls.noted = seen
	return found
}

// Stalls are the calls that have waited for longer than the time of Watch; none without one. It asks no other process.
func (s *Recorders) Stalls() (all []Stall) {
	s.mu.Lock()
	after := s.stalls.after
	s.mu.Unlock()
	if after <= 0 {
		return nil
	}
	w := s.Look()
	for _, call := range s.inProgress(w) {
		if call.waited < after {
			continue
		}
		if stall, ok := w.stall(call.recorder); ok {
			all = append(all, stall)
		}
	}
	return all
}

// Failure is why calls on an open connection would fail; nil if they would not. Where all are closed it is why they
// would have failed before.
func (s *Recorders) Failure() (before *watch.Failure) {
	open := false
	for _, f := range s.list() {
		failed, closed := f.failure(), f.IsClosed()
		if failed != nil && !closed {
			return failed
		}
		if open = open || !closed; before == nil {
			before = failed
		}
	}
	if open {
		return nil
	}
	return before
}

// stall is what is to be said of the call in progress of a recorder. It is over, perhaps: then there is nothing.
func (w *Whereabouts) stall(f *Recorder) (stall Stall, ok bool) {
	r, ok := f.last()
	if !ok || r.state != running {
		return stall, false
	}
	began := r.began
	for _, m := range r.label.Members {
		o := w.laneOf(m, f.lane)
		if o == nil {
			continue
		}
		if at, ok := o.last(); ok && at.state == running && at.label.Group == r.label.Group && at.seq == r.seq {
			stall.Replicas = append(stall.Replicas, m)
			began = min(began, at.began)
		}
	}
	if len(stall.Replicas) == 0 { // a message between two, or a call within a replica
		stall.Replicas = []int{f.Replica}
	}
	slices.Sort(stall.Replicas)
	stall.Call, stall.Waited = r.full(), watch.Brief(w.scale.Between(began, ticks.Now()))
	if w.several {
		stall.Call += fmt.Sprintf(" on connection %d", f.Connection)
	}
	stall.Why, _ = w.WaitingFor(f, r.label, r.seq, r.also)
	return stall, true
}

// Doing says what replicas of this process do now, on all their connections: for those that keep others waiting.
func (s *Recorders) Doing(replicas []int) string {
	w := s.Look()
	var out []string
	for _, m := range replicas {
		var parts []string
		for _, f := range w.lanes[m] {
			if !f.IsClosed() {
				here := ""
				if w.several {
					here = fmt.Sprintf(" on connection %d", f.Connection)
				}
				parts = append(parts, w.at(m).Doing(f.lane, here))
			}
		}
		if parts != nil {
			out = append(out, fmt.Sprintf("replica %d %s", m, strings.Join(parts, " and ")))
		}
	}
	return few(out, ", ")
}
