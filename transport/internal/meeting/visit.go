package meeting

import (
	"runtime"

	"gogcl.dev/transport"
)

// Host is what a transport does for one member of a meeting, on whose goroutine all of it is called. Members are known
// by their places at the table.
type Host interface {
	// Wait returns when Visit.Met, or fails the call.
	Wait() error

	// Ring wakes the members that sleep at this meeting. Proclaim also wakes those that have long slept in other calls,
	// to whom a broadcast may show that they are in the wrong one.
	Ring()
	Proclaim()

	// Interruption says why the member must stop, or nil: an abort, its own context, or that it is closed. It sees an
	// abort before whoever has made it looks for members inside.
	Interruption() error

	// Fail ends the call with an error of the member's own, and returns what the call returns.
	Fail(err error) error

	// Deserted is asked by a root, which waits for nobody. It fails the call if a member has left.
	Deserted() error

	// Left is what a member has done that has left, or nil if it has not.
	Left(place int) Parting

	// Crowded reports whether other programs want the processors.
	Crowded() bool

	// Show lays the member's memory open, and reports whether it can: where one member cannot, Share returns
	// ErrNotShared to all. Views finds what all members have laid open, by their places. Its error fails the call.
	Show(mine transport.Memory) (open bool)
	Views(views []transport.Memory) error

	// Stuck is asked while a member that may touch this one's memory stays inside after an abort, and reports whether
	// it cannot any more.
	Stuck(place int) bool
}

// Parting is what a member that has left has done.
type Parting interface {
	// Instead is the call that it has made in place of another, as far as is known, or nil.
	Instead(of *transport.Call) *transport.Call
}

// stage is what a visit waits for.
type stage uint8

const (
	assembling stage = iota // all to have a seat
	announcing              // all at the first barrier of a Share or Gather
	syncing                 // all at any other barrier
	sharing                 // all pieces to be done
	taking                  // a message of Broadcast
	catching                // all to have come near in the queue
)

// Visit is a member's own view of a meeting. Between Begin and the end of its operation it belongs to the goroutine of
// the call; bystanders may ask Present while that one waits.
type Visit struct {
	*Table
	host       Host
	own        *Seat
	call       *transport.Call // the one in progress
	Place      int
	number     uint64 // of the barrier it is at, or was at last
	operations uint64 // how many times it has shared or gathered
	broadcasts uint64 // how many times it has broadcast
	history    uint64 // of their roots

	// What the member has written last, and seen: see Check.
	stamps  [2]uint64 // by operation, in turn
	arrived uint64    // Seat.synced
	told    uint64    // the last broadcast in its queue
	seen    uint64    // Hall.done

	awaited    uint64 // taking, catching: the broadcast
	from       int    // taking: the place
	pieces     int    // of a Share of one round
	base       int64  // of Hall.next and Hall.left in the operation in progress
	counted    uint64 // how many barriers it has been at at which members count
	views      []transport.Memory
	all        [][]byte
	stage      stage
	complete   bool // all members have their seats
	hidden     bool // a member's memory is: in the operation in progress nothing is shared
	spread     bool // in the operation in progress all look for themselves
	nextSpread bool // in the next operation they do; the same at all members
	viewed     bool // views hold the members' memory
	combines   bool // in the operation in progress there is a result of a Combiner for all
}

// Init makes v the view of the member at a place.
func (v *Visit) Init(t *Table, place int, host Host) {
	n := len(t.Members)
	lines := (n + 7) &^ 7 // so many of whatever fill cache lines
	*v = Visit{
		Table: t, host: host, own: t.seat(place), Place: place,
		complete:   t.find == nil,
		nextSpread: t.Spacious && t.find == nil, // whether each has a processor shows when they meet
		views:      make([]transport.Memory, n, lines), all: make([][]byte, n, lines),
	}
}

// Begin makes ready for an operation in a call, which is the member's until the operation has ended. The history of
// roots goes into the call's digest.
func (v *Visit) Begin(call *transport.Call) {
	call.Digest ^= v.history
	v.call, v.spread = call, v.nextSpread
}

// Mix makes the call in progress that of a Broadcast. It goes before what others compare.
func (v *Visit) Mix(root, size int) {
	v.call.Digest = (v.call.Digest ^ uint64(root+1)<<32 ^ uint64(size)) * fnvPrime
}

// Call is the call in progress.
func (v *Visit) Call() *transport.Call { return v.call }

// Spread reports whether in the operation in progress, or the last one, every member looks for itself, since it can
// have a processor.
func (v *Visit) Spread() bool { return v.spread }

// assemble waits until all members have their seats.
func (v *Visit) assemble() error {
	if v.complete {
		return nil
	}
	v.stage = assembling
	if !v.Met() {
		if err := v.host.Wait(); err != nil {
			return err
		}
	}
	v.complete = true
	return nil
}

// announce is the first barrier of an operation, at which the calls are compared. With a Combiner the last to arrive
// may combine what was gathered; before a Share it sets out the pieces. open says that the member's memory is laid
// open.
func (v *Visit) announce(c transport.Combiner, open bool) error {
	v.stage = announcing
	v.number++
	turn := v.operations % 2
	n := &v.own.notices[turn]
	n.call = *v.call
	v.spread = v.nextSpread
	v.stamps[turn] = stamp(v.number, v.host.Crowded(), !open)
	n.number.Store(v.stamps[turn])
	if v.spread {
		return v.meetSpread()
	}
	h := v.hall
	last, err := v.count()
	if err != nil {
		return err
	}
	if !last {
		found := h.decided[turn].Load()
		if found>>decisionBits != v.number {
			return v.host.Fail(errOverwritten)
		}
		v.combines, v.nextSpread, v.hidden = found&combinesBit != 0, found&spreadsBit != 0, found&hidesBit != 0
		return nil
	}
	if err := v.compare(); err != nil {
		return err
	}
	if v.combines = c != nil; v.combines {
		c.Combine(h.combined[turn][:len(v.all[0])], v.all)
	}
	h.decided[turn].Store(decision(v.number, v.combines, v.nextSpread, v.hidden))
	h.next.Store(v.base)
	h.left.Store(v.base + int64(v.pieces))
	v.release()
	return nil
}

// count arrives at a barrier at which members count, and reports whether the member is the last, who ends it. The
// others have waited for its end.
func (v *Visit) count() (last bool, err error) {
	v.counted++
	count := v.hall.count.Add(1)
	switch {
	case !v.counts(count):
		return false, v.host.Fail(errOverwritten)
	case count == v.counted*uint64(len(v.seats)):
		return true, nil
	}
	if err := v.host.Wait(); err != nil {
		return false, err
	}
	v.seen = v.number
	return false, nil
}

// counts reports whether so many may have arrived while this member is at a barrier at which members count.
func (v *Visit) counts(count uint64) bool {
	n := uint64(len(v.seats))
	return count > (v.counted-1)*n && count <= v.counted*n
}

// synchronise is any other barrier.
func (v *Visit) synchronise() error {
	if err := v.host.Interruption(); err != nil {
		return v.host.Fail(err)
	}
	v.Arrive()
	if v.spread {
		return v.meetSpread()
	}
	last, err := v.count()
	if last {
		v.release()
	}
	return err
}

// Arrive says that the member is at the next barrier after the first of an operation, and does not wait.
func (v *Visit) Arrive() {
	v.stage = syncing
	v.number++
	v.arrived = v.number
	v.own.synced.Store(v.number)
}

// release gives the word that all have arrived.
func (v *Visit) release() {
	v.seen = v.number
	v.hall.done.Store(v.number)
	v.host.Ring()
}

// meetSpread ends a barrier at which everyone looks for itself.
func (v *Visit) meetSpread() error {
	if v.Met() { // as seen by the last to arrive, and perhaps by others
		v.host.Ring()
	} else if err := v.host.Wait(); err != nil {
		return err
	}
	if v.stage == announcing {
		return v.compare()
	}
	return nil
}

// compare checks that all who have met are in the same call, and finds how they will meet next: as soon as one of them
// holds the processors to be crowded, all do. In the same way all hide what one hides.
func (v *Visit) compare() error {
	stamps := uint64(0)
	for i, s := range v.seats {
		n := &s.notices[v.operations%2]
		if theirs := n.call; i != v.Place && theirs != *v.call {
			return v.disagree(i, theirs)
		}
		stamps |= n.number.Load()
	}
	v.nextSpread = v.Spacious && stamps&crowdedBit == 0
	v.hidden = stamps&hiddenBit != 0
	return nil
}

// disagree ends an operation with a member that is in another call.
func (v *Visit) disagree(place int, theirs transport.Call) error {
	return v.host.Fail(v.mismatch(place, *v.call, theirs))
}

// mismatch is that of a call with a member's.
func (v *Visit) mismatch(place int, mine, theirs transport.Call) *transport.MismatchError {
	return &transport.MismatchError{Replica: v.Members[v.Place], Peer: v.Members[place], Mine: mine, Theirs: theirs}
}

// Present reports whether v has no need to wait for the member at a place. A bystander may ask. A number is compared
// for being the very one that is awaited: nobody can be further, and what is greater has been overwritten.
func (v *Visit) Present(place int) bool {
	s := v.seat(place)
	switch {
	case s == nil:
		return false
	case v.stage == announcing:
		return s.notices[v.operations%2].number.Load()>>stampBits == v.number
	case v.stage == syncing: // or at the next one
		return s.synced.Load()-v.number <= 1
	case v.stage == taking:
		return place != v.from || s.at(v.awaited).number.Load() == v.awaited
	case v.stage == catching:
		return place == v.Place || s.at(v.awaited).number.Load() == v.awaited
	case v.stage == sharing:
		return v.hall.left.Load() == v.base || !s.inside.Load() // those inside have a piece, or look for one
	}
	return true // assembling
}

// Met reports whether v has nothing to wait for.
func (v *Visit) Met() bool {
	switch {
	case v.stage == taking:
		return v.Present(v.from)
	case v.stage == sharing:
		return v.hall.left.Load() == v.base
	case !v.spread && (v.stage == announcing || v.stage == syncing):
		return v.hall.done.Load() == v.number
	}
	for i := range v.seats {
		if !v.Present(i) {
			return false
		}
	}
	return true
}

// Missing is the place of the first member that has not arrived and never will, since it has left, or -1.
func (v *Visit) Missing() int {
	for i := range v.seats {
		if v.host.Left(i) != nil && !v.Present(i) {
			return i
		}
	}
	return -1
}

// Vacate is for a member whose call has failed, after the abort: it returns when no member can touch this one's memory
// any more. Nobody goes inside again, and those who are leave after the piece that they are at.
func (v *Visit) Vacate() {
	v.own.inside.Store(false)
	for i, s := range v.seats {
		for s != nil && s.inside.Load() && !v.host.Stuck(i) {
			runtime.Gosched()
		}
	}
}
