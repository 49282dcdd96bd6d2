package meeting

import "errors"

// What members share may lie where another process writes over it. Nothing that is read from there leads out of it, and
// a wait is for one number and no greater one. So what is left of such a write is a wait that does not end, and this
// file is for waits that have turned out to be long.

// errOverwritten is the error of numbers that no member has written.
var errOverwritten = errors.New("what the members of a group share makes no sense: a process has overwritten it")

// Check says whether what a wait looks at is what members may have written, as far as can be told.
func (v *Visit) Check() error {
	own := v.own
	turn := v.operations % 2
	switch v.stage {
	case announcing:
		if n := &own.notices[turn]; n.number.Load()>>stampBits != v.number || n.call != *v.call {
			return errOverwritten
		}
	case syncing:
		if own.synced.Load() != v.number {
			return errOverwritten
		}
	}
	for i := range v.seats {
		if s := v.seat(i); s != nil && v.wrong(s, turn) {
			return errOverwritten
		}
	}
	if h := v.hall; h != nil && v.complete && (h.done.Load() > v.number || v.hallWrong(h)) {
		return errOverwritten
	}
	return nil
}

// wrong reports whether a seat has a number that its member cannot have written, while this one is where it is.
func (v *Visit) wrong(s *Seat, turn uint64) bool {
	switch v.stage {
	case announcing, syncing, sharing:
		return s.notices[turn].number.Load()>>stampBits > v.number+1 || s.synced.Load() > v.number+1
	case taking, catching:
		n := s.at(v.awaited).number.Load()
		return n > v.awaited || n%queueLength != v.awaited%queueLength && n != 0
	}
	return false
}

// hallWrong reports whether the hall has a number that cannot be, while this member waits for the word of the last to
// arrive, or for pieces to be done.
func (v *Visit) hallWrong(h *Hall) bool {
	n := len(v.seats)
	switch {
	case v.spread:
		return false
	case v.stage == announcing || v.stage == syncing:
		count := int(h.count.Load())
		return count < 0 || count > n
	case v.stage == sharing:
		next, left := h.next.Load(), h.left.Load()
		return left < 0 || left > int64(v.pieces) || next < int64(v.pieces) || next > int64(v.pieces+n)
	}
	return false
}
