package stream

import (
	"context"
	"time"

	"gogcl.dev/transport"
)

// SetBoards says what there is beside messages. It is called before the lane is used.
func (l *Lane) SetBoards(b Boards) { l.boards = b }

// Take begins the turn of a call without messages: one call at a time, with the errors of Exchange. Enter follows, or
// Release, which ends the turn of a call that is not to be.
func (l *Lane) Take(call transport.Call) error {
	if !l.busy.TryLock() {
		return l.refuse(&call)
	}
	if l.closed.Load() {
		l.busy.Unlock()
		return l.refuse(&call)
	}
	return nil
}

// Release ends a turn without Enter.
func (l *Lane) Release() { l.busy.Unlock() }

// Enter begins the call, among this replica and others. Exit ends it and the turn; an error has done so.
func (l *Lane) Enter(ctx context.Context, call *transport.Call, peers []int) error {
	l.begin(ctx, *call, nil)
	for _, r := range peers {
		if r != l.node.Rank {
			l.active = append(l.active, r)
		}
	}
	l.engaged, l.settled = true, true
	if err := l.interruption(); err != nil {
		err = l.fail(nil, err)
		l.end()
		return err
	}
	return nil
}

// Exit ends a call that Enter has begun.
func (l *Lane) Exit() { l.end() }

// Drop forgets the call that Enter has begun, which may go on as another one of its number.
func (l *Lane) Drop() { l.history.Drop(&l.call) }

// Interruption says why the call in progress must stop, or nil.
func (l *Lane) Interruption() error { return l.interruption() }

// Await waits in a call that Enter has begun. crowded says that not every replica of the call can have a processor. The
// error has ended the call.
func (l *Lane) Await(w Awaited, crowded bool) error {
	l.goal = w
	l.looker.Attend(w)
	l.heardOf = l.events.Load()
	var err error
	if !l.looker.Look(crowded, l.Outnumbered(), l.stops) {
		l.pause, l.chase.still = pause{began: time.Now()}, false
		err = l.await(w)
	}
	l.goal, l.chase.still = nil, false
	l.looker.Attend(nil)
	return err
}

func (l *Lane) await(w Awaited) error {
	for {
		l.heardOf = l.events.Load()
		if w.Met() {
			return nil
		}
		if err := l.interruption(); err != nil {
			return l.fail(nil, err)
		}
		for _, r := range l.active {
			if left := l.peers[r].left.Load(); left != nil && w.Awaits(r) {
				return l.fail(&transport.Transfer{Kind: transport.Recv, Peer: r}, l.desertion(r, left))
			}
		}
		if err := l.survey(); err != nil {
			return err
		}
		l.park(time.Now(), -1)
	}
}

// Deserted fails the call that Enter has begun if one of the others has left.
func (l *Lane) Deserted() error {
	for _, r := range l.active {
		if left := l.peers[r].left.Load(); left != nil {
			return l.fail(&transport.Transfer{Kind: transport.Send, Peer: r}, l.desertion(r, left))
		}
	}
	return nil
}

// Parting is what a replica that has left has done.
type Parting struct{ left *parting }

// Left is what a replica has done that has left the lane. ok is false if it has not.
func (l *Lane) Left(r int) (p Parting, ok bool) {
	left := l.peers[r].left.Load()
	return Parting{left}, left != nil
}

// Instead is the call that the replica has made in place of another, or nil.
func (p Parting) Instead(of *transport.Call) *transport.Call { return p.left.instead(of) }
