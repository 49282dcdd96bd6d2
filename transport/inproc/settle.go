package inproc

import (
	"slices"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// settleTime is how long Close waits for others to come to a broadcast that has not waited for them. It bounds what a
// program pays that closes the endpoints of several replicas on one goroutine, the root's first, with a broadcast that
// nobody has taken: it could not go on by itself. Once a Close has waited for so long in vain no other waits.
const settleTime = time.Second

// linger waits until all others have come to the last broadcasts of a replica that is closed on all lanes, or have
// left, or the network is aborted.
func (nw *network) linger(rank int, lanes []*lane) {
	expired := &nw.expired
	var timer *time.Timer
	for _, l := range lanes {
		e := l.eps[rank]
		e.busy.Lock()
		for _, v := range e.visits {
			over := func() bool { return nw.aborted.Load() != nil || expired.Load() || e.heard(v) }
			for !over() {
				if timer == nil {
					timer = time.AfterFunc(settleTime, func() {
						expired.Store(true)
						for _, l := range lanes {
							l.eps[rank].rouse(byEvent)
						}
					})
				}
				e.park.Store(0)
				e.pause(&assembly, over)
			}
		}
		e.busy.Unlock()
	}
	if timer != nil {
		timer.Stop()
	}
}

// heard reports whether all other members have come to the last broadcast, or will come to nothing any more.
func (e *endpoint) heard(v *visit) bool {
	for i, s := range v.seats {
		if i != v.place && e.lane.eps[v.members[i]].left.Load() == nil &&
			s.queue.at(v.broadcasts).number.Load() < v.broadcasts {
			return false
		}
	}
	return true
}

// untold is the abort of a network on which replicas disagree, if no call of the replica has told of it, or nil.
func (nw *network) untold(rank int) error {
	aborted := nw.aborted.Load()
	if aborted == nil || nw.told[rank].Load() {
		return nil
	}
	if !calls.Disagree(aborted) {
		return nil
	}
	nw.told[rank].Store(true)
	return aborted
}

// settle says what is wrong with the broadcasts that a closed endpoint has not heard of from others: for it to find,
// or for the others, whoever closes last.
func (e *endpoint) settle() error {
	if e.lane.nw.aborted.Load() != nil {
		return nil
	}
	for _, v := range e.visits {
		if err := e.unmatched(v); err != nil {
			return err
		}
	}
	return e.unvisited()
}

// unvisited looks for broadcasts in groups that this endpoint has never met on peer memory.
func (e *endpoint) unvisited() error {
	e.lane.nw.mu.Lock()
	defer e.lane.nw.mu.Unlock()
	for group, m := range e.lane.meetings {
		if e.visits[group] != nil || !slices.Contains(m.members, e.rank) {
			continue
		}
		for i, s := range m.seats {
			if first := s.queue.at(1); first.number.Load() == 1 {
				return &transport.UnmatchedError{Replica: e.rank, Peer: m.members[i], Theirs: first.call}
			}
		}
	}
	return nil
}

// unmatched compares the last broadcast of a group with what the other members have come to.
func (e *endpoint) unmatched(v *visit) error {
	last := v.broadcasts
	own := v.seats[v.place].queue.at(last)
	for i, s := range v.seats {
		theirs := s.queue.at(last)
		left := e.lane.eps[v.members[i]].left.Load() // looked at first: who has left has taken all that it ever will
		switch number := theirs.number.Load(); {
		case i == v.place:
		case s.queue.at(last+1).number.Load() == last+1:
			return &transport.UnmatchedError{Replica: e.rank, Peer: v.members[i], Theirs: s.queue.at(last + 1).call}
		case number < last && left != nil:
			if mismatch := e.discord(v.members[i]); mismatch != nil {
				return mismatch
			}
			return &transport.ClosedError{Replica: v.members[i]}
		case number == last && last > 0 && theirs.call != own.call:
			return &transport.MismatchError{Replica: e.rank, Peer: v.members[i], Mine: own.call, Theirs: theirs.call}
		}
	}
	return nil
}
