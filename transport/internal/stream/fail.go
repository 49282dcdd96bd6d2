package stream

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// interruption says why the lane must stop, whatever its batch: it is closed, the node is aborted, or the context is
// done.
func (l *Lane) interruption() error {
	if l.done != nil {
		select {
		case <-l.done:
			return context.Cause(l.ctx)
		default:
		}
	}
	return l.Err()
}

// interrupted ends the Exchange if there is a reason to, a peer among them that it waits for and that will not come.
func (l *Lane) interrupted() error {
	if err := l.interruption(); err != nil {
		return l.fail(l.unfinished(), err)
	}
	for _, r := range l.active {
		p := &l.peers[r]
		sending, receiving := p.turn < len(p.sends), p.recvs > 0
		if !sending && !receiving {
			continue
		}
		t := l.wanted(r)
		left := p.left.Load()
		if left != nil {
			if sending && !l.isTaken(p, left) || receiving && p.read.Load() >= left.sent {
				return l.fail(t, l.unpaired(t, left, l.desertion(r, left)))
			}
		}
		ended := &p.deaf
		if sending && p.mute.err != nil { // where only credit could not be sent, what has come is still there
			ended = &p.mute
		}
		if ended.err != nil {
			if err := l.explained(r, t, ended, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// isTaken reports whether a replica that has left has read what is being sent to it. A Poster may notice later: its
// engine says when it no longer needs the memory.
func (l *Lane) isTaken(p *peer, left *parting) bool {
	return p.begun && left.read >= p.sent.Load() && p.mute.err == nil && posts(p.link.Load())
}

// explained ends the Exchange over a link that has ended, once the replica has had the word why. left is that of the
// caller's look, who goes by it if it says enough: word that has come since is for the next look.
func (l *Lane) explained(r int, t *transport.Transfer, ended *ending, left *parting) error {
	p := &l.peers[r]
	switch {
	case left != nil: // and what it has sent has not all come
		// A replica that has left over an abort counts a message that it had sent in part.
		if aborted := l.node.stopped(); aborted != nil {
			return l.fail(t, aborted)
		}
	case ended.inquiry == 0:
		ended.inquiry = l.inquire(r)
		return nil
	case int32(p.answered.Load()-ended.inquiry) < 0:
		return nil // its control connection brings the answer, or ends
	}
	// The answer comes last: with it has come what the replica said before it ended the link.
	if err := l.interruption(); err != nil {
		return l.fail(t, err)
	}
	if left == nil && p.left.Load() != nil {
		return nil // which has woken the lane
	}
	return l.fail(t, l.node.lost(r, fmt.Errorf(
		"its data connection%s has ended: %w, while its control connection is alive", p.ends(), ended.err)))
}

// ends notes that a direction of a link has ended, with an error that is not the word of a replica. The word is on its
// way by the control connection: why is found there. Only what was changed on the way fails at once.
func (l *Lane) ends(r int, t *transport.Transfer, direction *ending, err error) error {
	if _, ok := errors.AsType[corruptError](err); ok {
		return l.fail(t, err)
	}
	*direction = ending{err: err}
	return nil
}

// wanted is a transfer with a replica that is not done.
func (l *Lane) wanted(r int) *transport.Transfer {
	if p := &l.peers[r]; p.turn < len(p.sends) {
		return &l.batch[p.sends[p.turn]]
	}
	return l.awaited(r)
}

// unfinished is the first transfer that is not done, or nil.
func (l *Lane) unfinished() *transport.Transfer {
	for _, r := range l.active {
		p := &l.peers[r]
		if p.recvs > 0 {
			return l.awaited(r)
		}
		if p.turn < len(p.sends) {
			return &l.batch[p.sends[p.turn]]
		}
	}
	return nil
}

// mismatch is that of a call with a peer's.
func (l *Lane) mismatch(r int, mine, theirs transport.Call) *transport.MismatchError {
	return &transport.MismatchError{Replica: l.node.Rank, Peer: r, Mine: mine, Theirs: theirs}
}

// desertion is the error of a wait for a replica that has left: a mismatch, if its last calls show one, or the abort
// that it has left over, which has come before the word that it leaves or is this replica's own.
func (l *Lane) desertion(r int, left *parting) error {
	if theirs := left.instead(&l.call); theirs != nil {
		return l.mismatch(r, l.call, *theirs)
	}
	if err := l.discord(); err != nil {
		return err
	}
	if l.boards != nil {
		if mismatch := l.boards.Instead(r); mismatch != nil {
			return mismatch
		}
	}
	if aborted := l.node.stopped(); aborted != nil {
		return aborted
	}
	return &transport.ClosedError{Replica: r}
}

// unpaired is a desertion, or the mismatch that is behind it: the replica that has left has gone through this very
// round, and so without the transfer.
func (l *Lane) unpaired(t *transport.Transfer, left *parting, desertion error) error {
	var closed *transport.ClosedError
	if t != nil && errors.As(desertion, &closed) && left.through(&l.call) {
		if mismatch := calls.Unpaired(l.node.Rank, t, l.call); mismatch != nil {
			return mismatch
		}
	}
	return desertion
}

// survey ends the Exchange if what others have sent or told shows that they disagree, or that this replica waits in a
// circle. From then on what they send wakes the lane. What is awaited beside messages counts first: others that have it
// go on, and may send messages of this very call.
func (l *Lane) survey() error {
	for r := range l.peers {
		if link := l.peers[r].link.Load(); link != nil {
			if err := l.watchLink(r, link.Link); err != nil {
				return err
			}
		}
	}
	err := l.discord()
	if err == nil {
		err = l.follow()
	}
	if err == nil && l.pause.noticed && l.boards != nil {
		err = l.boards.Check()
	}
	if err == nil || l.goal != nil && l.goal.Met() {
		return nil
	}
	if corrupt, ok := err.(*corruptLinkError); ok {
		return l.fail(&transport.Transfer{Kind: transport.Recv, Peer: corrupt.Replica}, corrupt.Err)
	}
	return l.fail(nil, err)
}

// corruptLinkError is a corruptError of a link that the batch does not read from.
type corruptLinkError struct {
	Replica int // at the other end
	Err     error
}

func (e *corruptLinkError) Error() string {
	return fmt.Sprintf("receive from replica %d: %v", e.Replica, e.Err)
}
func (e *corruptLinkError) Unwrap() error { return e.Err }

// discord looks at messages that nobody here reads now, and at the calls in which others have said they wait, for one
// that cannot be. The messages come first: they are of earlier calls, and the first disagreement says most.
func (l *Lane) discord() error { return l.discordIn(false) }

// discordIn is discord. With over the last call is over as the others are: a message of it is one too many.
func (l *Lane) discordIn(over bool) error {
	for r := range l.peers {
		p := &l.peers[r]
		link := p.link.Load()
		if link == nil || p.at >= 0 || p.recvs > 0 || p.deaf.err != nil {
			continue
		}
		acked, seen := p.acked.Load(), p.seen
		ok, err := p.look(link)
		if err != nil {
			if _, ok := errors.AsType[corruptError](err); ok {
				return &corruptLinkError{Replica: r, Err: err}
			}
			p.deaf.err = err
		}
		if p.acked.Load() != acked || p.seen != seen { // a send may go on, or has to ask for credit: do not park
			l.events.Add(1)
		}
		if ok {
			err := l.stale(r, &p.frame.call)
			if err == nil && (over || l.goal != nil) {
				err = l.surplus(r, &p.frame)
			}
			if err != nil {
				return err
			}
		}
	}
	for r := range l.peers {
		p := &l.peers[r]
		call, any := p.waits.read()
		if !any {
			continue
		}
		mine, how := l.history.Find(&call)
		if (how == calls.Other || how == calls.Skipped) && l.history.Dropped(&call) {
			how = calls.Same // what it has long waited in has been dropped by all
		}
		switch how {
		case calls.Other, calls.Skipped: // it waits for what this replica has not done, and never will
			return l.mismatch(r, mine, call)
		case calls.Current, calls.Same, calls.GoneLong: // it has come since
			p.waits.clear(call)
		}
	}
	if l.boards != nil {
		var messages *transport.Call
		if l.ctx != nil && !l.engaged {
			messages = &l.call
		}
		if mismatch := l.boards.Elsewhere(messages); mismatch != nil {
			return mismatch
		}
	}
	return nil
}

// surplus is the mismatch of a message of the last call of a group, which is over, or has no messages.
func (l *Lane) surplus(r int, f *frame) error {
	if _, how := l.history.Find(&f.call); how != calls.Current || f.call.Seq == 0 || f.length == 0 {
		return nil
	}
	return &transport.MismatchError{Replica: l.node.Rank, Peer: r, Mine: f.call, Theirs: f.call,
		TheirsBytes: int(min(f.length, math.MaxInt))}
}

// stale is the mismatch of a message that nobody here reads, if its call has been made, or another in its place.
func (l *Lane) stale(r int, theirs *transport.Call) error {
	if theirs.Seq == 0 {
		return nil
	}
	mine, how := l.history.Find(theirs)
	if how == calls.Unknown || how == calls.Ahead || how == calls.Current {
		return nil
	}
	return l.mismatch(r, mine, *theirs)
}

// fail ends the Exchange with an error at t, or at no transfer in particular when t is nil. It aborts the node. No peer
// can touch the buffers of the batch where links copy; retract sees to the others.
func (l *Lane) fail(t *transport.Transfer, err error) error {
	me := l.node.Rank
	where := &transport.RoundError{Replica: me, Round: l.call.Round, Peer: -1, Err: err}
	if t != nil {
		where.Kind, where.Peer = t.Kind, t.Peer
	}
	l.node.told.Store(true)
	aborted := l.node.abort(where)
	switch {
	case aborted.Cause == error(where):
	case err == error(aborted):
		where = &transport.RoundError{Replica: me, Round: l.call.Round, Peer: -1, Err: aborted}
	default: // somebody else was first
		where.Err = &transport.LateError{Err: err, Aborted: aborted}
	}
	return where
}

// watchLink has the lane woken when something can be done on a link.
func (l *Lane) watchLink(r int, link Link) error {
	p := &l.peers[r]
	if p.watched {
		return nil
	}
	p.watched = true
	if err := l.parker.Watch(link); err != nil {
		return l.fail(&transport.Transfer{Kind: transport.Recv, Peer: r}, err)
	}
	return nil
}

// watch has the lane woken when the context is done. Registering costs, so it happens before a park only, and the
// registration stays for the next Exchange with the same context.
func (l *Lane) watch() {
	done := l.ctx.Done()
	if done == l.watched {
		return
	}
	if l.stopWatch != nil {
		l.stopWatch()
		l.stopWatch = nil
	}
	if l.watched = done; done != nil {
		l.stopWatch = context.AfterFunc(l.ctx, l.onDone)
	}
}
