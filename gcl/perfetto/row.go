package perfetto

import (
	"sync"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/transport"
)

// none is the index of no event.
const none = -1

// row is what one connection of one replica tells. Its calls take turns, so at most one is open. A call that is turned
// away tells of that on a goroutine of its own, at any time.
type row struct {
	timeline *Timeline

	mu          sync.Mutex // guards all below
	last        int64      // the latest time told, in ns
	began       int64      // when a call started whose method is not known yet
	call, round int        // indices of the events that are open, or none
	events      []event
	slices      int // how many of events are calls and rounds
}

// event is what a row remembers. Times are nanoseconds since the beginning of the Timeline.
type event struct {
	kind           kind
	phase, number  int32  // of a round
	began, ended   int64  // ended is 0 before the end; of a segment received, began is 0 until its round is over
	sent, received int    // bytes, of a round
	flow           uint64 // of a segment: see flow
	call           *call  // of rounds and segments nil
}

// kind says what an event is.
type kind uint8

const (
	whole    kind = iota // a call
	round                // a round of the call before it
	sent                 // a segment, in the round before it
	received             // the same
	refused              // a call that never began
)

// call is what is known of a call.
type call struct {
	gcl.TraceCall
	err string
}

// apart is the least time between two events of a row, in ns. Viewers make whole nanoseconds of the file's decimal
// microseconds, by floating point, and may be one off in a begin and in a duration.
const apart = 4

// now reads the clock. Two times of a row differ, so no slice is empty, and a slice that begins inside another ends
// inside too.
func (r *row) now() int64 {
	r.last = max(r.last+apart, int64(time.Since(r.timeline.start)))
	return r.last
}

// add remembers an event if there is room, and returns its index or none.
func (r *row) add(e event) int {
	if !r.timeline.keep() {
		return none
	}
	if e.kind == whole || e.kind == round {
		r.slices++
	}
	r.events = append(r.events, e)
	return len(r.events) - 1
}

// choose begins a call, or tells more of the one that is open.
func (r *row) choose(c *gcl.TraceCall) {
	if r.call != none {
		open := r.events[r.call].call
		if open.Group == c.Group && open.Seq == c.Seq && open.IPUs == c.IPUs {
			open.TraceCall = *c
			return
		}
		r.leave("the call did not return") // a panic
	}
	if r.began == 0 {
		r.began = r.now()
	}
	r.call, r.round = r.add(event{kind: whole, began: r.began, call: &call{TraceCall: *c}}), none
	r.began = 0
}

// leave ends the call that is open.
func (r *row) leave(err string) {
	if r.call != none {
		r.events[r.call].call.err = err
		r.events[r.call].ended = r.now()
	}
	r.call, r.round = none, none
}

// end ends a call, which may be one that has not begun.
func (r *row) end(c *gcl.TraceCall, err error) {
	told := ""
	if err != nil {
		told = short(err.Error())
	}
	if c.Path == gcl.PathUnknown {
		r.add(event{kind: refused, began: r.now(), call: &call{TraceCall: *c, err: told}})
		return
	}
	if r.call != none {
		r.events[r.call].call.TraceCall = *c
	}
	r.leave(told)
}

// startRound begins a round of the call that is open.
func (r *row) startRound(c *gcl.TraceCall, number int) {
	if r.call == none {
		r.timeline.dropped.Add(1)
		return
	}
	r.round = r.add(event{kind: round, phase: int32(c.Phase), number: int32(number), began: r.now()})
}

// segment counts a segment in its round, and notes a message's end of an arrow.
func (r *row) segment(c *gcl.TraceCall, number int, s gcl.TraceSegment) {
	if r.round == none {
		r.timeline.dropped.Add(1)
		return
	}
	e := event{kind: sent}
	from, to := c.Replica, s.Peer
	if s.Kind == transport.Send {
		r.events[r.round].sent += s.Bytes
		e.began = r.now()
	} else {
		r.events[r.round].received += s.Bytes
		e.kind, from, to = received, to, from
	}
	if c.Path != gcl.PathMessages || c.IPUs > 0 {
		return
	}
	e.flow = flow(c, number, from, to, s.Number)
	r.add(e)
}

// flow is the id of the arrow of a segment, alike at sender and receiver and different for any other segment, as far as
// 64 bits can tell.
func flow(c *gcl.TraceCall, round, from, to int, number uint64) uint64 {
	id, seq := uint64(0), c.Seq
	if c.Message && from == c.Replica { // a message has one number at both ends
		seq = c.SentSeq
	}
	for _, n := range [...]uint64{c.ConnectionID, c.Group, seq, uint64(c.Phase), uint64(round), uint64(from),
		uint64(to), number} {
		id = mix(id + n)
	}
	return id
}

// mix is a step of splitmix64: a permutation whose output looks random.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// endRound ends the round that is open. What it was to receive has come, unless there is an error.
func (r *row) endRound(err error) {
	if r.round == none {
		return
	}
	came := r.now()
	if err == nil {
		for i := r.round + 1; i < len(r.events); i++ {
			if r.events[i].kind == received {
				r.events[i].began = came
			}
		}
	}
	r.events[r.round].ended = r.now()
	r.round = none
}

// maxErrorBytes bounds the text of an error that is kept: errors of many replicas are long.
const maxErrorBytes = 1 << 10

// short is a text, or its beginning.
func short(s string) string {
	if len(s) > maxErrorBytes {
		return s[:maxErrorBytes] + "..."
	}
	return s
}
