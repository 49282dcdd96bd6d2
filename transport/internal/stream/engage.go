package stream

import (
	"context"
	"time"

	"gogcl.dev/transport"
)

// Work is a call that an engine of its own carries out.
type Work interface {
	// Begin prepares the work, and hands over the memory of the call. An error fails the call, and leaves nothing to
	// halt.
	Begin() error

	// Poll goes on with the work, for the time given at most, and reports whether it is done. An error fails the call.
	Poll(limit time.Duration) (done bool, err error)

	// Agreed reports whether all others have begun the call: then it ends without a word of those who leave.
	Agreed() bool

	// Halt ends work that has begun and has failed, or is not to go on. It returns when the engine no longer uses the
	// memory of the call.
	Halt()
}

// engageSurvey is after how long an Engage looks whether others disagree, have left, or have told where they wait.
const engageSurvey = time.Millisecond

// desertionLimit is how long an Engage goes on after one of the others has left that has made the call.
const desertionLimit = 2 * time.Second

// Engage carries out work among this replica and others in place of an Exchange: one call at a time, with the same
// errors. What the others send and tell is looked at as in an Exchange.
func (l *Lane) Engage(ctx context.Context, call transport.Call, peers []int, work Work) error {
	if err := l.Take(call); err != nil {
		return err
	}
	if err := l.Enter(ctx, &call, peers); err != nil {
		return err
	}
	l.settled = false // as long as work may panic
	defer l.end()
	began, err := l.engage(work)
	if err != nil && began {
		work.Halt()
	}
	l.settled = true
	return err
}

// Fail ends a call that is between two Exchanges, or between an Exchange and Engage, as an error ends an Exchange. peer
// is -1 if no peer has to do with it.
func (l *Lane) Fail(call transport.Call, peer int, err error) error {
	where := &transport.RoundError{Replica: l.node.Rank, Round: call.Round, Peer: peer, Err: err}
	l.node.told.Store(true)
	if aborted := l.node.abort(where); aborted.Cause != error(where) && err != error(aborted) {
		where.Err = &transport.LateError{Err: err, Aborted: aborted} // somebody else was first
	}
	return where
}

// engage carries out work, and reports whether it has begun.
func (l *Lane) engage(work Work) (began bool, err error) {
	if err := work.Begin(); err != nil {
		return false, l.fail(nil, err)
	}
	w := &l.pause
	var gone time.Time // when one of the others was first seen to have left
	for {
		done, err := work.Poll(pollTime)
		switch {
		case err != nil:
			return true, l.fail(nil, err)
		case done:
			return true, nil
		}
		if err := l.interruption(); err != nil {
			return true, l.fail(nil, err)
		}
		w.looks++
		l.yield(false)
		now := time.Now()
		switch waited := now.Sub(w.began); {
		case w.began.IsZero():
			w.began = now
			continue
		case waited < engageSurvey:
			continue
		case w.noticed || waited >= noticeAfter:
			l.notify(now)
		}
		if l.poller != nil { // nothing has come that the last survey has not asked for
			l.poller.Poll(1)
		}
		if err := l.survey(); err != nil {
			return true, err
		}
		for _, r := range l.active {
			left := l.peers[r].left.Load()
			if left == nil || work.Agreed() {
				continue
			}
			if gone.IsZero() {
				gone = now
			}
			// One that has made another round of the call alone is found out by the time.
			if !left.made(&l.call) || now.Sub(gone) > desertionLimit {
				return true, l.fail(&transport.Transfer{Kind: transport.Recv, Peer: r}, l.desertion(r, left))
			}
		}
	}
}

// made reports whether the replica has made a call, of its last ones. Of a call without a number it may have.
func (p *parting) made(call *transport.Call) bool {
	if call.Seq == 0 {
		return true
	}
	for i := range p.calls {
		if p.calls[i].Same(*call) {
			return true
		}
	}
	return false
}
