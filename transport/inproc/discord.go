package inproc

import (
	"errors"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// A Broadcast that does not wait tells its root nothing of the others, and leaves a notice by which they can tell that
// the root is in another call than they are. This file looks for such notices, where a wait has turned out to be long.

// discordant returns an error if a member has made a broadcast that shows it to be in another call than the endpoint,
// which waits in its own.
func (e *endpoint) discordant() error {
	var mismatch *transport.MismatchError
	switch {
	case e.visit != nil:
		mismatch = e.ahead(e.visit)
	case e.overdue:
		mismatch = e.elsewhere()
	}
	if mismatch == nil {
		return nil
	}
	return e.fail(&transport.Transfer{Peer: mismatch.Peer, Kind: transport.Recv}, mismatch)
}

// ahead finds a broadcast of a peer which this endpoint goes without, or in place of which it made another one. It
// changes nothing.
func (e *endpoint) ahead(v *visit) *transport.MismatchError {
	number := v.broadcasts
	switch v.stage {
	case announcing:
		number++
	case taking:
	default:
		return nil
	}
	for i, s := range v.seats {
		n := s.queue.at(number)
		switch {
		case i == v.place || n.number.Load() != number:
		case v.stage == announcing && v.present(i): // it has met, and gone on; looked for after the notice
		case v.stage == taking && n.call == e.call:
		default:
			return e.mismatch(v.members[i], n.call)
		}
	}
	return nil
}

// elsewhere finds, in the group of the call in progress by messages, a broadcast of a peer that is another call of the
// same number.
func (e *endpoint) elsewhere() *transport.MismatchError {
	e.lane.nw.mu.Lock()
	m := e.lane.meetings[e.call.Group]
	e.lane.nw.mu.Unlock()
	if m == nil {
		return nil
	}
	number := uint64(1)
	if v := e.visits[e.call.Group]; v != nil {
		number = v.broadcasts + 1
	}
	for i, s := range m.seats {
		r := m.members[i]
		if r == e.rank {
			continue
		}
		if n := s.queue.at(number); n.number.Load() == number && n.call.Seq == e.call.Seq && !n.call.Same(e.call) {
			return e.mismatch(r, n.call)
		}
	}
	return nil
}

// unpaired is a desertion, or the mismatch that is behind it: the replica that has left has gone through this very
// round, and so without the transfer.
func (e *endpoint) unpaired(t *transport.Transfer, desertion error) error {
	var closed *transport.ClosedError
	if left := e.lane.eps[t.Peer].left.Load(); errors.As(desertion, &closed) && left != nil && left.called &&
		!left.torn && e.call.Seq != 0 && left.call == e.call {
		if mismatch := calls.Unpaired(e.rank, t, e.call); mismatch != nil {
			return mismatch
		}
	}
	return desertion
}

// desertion is the error of a wait for a replica that has left: a mismatch, if its calls show one, or a broadcast of
// anybody does, which may be what it has left after.
func (e *endpoint) desertion(peer int) error {
	if e.visit != nil {
		if mismatch := e.ahead(e.visit); mismatch != nil {
			return mismatch
		}
	} else if mismatch := e.elsewhere(); mismatch != nil {
		return mismatch
	}
	if mismatch := e.discord(peer); mismatch != nil {
		return mismatch
	}
	return &transport.ClosedError{Replica: peer}
}

// discord compares the last calls of a replica that has left, and its broadcasts, with this one's call and broadcasts.
func (e *endpoint) discord(peer int) *transport.MismatchError {
	left := e.lane.eps[peer].left.Load()
	if left == nil {
		return nil
	}
	if e.called {
		if theirs := left.instead(&e.call); theirs != nil {
			return e.mismatch(peer, *theirs)
		}
	}
	for _, v := range e.visits {
		for i, s := range v.seats {
			if v.members[i] != peer {
				continue
			}
			own := v.seats[v.place].queue
			for k := range own.notices {
				mine, theirs := &own.notices[k], &s.queue.notices[k]
				number := mine.number.Load()
				if number == 0 {
					continue
				}
				other := left.instead(&mine.call)
				if theirs.number.Load() == number && theirs.call != mine.call {
					other = &theirs.call
				}
				if other != nil {
					return &transport.MismatchError{Replica: e.rank, Peer: peer, Mine: mine.call, Theirs: *other}
				}
			}
		}
	}
	return nil
}

// mismatch is that of the call in progress with a peer's.
func (e *endpoint) mismatch(peer int, theirs transport.Call) *transport.MismatchError {
	return &transport.MismatchError{Replica: e.rank, Peer: peer, Mine: e.call, Theirs: theirs}
}
