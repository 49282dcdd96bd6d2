package inproc

import (
	"errors"
	"slices"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
	"gogcl.dev/transport/internal/meeting"
)

// What shows that a replica is in another call than this one: a broadcast, for which nobody waits, or what it has done
// before it left. Package meeting compares broadcasts.

// discordant returns an error if a member has made a broadcast that shows it to be in another call than the endpoint,
// which waits in its own.
func (e *endpoint) discordant() error {
	var mismatch *transport.MismatchError
	switch {
	case e.visit != nil:
		mismatch = e.visit.Ahead()
	case e.overdue:
		mismatch = e.elsewhere()
	}
	if mismatch == nil {
		return nil
	}
	return e.fail(&transport.Transfer{Peer: mismatch.Peer, Kind: transport.Recv}, mismatch)
}

// elsewhere finds, in the group of the call in progress by messages, a broadcast of a peer that is another call of the
// same number.
func (e *endpoint) elsewhere() *transport.MismatchError {
	e.lane.nw.mu.Lock()
	t := e.lane.tables[e.call.Group]
	e.lane.nw.mu.Unlock()
	if t == nil {
		return nil
	}
	var own *meeting.Visit
	if v := e.visits[e.call.Group]; v != nil {
		own = &v.Visit
	}
	return t.Elsewhere(own, e.rank, &e.call)
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
		if mismatch := e.visit.Ahead(); mismatch != nil {
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
		if theirs := left.Instead(&e.call); theirs != nil {
			return &transport.MismatchError{Replica: e.rank, Peer: peer, Mine: e.call, Theirs: *theirs}
		}
	}
	for _, v := range e.visits {
		if place := slices.Index(v.Members, peer); place >= 0 {
			if mismatch := v.Discord(place); mismatch != nil {
				return mismatch
			}
		}
	}
	return nil
}
