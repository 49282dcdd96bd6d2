package inproc

import (
	"runtime"
	"time"

	"gogcl.dev/transport"
)

// announce is the first barrier of an operation, at which the calls are compared. With a Combiner the last to arrive
// may combine what was gathered; before a Share it sets out the pieces.
func (e *endpoint) announce(v *visit, c transport.Combiner, pieces int) error {
	v.stage = announcing
	v.number++
	e.overdue = false
	n := &v.seats[v.place].notices[v.operations%2]
	n.call = e.call
	v.spread = v.nextSpread
	n.number.Store(stamp(v.number, e.lane.nw.crowd.is()))
	turn := v.operations % 2
	if v.spread {
		return e.meetSpread(v)
	}
	if int(v.count.Add(1)) < len(v.seats) {
		if err := e.wait(v); err != nil {
			return err
		}
		v.nextSpread = v.spreads[turn]
		return nil
	}
	if err := e.compare(v); err != nil {
		return err
	}
	v.spreads[turn] = v.nextSpread
	if v.combines[turn] = c != nil; c != nil {
		c.Combine(v.combined[turn][:len(v.all[0])], v.all)
	}
	v.next.Store(0)
	v.left.Store(int64(pieces))
	e.complete(v)
	return nil
}

// synchronise is any other barrier.
func (e *endpoint) synchronise(v *visit) error {
	if err := e.interruption(); err != nil {
		return e.fail(nil, err)
	}
	v.stage = syncing
	v.number++
	e.overdue = false
	v.seats[v.place].synced.Store(v.number)
	if v.spread {
		return e.meetSpread(v)
	}
	if int(v.count.Add(1)) < len(v.seats) {
		return e.wait(v)
	}
	e.complete(v)
	return nil
}

// complete gives the word that all have arrived.
func (e *endpoint) complete(v *visit) {
	v.count.Store(0)
	v.done.Store(v.number)
	e.summon(v)
}

// meetSpread ends a barrier at which everyone looks for itself.
func (e *endpoint) meetSpread(v *visit) error {
	if v.met() { // as seen by the last to arrive, and perhaps by others
		e.summon(v)
	} else if err := e.wait(v); err != nil {
		return err
	}
	if v.stage == announcing {
		return e.compare(v)
	}
	return nil
}

// summon wakes the members that are parked.
func (e *endpoint) summon(v *visit) {
	for _, r := range v.members {
		if r != e.rank {
			e.lane.eps[r].rouseFrom(&assembly, byEvent)
		}
	}
}

// compare checks that all who have met are in the same call, and finds how they will meet next: as soon as one of them
// holds the processors to be crowded, all do.
func (e *endpoint) compare(v *visit) error {
	crowded := false
	for i, s := range v.seats {
		n := &s.notices[v.operations%2]
		if i != v.place && n.call != e.call {
			return e.disagree(v, i, n.call)
		}
		crowded = crowded || crowdedAt(n.number.Load())
	}
	v.nextSpread = v.spacious && !crowded
	return nil
}

// disagree ends an operation with a member that is in another call.
func (e *endpoint) disagree(v *visit, place int, theirs transport.Call) error {
	return e.fail(nil, &transport.MismatchError{Replica: e.rank, Peer: v.members[place], Mine: e.call, Theirs: theirs})
}

// present reports whether v has no need to wait for the member at a place. A bystander may ask.
func (v *visit) present(place int) bool {
	s := v.seats[place]
	switch v.stage {
	case announcing:
		return s.notices[v.operations%2].number.Load() >= stamp(v.number, false)
	case syncing:
		return s.synced.Load() >= v.number
	case taking:
		return place != v.from || s.queue.at(v.awaited).number.Load() >= v.awaited
	case catching:
		return place == v.place || s.queue.at(v.awaited).number.Load() >= v.awaited
	}
	return v.left.Load() == 0 || !s.inside.Load() // sharing: those inside have a piece, or look for one
}

// met reports whether v has nothing to wait for.
func (v *visit) met() bool {
	switch {
	case v.stage == taking:
		return v.present(v.from)
	case v.stage == sharing:
		return v.left.Load() == 0
	case v.stage != catching && !v.spread:
		return v.done.Load() >= v.number
	}
	for i := range v.seats {
		if !v.present(i) {
			return false
		}
	}
	return true
}

// How often a member with a processor of its own looks before it parks: up to some 50 us, which is what a park and a
// wake-up cost together when the other processor sleeps, and less when that has turned out to be in vain. The least
// must outlast a wake-up in the ordinary case, some 5 us, or two members that have parked once make each other park
// for ever: gclperf -n 2 showed 2 us at 8 B where it was shorter, 0.3 else. A look takes 1 to 2 ns.
const (
	minMeetSpins = 8 << 10
	maxMeetSpins = 32 << 10
)

// looksPerCheck is how often a member looks for the others before it looks for an interruption, which costs as much as
// several looks.
const looksPerCheck = 32

// looksPerYield is how often a member with a processor of its own looks before it lets other goroutines run once, some
// 5 us: the one that it waits for may be queued behind it, having been woken by it or after a crowded time. Without
// this, gclperf -n 4 -sizes 8 began at 0.5 or 2 us by chance on four cores; with it at 0.5.
const looksPerYield = 4 << 10

// How often a member lets others run before it parks, where members outnumber processors: less often where the others
// will be done in no time. gclperf -n 8 -sizes 8,32K on two cores, medians of three: at 8 B 2.0 us with two
// gatherYields, 2.5 with one or twelve, 2.8 with five; at 32 KiB 8.6 us with twelve meetYields, 9.7 with five, 12.5
// with one.
const (
	gatherYields = 2
	meetYields   = 12
)

// wait waits until v is met.
func (e *endpoint) wait(v *visit) error {
	looks, long := 0, time.Duration(0)
	for ; !v.met(); looks++ {
		switch {
		case v.spread && looks < v.spins:
			if looks%looksPerCheck == looksPerCheck-1 {
				if err := e.interrupted(); err != nil {
					return err
				}
				if looks%looksPerYield == looksPerYield-1 {
					if long == 0 {
						long = e.lane.nw.crowd.elapsed()
					}
					runtime.Gosched()
				}
			}
		case !v.spread && looks < v.yields:
			runtime.Gosched()
		default:
			if err := e.interrupted(); err != nil {
				return err
			}
			if err := e.sleep(); err != nil {
				return err
			}
		}
	}
	if long > 0 {
		e.lane.nw.crowd.waited(&e.window, long)
	}
	switch { // spinning in vain costs the processor that the others may be waiting for
	case looks == 0:
	case looks <= v.spins:
		v.spins = min(2*v.spins, v.limit)
	default:
		v.spins = max(v.spins/2, min(minMeetSpins, v.limit))
	}
	return nil
}
