package meeting

import "gogcl.dev/transport"

// A Broadcast that does not wait tells its root nothing of the others, and leaves a notice by which they can tell that
// the root is in another call than they are. This file looks for such notices, where a wait has turned out to be long
// and where a member leaves.

// Ahead finds a broadcast of a member which this one goes without, or in place of which it made another one. It changes
// nothing.
func (v *Visit) Ahead() *transport.MismatchError {
	number := v.broadcasts
	switch v.stage {
	case assembling, announcing:
		number++
	case taking:
	default:
		return nil
	}
	for i := range v.seats {
		s := v.seat(i)
		if s == nil {
			continue
		}
		n := s.at(number)
		switch {
		case i == v.Place || n.number.Load() != number:
		case v.stage == announcing && v.Present(i): // it has met, and gone on; looked for after the notice
		case v.stage == taking && n.call == *v.call:
		default:
			return v.mismatch(i, *v.call, n.call)
		}
	}
	return nil
}

// Elsewhere finds, at the table of the group of a call that a replica makes by messages, a broadcast of a member that
// is another call of the same number. v is the replica's view, or nil if it has never been at the table.
func (t *Table) Elsewhere(v *Visit, replica int, call *transport.Call) *transport.MismatchError {
	number := uint64(1)
	if v != nil {
		number = v.broadcasts + 1
	}
	for i, peer := range t.Members {
		if peer == replica {
			continue
		}
		if mismatch := t.said(i).elsewhere(number, replica, peer, call); mismatch != nil {
			return mismatch
		}
	}
	return nil
}

// Elsewhere is that of a Table at which the replica has never been, for the Place of one member of it.
func (p *Place) Elsewhere(replica, peer int, call *transport.Call) *transport.MismatchError {
	return p.seat.elsewhere(1, replica, peer, call)
}

// elsewhere compares the broadcast of a number of a peer with a call of a replica.
func (s *Seat) elsewhere(number uint64, replica, peer int, call *transport.Call) *transport.MismatchError {
	n := s.at(number)
	if n.number.Load() != number || n.call.Seq != call.Seq || n.call.Same(*call) {
		return nil
	}
	return &transport.MismatchError{Replica: replica, Peer: peer, Mine: *call, Theirs: n.call}
}

// Discord compares what a member has done that has left, and its broadcasts, with this one's broadcasts.
func (v *Visit) Discord(place int) *transport.MismatchError {
	left := v.host.Left(place)
	if left == nil {
		return nil
	}
	s := v.said(place)
	for k := range v.own.queue {
		mine, theirs := &v.own.queue[k], &s.queue[k]
		number := mine.number.Load()
		if number == 0 {
			continue
		}
		other := left.Instead(&mine.call)
		if theirs.number.Load() == number && theirs.call != mine.call {
			other = &theirs.call
		}
		if other != nil {
			return v.mismatch(place, mine.call, *other)
		}
	}
	return nil
}

// Heard reports whether all other members have come to the last broadcast, or will come to nothing any more.
func (v *Visit) Heard() bool {
	for i := range v.seats {
		if i != v.Place && v.host.Left(i) == nil && v.said(i).at(v.broadcasts).number.Load() < v.broadcasts {
			return false
		}
	}
	return true
}

// said is the seat of a place, or one that says nothing: the member has not made its own.
func (t *Table) said(place int) *Seat {
	if s := t.seat(place); s != nil {
		return s
	}
	return &silent
}

var silent Seat

// Unmatched compares the member's last broadcast with what the others have come to. discord says what is wrong with the
// calls of a member that has left, if anything is.
func (v *Visit) Unmatched(discord func(place int) *transport.MismatchError) error {
	last := v.broadcasts
	own := v.own.at(last)
	for i := range v.seats {
		left := v.host.Left(i) // looked at first: who has left has taken all that it ever will
		s := v.said(i)
		theirs := s.at(last)
		switch number := theirs.number.Load(); {
		case i == v.Place:
		case s.at(last+1).number.Load() == last+1:
			return &transport.UnmatchedError{Replica: v.Members[v.Place], Peer: v.Members[i],
				Theirs: s.at(last + 1).call}
		case number < last && left != nil:
			if mismatch := discord(i); mismatch != nil {
				return mismatch
			}
			return &transport.ClosedError{Replica: v.Members[i]}
		case number == last && last > 0 && theirs.call != own.call:
			return v.mismatch(i, own.call, theirs.call)
		}
	}
	return nil
}

// Unvisited looks for a broadcast at a table at which a member of it has never been.
func (t *Table) Unvisited(replica int) error {
	for i := range t.seats {
		if first := t.said(i).at(1); first.number.Load() == 1 {
			return &transport.UnmatchedError{Replica: replica, Peer: t.Members[i], Theirs: first.call}
		}
	}
	return nil
}
