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

// gatherLimit is the greatest message that is copied for the others to read instead of being read where it lies.
const gatherLimit = 4 << 10

// inlineLimit is the size of a message that lies in the notice itself.
const inlineLimit = 8

// meeting is where the members of a group meet on one lane. Its barriers have numbers, counted by each member for itself. Where every member can have
// a processor, each looks at all the others' seats; else the last to arrive looks for all, and the others wait for its word.
type meeting struct {
	members []int
	roomy   bool
	seats   []*seat // each on lines of its own: Go puts a header before an array that has pointers and more than 512 bytes

	_     [64]byte
	count atomic.Int32 // who has arrived at the barrier in progress
	_     [60]byte
	done  atomic.Uint64 // the barriers that are complete
	_     [56]byte
	next  atomic.Uint64 // operation number << 32 | the next piece of work
	_     [56]byte

	// By operation, in turn; written by the last to arrive before it says that the barrier is complete.
	combined [2][]byte // results for all
	combines [2]bool   // whether there is one
}

// seat is a member's place. Only the member writes.
type seat struct {
	notices [2]notice // by operation, in turn: nobody writes one that another may still read
	synced  atomic.Uint64
	inside  atomic.Bool // the member may touch the others' memory
	_       [64 - 12]byte
	memory  transport.Memory
	boards  [2][]byte // small messages, by operation, in turn
	_       [64 - (5*24+2*24)%64]byte
}

// notice is what a member says when it arrives. It fills a cache line.
type notice struct {
	number atomic.Uint64 // of the barrier
	call   transport.Call
	inline [inlineLimit]byte
}

// visit is a member's own view of a meeting.
type visit struct {
	*meeting
	place      int
	number     uint64 // of the barrier it is at, or was at last
	operations uint64 // how many times it has met or gathered
	spins      int    // how often to look before parking
	announcing bool   // the barrier is that of a Meet or Gather
	views      []transport.Memory
	all        [][]byte
	_          [32]byte // two lines in all
}

var (
	errNotMet   = errors.New("Sync or Part without Meet")
	errCombiner = errors.New("a Combiner panicked or ended its goroutine")
)

// assembly stands in endpoint.waiting for a meeting's barrier.
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
		m = &meeting{members: slices.Clone(members), roomy: l.nw.roomy, seats: make([]*seat, n)}
		for i := range m.seats {
			m.seats[i] = &seat{boards: [2][]byte{make([]byte, gatherLimit), make([]byte, gatherLimit)}}
		}
		m.combined = [2][]byte{make([]byte, gatherLimit), make([]byte, gatherLimit)}
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
		meeting: m, spins: maxMeetSpins, place: slices.Index(members, e.rank),
		views: make([]transport.Memory, n, lines), all: make([][]byte, n, lines),
	}
	if e.visits == nil {
		e.visits = map[uint64]*visit{}
	}
	e.visits[group] = v
	return v
}

// visiting makes ready for a Meet or a Gather. On success busy is held. An endpoint that is aborted gets no further: it must not write what those who have not noticed
// yet may still read.
func (e *endpoint) visiting(ctx context.Context, call *transport.Call, members []int) (*visit, error) {
	if !e.busy.TryLock() {
		return nil, e.refuse(call)
	}
	if e.closed.Load() {
		e.busy.Unlock()
		return nil, e.refuse(call)
	}
	v := e.visits[call.Group]
	if v == nil || !slices.Equal(v.members, members) {
		if err := e.checkMembers(members); err != nil {
			e.busy.Unlock()
			return nil, err
		}
		v = e.join(call.Group, members)
	}
	e.ctx, e.done, e.call = ctx, ctx.Done(), *call
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
	e.visit = v
	v.operations++
	v.announcing = true
	return v, nil
}

// dismiss ends a visit.
func (e *endpoint) dismiss() {
	e.ctx, e.done, e.visit = nil, nil, nil
	e.busy.Unlock()
}

// Meet implements transport.PeerMemory.
func (e *endpoint) Meet(ctx context.Context, call transport.Call, members []int, mine transport.Memory) ([]transport.Memory, error) {
	v, err := e.visiting(ctx, &call, members)
	if err != nil {
		return nil, err
	}
	own := v.seats[v.place]
	own.memory = mine
	n := &own.notices[v.operations%2]
	n.call = call
	if err := e.arrive(v, nil); err != nil {
		e.dismiss()
		return nil, err
	}
	// First say that we are inside, then look for an abort: who aborts does it the other way round, so one of the two sees the other.
	own.inside.Store(true)
	if err := e.interruption(); err != nil {
		err = e.fail(nil, err)
		e.dismiss()
		return nil, err
	}
	for i := range v.seats {
		v.views[i] = v.seats[i].memory
	}
	return v.views, nil
}

// Err implements transport.PeerMemory.
func (e *endpoint) Err() error { return e.interruption() }

// Next implements transport.PeerMemory.
func (e *endpoint) Next() int {
	v := e.visit
	for {
		have := v.next.Load()
		n := have & 0xffffffff
		if have>>32 != v.operations&0xffffffff {
			n = 0 // left from an earlier operation
		}
		if v.next.CompareAndSwap(have, v.operations<<32|(n+1)) {
			return int(n)
		}
	}
}

// Sync implements transport.PeerMemory.
func (e *endpoint) Sync(ctx context.Context) error {
	v := e.visit
	if v == nil {
		return errNotMet
	}
	e.ctx, e.done = ctx, ctx.Done()
	v.announcing = false
	return e.arrive(v, nil)
}

// Part implements transport.PeerMemory.
func (e *endpoint) Part(ctx context.Context) error {
	v := e.visit
	if v == nil {
		return errNotMet
	}
	e.ctx, e.done = ctx, ctx.Done()
	v.announcing = false
	v.seats[v.place].inside.Store(false)
	err := e.arrive(v, nil)
	v.seats[v.place].memory = transport.Memory{}
	clear(v.views)
	e.dismiss()
	return err
}

// GatherLimit implements transport.PeerMemory.
func (e *endpoint) GatherLimit() int { return gatherLimit }

// Gather implements transport.PeerMemory.
func (e *endpoint) Gather(ctx context.Context, call transport.Call, members []int, mine []byte, size int, c transport.Combiner) ([][]byte, []byte, error) {
	switch {
	case size < 0 || size > gatherLimit:
		return nil, nil, &transport.ArgumentError{Reason: fmt.Sprintf("Gather of %d bytes, at most %d", size, gatherLimit)}
	case len(mine) != 0 && len(mine) != size:
		return nil, nil, &transport.ArgumentError{Reason: fmt.Sprintf("Gather of %d bytes is given %d", size, len(mine))}
	}
	v, err := e.visiting(ctx, &call, members)
	if err != nil {
		return nil, nil, err
	}
	settled := false
	defer func() {
		if !settled { // a Combiner panicked or ended its goroutine
			e.fail(nil, errCombiner)
		}
		e.dismiss()
	}()
	turn := v.operations % 2
	n := &v.seats[v.place].notices[turn]
	n.call = call
	if size <= inlineLimit {
		copy(n.inline[:], mine)
	} else {
		copy(v.seats[v.place].boards[turn], mine)
	}
	for i, s := range v.seats {
		if v.all[i] = s.boards[turn][:size]; size <= inlineLimit {
			v.all[i] = s.notices[turn].inline[:size]
		}
	}
	err = e.arrive(v, c)
	settled = true
	if err != nil {
		return nil, nil, err
	}
	if c != nil && v.combines[turn] {
		return nil, v.combined[turn][:size], nil
	}
	return v.all, nil, nil
}

// arrive is one barrier. At that of a Meet or Gather the calls are compared, and with a Combiner the last to arrive combines what was gathered.
func (e *endpoint) arrive(v *visit, c transport.Combiner) error {
	if err := e.interruption(); err != nil {
		return e.fail(nil, err)
	}
	v.number++
	e.overdue = false
	if own := v.seats[v.place]; v.announcing {
		own.notices[v.operations%2].number.Store(v.number)
	} else {
		own.synced.Store(v.number)
	}
	if !v.roomy {
		if int(v.count.Add(1)) == len(v.seats) {
			if err := e.compare(v); err != nil {
				return err
			}
			if turn := v.operations % 2; v.announcing {
				if v.combines[turn] = c != nil; c != nil {
					c.Combine(v.combined[turn][:len(v.all[0])], v.all)
				}
			}
			v.count.Store(0)
			v.done.Store(v.number)
			e.summon(v)
			return nil
		}
		return e.wait(v)
	}
	if v.met() { // as seen by the last to arrive, and perhaps by others
		e.summon(v)
	} else if err := e.wait(v); err != nil {
		return err
	}
	return e.compare(v)
}

// summon wakes the members that are parked.
func (e *endpoint) summon(v *visit) {
	for _, r := range v.members {
		if r != e.rank {
			e.lane.eps[r].rouseFrom(&assembly, byEvent)
		}
	}
}

// compare checks that all who have met are in the same call.
func (e *endpoint) compare(v *visit) error {
	if !v.announcing {
		return nil
	}
	for i := range v.seats {
		if theirs := &v.seats[i].notices[v.operations%2].call; *theirs != e.call {
			return e.fail(nil, &transport.MismatchError{Rank: e.rank, Peer: v.members[i], Mine: e.call, Theirs: *theirs})
		}
	}
	return nil
}

// present reports whether the member at a place has arrived at the barrier that v is at. A bystander may ask.
func (v *visit) present(place int) bool {
	s := v.seats[place]
	if v.announcing {
		return s.notices[v.operations%2].number.Load() >= v.number
	}
	return s.synced.Load() >= v.number
}

// met reports whether the barrier that v is at is complete.
func (v *visit) met() bool {
	if !v.roomy {
		return v.done.Load() >= v.number
	}
	for i := range v.seats {
		if !v.present(i) {
			return false
		}
	}
	return true
}

// meetYields is how often a member lets others run before it parks, where members outnumber processors.
const meetYields = 5

// wait waits for the barrier.
func (e *endpoint) wait(v *visit) error {
	looks := 0
	for ; !v.met(); looks++ {
		if err := e.interrupted(); err != nil {
			return err
		}
		switch {
		case v.roomy && looks < v.spins:
		case !v.roomy && looks < meetYields:
			runtime.Gosched()
		default:
			if err := e.sleep(); err != nil {
				return err
			}
		}
	}
	switch { // spinning in vain costs the processor that the others may be waiting for
	case looks == 0:
	case looks <= v.spins:
		v.spins = min(2*v.spins, maxMeetSpins)
	default:
		v.spins = max(v.spins/2, minMeetSpins)
	}
	return nil
}

// How often a member with a processor of its own looks before it parks: up to some 50 us, which is what a park and a wake-up cost together when the
// other processor sleeps, and less when that has turned out to be in vain. The least must outlast a wake-up in the ordinary case, some
// 5 us, or two members that have parked once make each other park for ever: gclperf -n 2 showed 2 us at 8 B with 64 looks, 0.3 with 512 and more.
const (
	minMeetSpins = 1024
	maxMeetSpins = 4096
)

// vacate is part of fail: it returns when no member can touch this one's memory any more. The network is aborted, so nobody goes inside again, and those who are
// leave after the piece that they are at.
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
		if e.lane.eps[r].closed.Load() && !v.present(i) {
			return r
		}
	}
	return -1
}
