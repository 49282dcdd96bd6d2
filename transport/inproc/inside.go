package inproc

import (
	"context"
	"fmt"

	"gogcl.dev/transport"
)

// Meet implements transport.PeerMemory.
func (e *endpoint) Meet(ctx context.Context, call transport.Call, members []int, mine transport.Memory) ([]transport.Memory, error) {
	v, err := e.visiting(ctx, &call, members)
	if err != nil {
		return nil, err
	}
	v.operations++
	v.seats[v.place].memory = mine
	err = e.announce(v, nil, 0)
	if err == nil {
		err = e.enter(v)
	}
	if err != nil {
		e.dismiss()
		return nil, err
	}
	return v.views, nil
}

// enter goes inside: first it says so, then it looks for an abort. Who aborts does it the other way round, so one of
// the two sees the other.
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

// Sync implements transport.PeerMemory.
func (e *endpoint) Sync(ctx context.Context) error {
	v := e.visit
	if v == nil {
		return errNotMet
	}
	e.ctx, e.done = ctx, ctx.Done()
	return e.synchronise(v)
}

// Part implements transport.PeerMemory.
func (e *endpoint) Part(ctx context.Context) error {
	v := e.visit
	if v == nil {
		return errNotMet
	}
	e.ctx, e.done = ctx, ctx.Done()
	v.seats[v.place].inside.Store(false)
	err := e.synchronise(v)
	e.forget(v)
	e.dismiss()
	return err
}

// forget holds on to nobody's memory.
func (e *endpoint) forget(v *visit) {
	v.seats[v.place].memory = transport.Memory{}
	if v.viewed { // among a thousand members most find no piece left
		v.viewed = false
		clear(v.views)
	}
}

// Share implements transport.PeerMemory. Where every member can have a processor each does an equal part of the pieces.
// Else a piece is for whoever comes first, the last to arrive to begin with, and who finds none left has only to wait
// until all are done: no member has to be run twice.
func (e *endpoint) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, pieces int, w transport.Worker) error {
	if pieces < 0 || w == nil {
		return &transport.ArgumentError{Reason: fmt.Sprintf("Share of %d pieces by %v", pieces, w)}
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
	v.operations++
	v.seats[v.place].memory = mine
	err = e.announce(v, nil, pieces)
	switch {
	case err != nil:
	case v.roomy:
		err = e.workApart(v, pieces, w)
	default:
		err = e.workTogether(v, pieces, w)
	}
	settled = true
	return err
}

// workApart does the member's own part of the pieces.
func (e *endpoint) workApart(v *visit, pieces int, w transport.Worker) error {
	if err := e.enter(v); err != nil {
		return err
	}
	n := len(v.seats)
	for i := pieces * v.place / n; i < pieces*(v.place+1)/n && e.interruption() == nil; i++ {
		w.Piece(v.views, i)
	}
	v.seats[v.place].inside.Store(false)
	return e.synchronise(v)
}

// workTogether does pieces as long as there are any. Not before it has one does it look at the others' memory: until
// that piece is done they cannot leave, and when there is none they may have left long ago.
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
		w.Piece(v.views, i)
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
