package perfetto

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/gcl"
)

// Timeline collects what the replicas of a process tell. The zero value is ready. It is for the calls of one
// communicator: two communicators number their calls alike, so arrows of one would end at the other.
//
// All methods may be called at any time, by several goroutines. Collecting costs a call some allocations, and each
// event a look at the clock. A Timeline must not be copied after its first use.
type Timeline struct {
	// Limit bounds how many events are kept: calls, rounds, and both sides of segments. An event takes up to
	// 160 bytes, that of a call 400 more, and an error that is kept up to 1 KiB. Events after the first Limit are
	// only counted: see Dropped. 0 or less is DefaultLimit. Limit must not change after the first use.
	Limit int

	once          sync.Once
	start         time.Time
	kept, dropped atomic.Int64

	mu   sync.RWMutex // guards rows, not what is in them
	rows map[place]*row
}

// DefaultLimit is the Limit of a Timeline that has none: files of about 40 MB.
const DefaultLimit = 1 << 18

// place says which row of the file an event belongs to.
type place struct{ replica, connection int }

// begin notes the time to which all others are relative.
func (t *Timeline) begin() { t.once.Do(func() { t.start = time.Now() }) }

// keep reports whether there is room for another event.
func (t *Timeline) keep() bool {
	limit := int64(t.Limit)
	if limit <= 0 {
		limit = DefaultLimit
	}
	if t.kept.Add(1) > limit {
		t.kept.Add(-1)
		t.dropped.Add(1)
		return false
	}
	return true
}

// Dropped is how many events were not kept for lack of room.
func (t *Timeline) Dropped() int { return int(t.dropped.Load()) }

// Replicas lists the replicas that have told of a call, in order.
func (t *Timeline) Replicas() []int {
	var out []int
	for _, p := range t.places() {
		out = append(out, p.replica)
	}
	return slices.Compact(out)
}

// Slices is how many calls and rounds there are.
func (t *Timeline) Slices() int {
	n := 0
	for _, p := range t.places() {
		r := t.row(p)
		r.mu.Lock()
		n += r.slices
		r.mu.Unlock()
	}
	return n
}

// places lists the rows in order.
func (t *Timeline) places() []place {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []place
	for p := range t.rows {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b place) int {
		if a.replica != b.replica {
			return a.replica - b.replica
		}
		return a.connection - b.connection
	})
	return out
}

// row returns a row, which it makes if need be.
func (t *Timeline) row(p place) *row {
	t.mu.RLock()
	r := t.rows[p]
	t.mu.RUnlock()
	if r != nil {
		return r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r = t.rows[p]; r == nil {
		if t.rows == nil {
			t.rows = map[place]*row{}
		}
		r = &row{timeline: t, call: none, round: none}
		t.rows[p] = r
	}
	return r
}

// locked returns the row of a call. The caller unlocks it.
func (t *Timeline) locked(c *gcl.TraceCall) *row {
	r := t.row(place{c.Replica, c.Connection})
	r.mu.Lock()
	return r
}

// Trace returns functions that collect, for Options.Trace of any number of replicas of this process.
func (t *Timeline) Trace() *gcl.Trace {
	t.begin()
	return &gcl.Trace{
		CollectiveStart: func(c gcl.TraceCall) {
			r := t.locked(&c)
			defer r.mu.Unlock()
			r.began = r.now()
		},
		MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) {
			r := t.locked(&c)
			defer r.mu.Unlock()
			r.choose(&c)
		},
		RoundStart: func(c gcl.TraceCall, round int) {
			r := t.locked(&c)
			defer r.mu.Unlock()
			r.startRound(&c, round)
		},
		Segment: func(c gcl.TraceCall, round int, s gcl.TraceSegment) {
			r := t.locked(&c)
			defer r.mu.Unlock()
			r.segment(&c, round, s)
		},
		RoundEnd: func(c gcl.TraceCall, _ int, err error) {
			r := t.locked(&c)
			defer r.mu.Unlock()
			r.endRound(err)
		},
		CollectiveEnd: func(c gcl.TraceCall, err error) {
			r := t.locked(&c)
			defer r.mu.Unlock()
			r.end(&c, err)
		},
	}
}
