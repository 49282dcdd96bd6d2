package meeting

import (
	"fmt"

	"gogcl.dev/transport"
)

// CheckRounds says what is wrong with what Share is to do.
func CheckRounds(members []int, rounds []int, w transport.Worker) error {
	if w == nil {
		return &transport.ArgumentError{Reason: "Share without a Worker"}
	}
	for t, pieces := range rounds {
		switch {
		case pieces < 0:
			return &transport.ArgumentError{Reason: fmt.Sprintf("Share of %d pieces in round %d", pieces, t)}
		case pieces > maxPieces:
			return &transport.ArgumentError{Reason: fmt.Sprintf("Share of %d pieces in round %d, at most %d", pieces, t,
				int64(maxPieces))}
		case len(rounds) > 1 && pieces > len(members):
			return &transport.ArgumentError{Reason: fmt.Sprintf("Share of %d pieces in round %d of %d, by %d "+
				"members: want at most one for each", pieces, t, len(rounds), len(members))}
		}
	}
	return nil
}

// Share is that of transport.PeerMemory, after Begin. A call of one round is done apart where every member can have a
// processor, else together; one of several always apart. Forget follows it, also after a panic of the Worker.
func (v *Visit) Share(mine transport.Memory, rounds []int, w transport.Worker) error {
	if err := v.assemble(); err != nil {
		return err
	}
	v.pieces = 0
	if len(rounds) == 1 {
		v.pieces = rounds[0]
	}
	v.operations++
	v.base = baseOf(v.operations)
	err := v.announce(nil, v.host.Show(mine))
	switch {
	case err != nil:
		return err
	case v.hidden:
		return transport.ErrNotShared
	case len(rounds) != 1:
		return v.workInRounds(rounds, w)
	case v.spread:
		return v.workApart(w)
	}
	return v.workTogether(w)
}

// Forget holds on to nobody's memory.
func (v *Visit) Forget() {
	v.host.Show(transport.Memory{})
	if v.viewed { // among a thousand members most find no piece left
		v.viewed = false
		clear(v.views)
	}
}

// enter goes inside. It says so first, and then looks for an abort. Who fails sets the abort first, and then looks for
// members inside. So one of the two sees the other.
func (v *Visit) enter() error {
	v.own.inside.Store(true)
	if err := v.host.Interruption(); err != nil {
		return v.host.Fail(err)
	}
	v.viewed = true
	if err := v.host.Views(v.views); err != nil {
		return v.host.Fail(err)
	}
	return nil
}

// workInRounds does the member's own piece of each round.
func (v *Visit) workInRounds(rounds []int, w transport.Worker) error {
	if err := v.enter(); err != nil {
		return err
	}
	begun := false
	for t, pieces := range rounds {
		if pieces == 0 {
			continue
		}
		if begun {
			if err := v.synchronise(); err != nil {
				return err
			}
		}
		begun = true
		if v.Place < pieces {
			w.Piece(v.views, t, v.Place)
		}
	}
	v.own.inside.Store(false)
	return v.synchronise()
}

// workApart does the member's part of the pieces of the one round: as many as each other member's.
func (v *Visit) workApart(w transport.Worker) error {
	if err := v.enter(); err != nil {
		return err
	}
	n, pieces := len(v.seats), v.pieces
	for i := pieces * v.Place / n; i < pieces*(v.Place+1)/n && v.host.Interruption() == nil; i++ {
		w.Piece(v.views, 0, i)
	}
	v.own.inside.Store(false)
	return v.synchronise()
}

// workTogether does pieces of the one round as long as there are any: a piece is for whoever comes first, the last to
// arrive to begin with. A member that finds none left has only to wait until all are done; none has to be run twice. A
// member looks at the others' memory only once it has a piece. Until that is done the others cannot leave; without one
// they may have left long ago.
func (v *Visit) workTogether(w transport.Worker) error {
	for entered := false; ; {
		i := v.hall.next.Add(1) - 1 - v.base
		if i < 0 || i >= int64(v.pieces+len(v.seats)) { // each takes at most one that is not there
			return v.host.Fail(errOverwritten)
		}
		if i >= int64(v.pieces) {
			break
		}
		if !entered {
			if err := v.enter(); err != nil {
				return err
			}
			entered = true
		}
		w.Piece(v.views, 0, int(i))
		if err := v.host.Interruption(); err != nil { // the piece may have ended early: it does not count as done
			return v.host.Fail(err)
		}
		switch left := v.hall.left.Add(-1) - v.base; {
		case left < 0 || left >= int64(v.pieces):
			return v.host.Fail(errOverwritten)
		case left == 0:
			v.own.inside.Store(false)
			v.host.Ring()
			return nil
		}
	}
	v.own.inside.Store(false)
	v.stage = sharing
	return v.host.Wait()
}
