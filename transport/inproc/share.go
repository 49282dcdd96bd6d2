package inproc

import (
	"context"
	"fmt"

	"gogcl.dev/transport"
)

// enter goes inside. It says so first, and then looks for an abort. Fail sets the abort first, and then looks for
// members inside. So one of the two sees the other.
func (e *endpoint) enter(v *visit) error {
	v.seats[v.place].inside.Store(true)
	if err := e.interruption(); err != nil {
		return e.fail(nil, err)
	}
	v.viewed = true
	for i, s := range v.seats {
		v.views[i] = s.memory
	}
	return nil
}

// forget holds on to nobody's memory.
func (e *endpoint) forget(v *visit) {
	v.seats[v.place].memory = transport.Memory{}
	if v.viewed { // among a thousand members most find no piece left
		v.viewed = false
		clear(v.views)
	}
}

// Reaches implements transport.PeerMemory and transport.Boards.
func (e *endpoint) Reaches(members []int) bool { return true }

// checkRounds says what is wrong with what Share is to do.
func checkRounds(members []int, rounds []int, w transport.Worker) error {
	if w == nil {
		return &transport.ArgumentError{Reason: "Share without a Worker"}
	}
	for t, pieces := range rounds {
		switch {
		case pieces < 0:
			return &transport.ArgumentError{Reason: fmt.Sprintf("Share of %d pieces in round %d", pieces, t)}
		case len(rounds) > 1 && pieces > len(members):
			return &transport.ArgumentError{Reason: fmt.Sprintf("Share of %d pieces in round %d of %d, by %d "+
				"members: want at most "+
				"one for each", pieces, t, len(rounds), len(members))}
		}
	}
	return nil
}

// Share implements transport.PeerMemory. A call of one round is done apart where every member can have a processor,
// else together; one of several always apart.
func (e *endpoint) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, rounds []int,
	w transport.Worker) error {
	if err := checkRounds(members, rounds, w); err != nil {
		return err
	}
	v, err := e.visiting(ctx, &call, members)
	if err != nil {
		return err
	}
	settled := false
	defer func() {
		if !settled { // a Worker panicked or ended its goroutine
			e.fail(nil, errCrash)
		}
		e.forget(v)
		e.dismiss()
	}()
	pieces := 0
	if len(rounds) == 1 {
		pieces = rounds[0]
	}
	v.operations++
	v.seats[v.place].memory = mine
	err = e.announce(v, nil, pieces)
	switch {
	case err != nil:
	case len(rounds) != 1:
		err = e.workInRounds(v, rounds, w)
	case v.spread:
		err = e.workApart(v, pieces, w)
	default:
		err = e.workTogether(v, pieces, w)
	}
	settled = true
	return err
}

// workInRounds does the member's own piece of each round.
func (e *endpoint) workInRounds(v *visit, rounds []int, w transport.Worker) error {
	if err := e.enter(v); err != nil {
		return err
	}
	begun := false
	for t, pieces := range rounds {
		if pieces == 0 {
			continue
		}
		if begun {
			if err := e.synchronise(v); err != nil {
				return err
			}
		}
		begun = true
		if v.place < pieces {
			w.Piece(v.views, t, v.place)
		}
	}
	v.seats[v.place].inside.Store(false)
	return e.synchronise(v)
}

// workApart does the member's part of the pieces of the one round: as many as each other member's.
func (e *endpoint) workApart(v *visit, pieces int, w transport.Worker) error {
	if err := e.enter(v); err != nil {
		return err
	}
	n := len(v.seats)
	for i := pieces * v.place / n; i < pieces*(v.place+1)/n && e.interruption() == nil; i++ {
		w.Piece(v.views, 0, i)
	}
	v.seats[v.place].inside.Store(false)
	return e.synchronise(v)
}

// workTogether does pieces of the one round as long as there are any: a piece is for whoever comes first, the last to
// arrive to begin with. A member that finds none left has only to wait until all are done; none has to be run twice. A
// member looks at the others' memory only once it has a piece. Until that is done the others cannot leave; without one
// they may have left long ago.
func (e *endpoint) workTogether(v *visit, pieces int, w transport.Worker) error {
	for entered := false; ; {
		i := int(v.next.Add(1) - 1)
		if i >= pieces {
			break
		}
		if !entered {
			if err := e.enter(v); err != nil {
				return err
			}
			entered = true
		} else if err := e.interruption(); err != nil {
			return e.fail(nil, err)
		}
		w.Piece(v.views, 0, i)
		if v.left.Add(-1) == 0 {
			v.seats[v.place].inside.Store(false)
			e.summon(v)
			return nil
		}
	}
	v.seats[v.place].inside.Store(false)
	v.stage = sharing
	return e.wait(v)
}
