package inproc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"gogcl.dev/transport"
)

// smallLimit is the greatest message that is copied for the others to read instead of being read where it lies.
const smallLimit = 4 << 10

// inlineLimit is the size of a message that lies in the notice itself.
const inlineLimit = 8

// meeting is where the members of a group meet on one lane. Its barriers have numbers, counted by each member for
// itself. Where every member can have a processor, each looks at all the others' seats; else the last to arrive looks
// for all, and the others wait for its word.
type meeting struct {
	members  []int
	spacious bool // every member can have a processor
	limit    int  // of a visit's spins
	// each on lines of its own: Go puts a header before an array that has pointers and more than 512 bytes
	seats []*seat

	_     [64]byte
	count atomic.Int32 // who has arrived at the barrier in progress
	_     [60]byte
	done  atomic.Uint64 // the barriers that are complete
	_     [56]byte
	next  atomic.Int64 // of a Share: the piece that nobody has taken
	_     [56]byte
	left  atomic.Int64 // of a Share: how many pieces are not done
	_     [56]byte

	// By operation, in turn; written by the last to arrive before it says that the barrier is complete.
	combined [2][]byte // results for all
	combines [2]bool   // whether there is one
	spreads  [2]bool   // what becomes of visit.nextSpread
}

// seat is a member's place. Only the member writes.
type seat struct {
	notices [2]notice // by operation, in turn: nobody writes one that another may still read
	synced  atomic.Uint64
	inside  atomic.Bool // the member may touch the others' memory
	_       [64 - 12]byte
	memory  transport.Memory
	boards  [2][]byte // small messages, by operation, in turn
	queue   *queue
	_       [64 - (5*24+2*24+8)%64]byte
}

// notice is what a member says when it arrives. It fills a cache line.
type notice struct {
	number atomic.Uint64 // the stamp of the barrier, or in a queue the number of the Broadcast
	call   transport.Call
	inline [inlineLimit]byte
}

// stage is what a visit waits for.
type stage uint8

const (
	announcing stage = iota // all at the first barrier of a Share or Gather
	syncing                 // all at any other barrier
	sharing                 // all pieces to be done
	taking                  // a message of Broadcast
	catching                // all to have come near in the queue
)

// stamp is the number of a barrier with one bit behind it: whether the member that arrives there holds the processors
// to be crowded.
func stamp(number uint64, crowded bool) uint64 {
	number <<= 1
	if crowded {
		number |= 1
	}
	return number
}

// crowdedAt is the bit of a stamp.
func crowdedAt(stamp uint64) bool { return stamp&1 != 0 }

// visit is a member's own view of a meeting.
type visit struct {
	*meeting
	given      []int // the members as the caller gave them
	place      int
	number     uint64 // of the barrier it is at, or was at last
	operations uint64 // how many times it has shared or gathered
	broadcasts uint64 // how many times it has broadcast
	history    uint64 // of their roots
	awaited    uint64 // taking, catching: the broadcast
	spins      int    // how often to look before parking, and
	yields     int    // how often to let others run
	from       int    // taking: the place
	views      []transport.Memory
	all        [][]byte
	stage      stage
	spread     bool     // in the operation in progress all look for themselves
	nextSpread bool     // in the next operation they do; the same at all members
	viewed     bool     // views hold the members' memory
	_          [36]byte // three lines in all
}

var errCrash = errors.New("a Combiner or a Worker panicked or ended its goroutine")

// assembly stands in endpoint.waiting for a meeting.
var assembly slot

// checkMembers says what is wrong with a list of members.
func (e *endpoint) checkMembers(members []int) error {
	for i, r := range members {
		switch {
		case r < 0 || r >= len(e.lane.eps):
			return &transport.ArgumentError{Reason: fmt.Sprintf("member %d of %d replicas", r, len(e.lane.eps))}
		case slices.Contains(members[:i], r):
			return &transport.ArgumentError{Reason: fmt.Sprintf("member %d twice", r)}
		}
	}
	if !slices.Contains(members, e.rank) {
		return &transport.ArgumentError{Reason: fmt.Sprintf("replica %d is not among the members", e.rank)}
	}
	return nil
}

// join finds the meeting of a group, or makes it, and remembers it. It returns nil when the group has other members.
func (e *endpoint) join(group uint64, members []int) *visit {
	l := e.lane
	l.nw.mu.Lock()
	defer l.nw.mu.Unlock()
	n := len(members)
	m := l.meetings[group]
	if m == nil {
		m = &meeting{
			members: slices.Clone(members), spacious: l.nw.spacious, limit: l.nw.spins, seats: make([]*seat, n)}
		for i := range m.seats {
			m.seats[i] = &seat{boards: [2][]byte{make([]byte, smallLimit), make([]byte, smallLimit)}, queue: new(queue)}
		}
		m.combined = [2][]byte{make([]byte, smallLimit), make([]byte, smallLimit)}
		if l.meetings == nil {
			l.meetings = map[uint64]*meeting{}
		}
		l.meetings[group] = m
	}
	if !slices.Equal(m.members, members) {
		return nil
	}
	lines := (n + 7) &^ 7 // so many of whatever fill cache lines
	v := &visit{
		meeting: m, given: members, nextSpread: m.spacious, spins: l.nw.spins, place: slices.Index(members, e.rank),
		views: make([]transport.Memory, n, lines), all: make([][]byte, n, lines),
	}
	if e.visits == nil {
		e.visits = map[uint64]*visit{}
	}
	e.visits[group] = v
	return v
}

// same reports whether two slices are one.
func same(a, b []int) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// visiting makes ready for an operation at a meeting. On success busy is held. An endpoint that is aborted gets no
// further: it must not write what those who have not noticed yet may still read.
func (e *endpoint) visiting(ctx context.Context, call *transport.Call, members []int) (*visit, error) {
	if !e.busy.TryLock() {
		return nil, e.refuse(call)
	}
	if e.closed.Load() {
		e.busy.Unlock()
		return nil, e.refuse(call)
	}
	v := e.last
	if v == nil || call.Group != e.lastGroup || !same(v.given, members) {
		v = e.visits[call.Group]
		if v == nil || !slices.Equal(v.members, members) {
			if err := e.checkMembers(members); err != nil {
				e.busy.Unlock()
				return nil, err
			}
			v = e.join(call.Group, members)
		}
		e.last, e.lastGroup = v, call.Group
	}
	e.ctx, e.done, e.call = ctx, ctx.Done(), *call
	e.called = true
	e.chains, e.offered, e.sent = e.chains[:0], 0, 0
	err := e.interruption()
	if err == nil && v == nil {
		err = fmt.Errorf("group %#x has other members than %v", call.Group, members)
	}
	if err != nil {
		err = e.fail(nil, err)
		e.dismiss()
		return nil, err
	}
	e.call.Digest ^= v.history
	v.spread, v.yields = v.nextSpread, meetYields
	e.visit = v
	return v, nil
}

// dismiss ends a visit.
func (e *endpoint) dismiss() {
	e.ctx, e.done, e.visit = nil, nil, nil
	e.busy.Unlock()
}

// SmallLimit implements transport.Boards.
func (e *endpoint) SmallLimit() int { return smallLimit }

// vacate is part of fail: it returns when no member can touch this one's memory any more. The network is aborted, so
// nobody goes inside again, and those who are leave after the piece that they are at.
func (v *visit) vacate() {
	own := v.seats[v.place]
	own.inside.Store(false)
	for _, s := range v.seats {
		for s.inside.Load() {
			runtime.Gosched()
		}
	}
	own.memory = transport.Memory{}
}

// missing is the first member that has not arrived and never will, being closed, or -1.
func (e *endpoint) missing(v *visit) int {
	for i, r := range v.members {
		if e.lane.eps[r].left.Load() != nil && !v.present(i) {
			return r
		}
	}
	return -1
}
