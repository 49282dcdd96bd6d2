package stream

import (
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// A call with a root, say, ends at some members before others have come to it. If one of these makes another call,
// nothing that is on its way shows that to the first. So a replica that is about to leave asks:
//
//	replica 1    settle (the call as it has made it)   ──▶  replica 2
//	             ◀──  settled (the call that it has made in that place), or nothing as long as it is not done with it
//
// The question is asked again, at longer and longer intervals: replica 2 may still come to the call. It also tells
// replica 2, as a notice of who waits does, in which call another one is.

// The times between questions.
const (
	firstQuestion = time.Millisecond
	lastQuestion  = 100 * time.Millisecond
)

// AnswerBy implements transport.Settler.
func (l *Lane) AnswerBy(f func(theirs transport.Call) (mine transport.Call, ok bool)) {
	l.answers.Store(&f)
}

// asked answers a question of a replica. The caller holds n.mu.
func (l *Lane) asked(peer int, theirs transport.Call) {
	l.peers[peer].waits.set(theirs)
	l.wake()
	f := l.answers.Load()
	if f == nil {
		return
	}
	if mine, ok := (*f)(theirs); ok {
		l.node.Host.Tell(peer, transport.AppendCall(appendLane(nil, settled, l.number), mine))
	}
}

// Settle implements transport.Settler.
func (l *Lane) Settle(call transport.Call, replicas []int, limit time.Duration) error {
	n := l.node
	if !l.busy.TryLock() {
		return nil // a call is in progress, and ends with an error
	}
	defer l.busy.Unlock()
	err := l.ask(call, replicas, limit)
	if calls.Disagree(err) {
		n.told.Store(true)
		n.abort(err)
	}
	return err
}

// ask is Settle in the lane's turn.
func (l *Lane) ask(call transport.Call, replicas []int, limit time.Duration) error {
	n := l.node
	open := append([]int(nil), replicas...)
	now := time.Now()
	until, next, interval := now.Add(limit), now, firstQuestion
	for {
		l.heardOf = l.events.Load()
		if l.closed.Load() || n.aborted.Load() != nil {
			return nil
		}
		if err := l.discordIn(true); err != nil {
			return err
		}
		still := open[:0]
		for _, r := range open {
			over, err := l.heard(r, &call)
			if err != nil {
				return err
			}
			if !over {
				still = append(still, r)
			}
		}
		open = still
		now = time.Now()
		switch {
		case len(open) == 0 || n.expired.Load():
			return nil
		case !now.Before(until):
			n.expired.Store(true)
			return nil
		case !now.Before(next):
			for _, r := range open {
				n.Host.Tell(r, transport.AppendCall(appendLane(nil, settle, l.number), call))
			}
			next, interval = now.Add(interval), min(2*interval, lastQuestion)
		}
		l.sleep(min(next.Sub(now), until.Sub(now)))
	}
}

// heard reports whether a replica has answered about a call, or has left. The error says what is wrong with either.
func (l *Lane) heard(r int, call *transport.Call) (over bool, err error) {
	p := &l.peers[r]
	left := p.left.Load() // looked at first: its answers came before
	if theirs := p.answer.Load(); theirs != nil && theirs.Group == call.Group && theirs.Seq == call.Seq {
		if !theirs.Same(*call) {
			return true, l.mismatch(r, *call, *theirs)
		}
		return true, nil
	}
	switch {
	case left == nil:
		return false, nil
	case left.instead(call) != nil:
		return true, l.mismatch(r, *call, *left.instead(call))
	case left.without(call):
		if l.node.stopped() != nil { // over which it has left
			return true, nil
		}
		return true, &transport.ClosedError{Replica: r}
	}
	return true, nil
}

// without reports whether a replica has left without a call, as far as its last calls tell.
func (p *parting) without(call *transport.Call) bool {
	for i := range p.calls {
		if c := &p.calls[i]; c.Group == call.Group {
			return c.Seq < call.Seq // the newest of the group
		}
	}
	return len(p.calls) < partingLength
}
