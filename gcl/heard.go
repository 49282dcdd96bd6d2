package gcl

import (
	"slices"
	"time"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Collectives with a root alone can succeed on one member while another is in a different call: nothing comes back to
// who has sent its part, as the root of a broadcast or a leaf of a reduce, nor from the end of a chain to its middle.
// On peer memory the transport knows how far each member is (see docs/peer-memory.md). By messages nobody does but the
// flight recorders.

// closeTime is how long Close waits for members that have not had the last call with a root by messages, unless a call
// that needs all members has followed it. Once a Close has waited for so long in vain no other waits: it may be one
// goroutine that closes all replicas, one after the other.
const closeTime = time.Second

// The times between looks for those members, which nothing announces.
const (
	minLook = 50 * time.Microsecond
	maxLook = 10 * time.Millisecond
)

// passing notes a call with a root that has succeeded and need not have done so elsewhere. It returns the call's error.
func (c *Comm) passing(k *ask, fingerprint *transport.Call, err error) error {
	if k.collective.Contract().Rooted() && err == nil {
		c.group.passed.Store(fingerprint.Seq)
	}
	return err
}

// unheard is what is wrong with the last calls with a root of a lane that is closed, and of its Dups, as far as that
// comes out within closeTime.
func (l *connection) unheard() error {
	var open []*group
	lanes, whole := []*connection{l}, l.first == nil // which may wait: on a Dup others may come later, by way of the first connection
	if whole {
		l.mu.Lock()
		lanes = append(lanes, l.others...)
		l.mu.Unlock()
	}
	endpoint := l.endpoint
	until, look := time.Now().Add(closeTime), minLook
	for _, l := range lanes {
		l.mu.Lock()
		for _, g := range l.groups {
			if last := g.passed.Load(); last != 0 && !l.flight.settledSince(g.id, last) {
				open = append(open, g)
			}
		}
		l.mu.Unlock()
		for _, g := range open {
			members := l.flights.peers(l.number, g.members)
			for {
				// Looked at in this order: who disagrees ends the communicator first, and its call then.
				waits := whole && slices.ContainsFunc(members, func(f *flight) bool { return !f.past(g.id, g.passed.Load()) })
				if err := endpoint.Close(); err != nil {
					return err
				}
				if !waits || l.flights.expired.Load() {
					break
				}
				if time.Now().After(until) {
					l.flights.expired.Store(true)
					break
				}
				time.Sleep(look)
				look = min(2*look, maxLook)
			}
			for _, f := range members {
				if f.isClosed() && !f.made(g.id, g.passed.Load()) {
					return &transport.ClosedError{Replica: f.replica}
				}
			}
		}
		open = open[:0]
	}
	return nil
}

// peers are the recorders of a lane at some replicas of this process.
func (s *flights) peers(lane uint64, replicas []int) []*flight {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*flight
	for _, f := range s.all {
		if f.lane == lane && slices.Contains(replicas, f.replica) {
			out = append(out, f)
		}
	}
	return out
}

// settledSince reports whether a replica, after its call of a group with a number, has carried out one that needs all
// members, which is any collective without a root but what Local does, or has had the error of a call that was not
// refused.
func (f *flight) settledSince(group, seq uint64) (settled bool) {
	if f.records == nil {
		return false
	}
	f.newest(func(r *record) bool {
		later := r.label.group == group && r.seq > seq
		switch {
		case r.state == failed:
			settled = !r.refused
		case later:
			settled = r.state == done && !schedule.Collective(r.collective).Contract().Rooted() && r.path != PathLocal
		}
		return !settled && (later || r.label.group != group)
	})
	return settled
}

// past reports whether a replica is done with a call of a group, or will not make it any more. One that was refused it
// for its arguments may still make the next, which shows who is in another call, or leave.
func (f *flight) past(group, seq uint64) bool {
	if f.isClosed() {
		return true
	}
	r, known := f.call(group, seq)
	return !known || r.label != nil && r.state != running && !r.refused
}

// made reports whether a replica has made a call of a group, as far as that is known, and was not refused it for its
// arguments.
func (f *flight) made(group, seq uint64) bool {
	r, known := f.call(group, seq)
	return !known || r.label != nil && !r.refused
}

// call is a replica's call of a group with a number, without a label if it has not come to that. It is unknown when
// there is no record of it any more, for all the calls since.
func (f *flight) call(group, seq uint64) (found record, known bool) {
	seen, earlier := 0, false
	f.newest(func(r *record) bool {
		seen++
		switch {
		case r.label.group != group:
		case r.seq == seq:
			found = *r
		case r.seq < seq:
			earlier = true
		}
		return found.label == nil && !earlier
	})
	return found, found.label != nil || earlier || seen < flightLength
}
