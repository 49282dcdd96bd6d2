package flight

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/goroutine"
	"gogcl.dev/internal/watch"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// Identify has State say which job the communicator is. The first call counts, which it reports.
func (s *Recorders) Identify(job watch.Process) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first = s.job.Run == ""; first {
		s.job = job
	}
	return first
}

// Body notes that the calling goroutine is that of the body of a replica.
func (s *Recorders) Body(replica int) {
	number := goroutine.ID()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bodies == nil {
		s.bodies = map[int]uint64{}
	}
	s.bodies[replica] = number
}

// Stacks adds to a state where the program is.
func (s *Recorders) Stacks(p *watch.Process) {
	bodies := map[int]uint64{}
	s.mu.Lock()
	for _, r := range p.Replicas {
		bodies[r.Replica] = s.bodies[r.Replica]
	}
	s.mu.Unlock()
	for replica, stack := range watch.Stacks(bodies) {
		for i := range p.Replicas {
			if p.Replicas[i].Replica == replica {
				p.Replicas[i].Stack = stack
			}
		}
	}
}

// AtEnd has f called, on the goroutine that closes it, after the last connection.
func (s *Recorders) AtEnd(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.atEnd = append(s.atEnd, f)
}

// timesRoom is what Times of all calls that a recorder keeps take.
const timesRoom = 16 << 10

// maxTimes bounds the Times of all replicas of a process.
const maxTimes = 2 << 20

// State is what this process says of the communicator, with so many of the last calls of each connection.
func (s *Recorders) State(calls int) watch.Process { return s.state(s.Look(), calls, timesRoom) }

// Has reports whether a replica is in this process.
func (s *Recorders) Has(replica int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, func(f *Recorder) bool { return f.Replica == replica })
}

// Job is what this process and the others say of the communicator, which are asked and waited for so long at most; 0:
// they are not asked.
func (s *Recorders) Job(calls int, limit time.Duration) watch.Job {
	own := s.State(calls)
	out := watch.Job{Name: own.Job, Run: own.Run, Size: own.Size, Transport: own.Transport,
		Processes: []watch.Process{own}}
	if limit <= 0 || !s.hears() {
		return out
	}
	s.told(func(r Reports) [][]byte { return r.Inquire(limit) }, func(_ int, at watch.Process, text []byte) {
		if text != nil {
			out.Processes = append(out.Processes, at)
		}
	})
	return out
}

func (s *Recorders) state(w *Whereabouts, calls, times int) watch.Process {
	s.mu.Lock()
	out := s.job
	s.mu.Unlock()
	out.At, out.PID, out.Failure = time.Now(), os.Getpid(), s.Failure()
	list := s.list()
	times = min(times, maxTimes/max(len(list), 1))
	var at *watch.Replica
	for _, f := range list {
		if at == nil || at.Replica != f.Replica {
			out.Replicas = append(out.Replicas, w.ofReplica(f.Replica, times))
			at = &out.Replicas[len(out.Replicas)-1]
		}
		if f.Connection == 0 || !f.IsClosed() {
			at.Connections = append(at.Connections, w.ofConnection(f, calls, maxReached))
		}
		at.Left = at.Left && f.IsClosed()
	}
	return out
}

// ofReplica is what is known of a replica but for its connections.
func (w *Whereabouts) ofReplica(replica, room int) watch.Replica {
	out := watch.Replica{Replica: replica, Left: true}
	times, bytes := watch.NewTimes(room), 0
	window := watch.Window
	for _, f := range w.lanes[replica] {
		seen, oldest := 0, time.Duration(0)
		f.newest(func(r *record) bool {
			seen++
			began, took := w.ago(r.began), time.Duration(0)
			if oldest = began; began <= watch.Window && r.state == done {
				bytes += r.bytes()
			}
			if r.end != 0 {
				took = max(w.scale.Between(r.began, r.end), 1)
			}
			meets := schedule.Collective(r.collective).Contract().Meets() && r.path != route.Local
			return !(meets && r.state <= done && len(r.label.Members) > 1) ||
				times.Add(f.lane, r.label.Group, r.seq, began, took)
		})
		if seen == flightLength { // there were more
			window = min(window, max(oldest, time.Microsecond))
		}
	}
	out.Times = times.Bytes()
	out.BytesPerSec = int64(float64(bytes) / window.Seconds())
	return out
}

// lastFailures is how many of the last calls have failed in a row, and were not refused: after the first of them all
// others fail as they begin.
func (f *Recorder) lastFailures() (n int) {
	f.newest(func(r *record) bool {
		fails := r.state == failed && r.path != route.Unknown
		if fails {
			n++
		}
		return fails
	})
	return n
}

// ofConnection is what is known of a connection: so many calls, and how many there were of so many groups.
func (w *Whereabouts) ofConnection(f *Recorder, calls, groups int) watch.Connection {
	out := watch.Connection{ID: f.lane, Number: f.Connection, Closed: f.IsClosed(), Reached: map[uint64]uint64{}}
	seen := 0
	failures := f.lastFailures()
	f.newest(func(r *record) bool {
		seen++
		if seen < failures {
			return true // it was made after the connection had failed
		}
		if len(out.Calls) < calls {
			out.Calls = append([]watch.Call{w.ofCall(f, r, calls > 1)}, out.Calls...)
		}
		for l := r.label; l != nil; l = l.Also {
			seq, _ := r.in(l.Group)
			if _, ok := out.Reached[l.Group]; ok || seq == 0 {
				continue
			}
			if len(out.Reached) == groups {
				out.More = true
				return len(out.Calls) < calls
			}
			out.Reached[l.Group] = seq
		}
		return true
	})
	out.More = out.More || seen == flightLength && groups < flightLength // others may have more room
	for _, r := range f.queue() {
		out.Queued = append(out.Queued, w.ofCall(f, &r, calls > 1))
	}
	return out
}

var states = [...]watch.State{running: watch.Running, done: watch.Done, failed: watch.Failed, awaiting: watch.Queued}

// ofCall is what is known of a call. detail has its data and how it goes.
func (w *Whereabouts) ofCall(f *Recorder, r *record, detail bool) watch.Call {
	out := watch.Call{Name: r.name(), Group: r.group(), Began: w.ago(r.began), State: states[r.state],
		Inside: r.inside(), Phase: int(r.phase), Round: int(r.round)}
	if r.seq == 0 { // it has no number before its turn
		out.Name = wire.CollectiveName(r.collective) + wire.Quote(r.label.Name)
	}
	if r.end != 0 {
		out.Took = w.scale.Between(r.began, r.end)
	}
	if r.collective&wire.WithinReplica != 0 {
		return out
	}
	if detail {
		out.Data = f.describe(r.fingerprint())
		if r.path != route.Unknown {
			out.Path = r.path.String()
		}
		if r.path != route.Unknown && r.path != route.Local && r.collective != wire.Execute {
			out.Method = methods.Method(r.method).String()
		}
	}
	if out.Inside {
		for l := r.label; l != nil; l = l.Also {
			if seq, _ := r.in(l.Group); seq != 0 {
				part := watch.Part{Group: l.Group, Seq: seq}
				if len(l.Members)*len(w.lanes) <= maxMembers {
					part.Members = l.Members
				}
				out.Waits = append(out.Waits, part)
			}
		}
	}
	return out
}

// maxMembers bounds the members that are listed of the calls of a process, for one call of each replica.
const maxMembers = 1 << 14

// bytes is how many bytes the larger of the replica's two buffers has, as far as the record says it.
func (r *record) bytes() int {
	c := schedule.Collective(r.collective).Contract()
	elements := int(r.count)
	if r.dtype&wire.ByCounts == 0 && !wire.IsMessage(r.collective) && r.collective != wire.Execute {
		elements = c.Elements(elements, len(r.label.Members))
	}
	return elements * tensor.DType(r.dtype&^wire.DTypeMarks).Size()
}

// Report is what this process tells others, at most so many bytes: a line of data, a watch.Process, and what Now says,
// cut after a line. What is left of the bytes has the times of calls.
func (s *Recorders) Report(limit int) []byte {
	w := s.Look()
	state := s.state(w, 1, 0)
	if limit >= transport.MaxReply {
		s.Stacks(&state)
	}
	line := fit(&state, limit/2)
	text := s.Now()
	if room := min(limit-len(line), maxText); len(text) > room {
		text = text[:strings.LastIndexByte(text[:max(room, 0)], '\n')+1]
	}
	if room := limit - len(line) - len(text) - timesKey*len(state.Replicas); room > 0 && len(state.Replicas) > 0 {
		// In base64 four bytes have three.
		for i := range state.Replicas {
			state.Replicas[i].Times = w.ofReplica(state.Replicas[i].Replica, room/len(state.Replicas)*3/4).Times
		}
		line = fit(&state, limit-len(text))
	}
	return append(line, text...)
}

// What Report keeps for text at most, and the name of Times takes.
const (
	maxText  = 1 << 10
	timesKey = 16
)

// fit is a line with a state in at most so many bytes. It takes from the state what does not fit.
func fit(p *watch.Process, limit int) []byte {
	for step := 0; ; step++ {
		line, err := json.Marshal(p)
		if err != nil { // there is nothing in it that cannot be marshalled
			panic(err)
		}
		if line = append(line, '\n'); len(line) <= limit || !p.Shorten(step) {
			return line
		}
	}
}
