package meeting

import "errors"

// What members share may lie where another process writes over it. Nothing that is read from there leads out of it, and
// a wait is for one number and no greater one. So what is left of such a write is a wait that does not end, and this
// file is for waits that have turned out to be long.

// errOverwritten is the error of numbers that no member has written.
var errOverwritten = errors.New("what the members of a group share makes no sense: a process has overwritten it")

// Check says whether the seat holds what the member has written, and with waiting also whether what its wait looks at
// is what members may have written, as far as can be told. The seat is looked at wherever the member waits: others may
// wait for what it has lost.
func (v *Visit) Check(waiting bool) error {
	h := v.hall
	if v.ownWrong() || h != nil && v.complete && v.doneWrong(h) {
		return errOverwritten
	}
	if !waiting {
		return nil
	}
	turn := v.operations % 2
	if v.stage == announcing && v.own.notices[turn].call != *v.call {
		return errOverwritten
	}
	for i := range v.seats {
		if s := v.seat(i); s != nil && v.wrong(s, turn) {
			return errOverwritten
		}
	}
	if h != nil && v.complete && v.hallWrong(h) {
		return errOverwritten
	}
	return nil
}

// ownWrong reports whether the seat has another number than the member has written last.
func (v *Visit) ownWrong() bool {
	own := v.own
	for turn := range own.notices {
		if own.notices[turn].number.Load() != v.stamps[turn] {
			return true
		}
	}
	for number := v.told - min(v.told, queueLength) + 1; number <= v.told; number++ {
		if own.at(number).number.Load() != number {
			return true
		}
	}
	return own.synced.Load() != v.arrived
}

// doneWrong reports whether the hall says that fewer barriers are complete than the member has seen, or one to which
// the member has not come.
func (v *Visit) doneWrong(h *Hall) bool {
	done := h.done.Load()
	return done < v.seen || done > v.number
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
	pieces, n := int64(v.pieces), int64(len(v.seats))
	switch {
	case v.spread:
		return false
	case v.stage == announcing || v.stage == syncing:
		// In this order: once the barrier is complete others may have arrived at the next one.
		return !v.counts(h.count.Load()) && h.done.Load() != v.number
	case v.stage == sharing:
		next, left := h.next.Load()-v.base, h.left.Load()-v.base
		return left < 0 || left > pieces || next < pieces || next > pieces+n
	}
	return false
}
