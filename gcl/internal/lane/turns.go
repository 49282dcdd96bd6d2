package lane

import (
	"context"
	"sync"
	"sync/atomic"
)

// Turns lets one at a time use a lane, in the order in which they asked. A call that finds the lane free takes it
// without waiting or allocating, and if nobody asks in the meantime taking and giving back is an atomic operation each.
type Turns struct {
	state atomic.Int32 // untaken, taken or wanted; only under mu does it become wanted or cease to be
	mu    sync.Mutex   // guards queue
	queue []*Turn      // who waits, first come first
}

// The states of turns.
const (
	untaken int32 = iota
	taken
	wanted // taken, and there may be a queue
)

// Turn is a place in the queue. When Granted is closed, the lane is its owner's until Release.
type Turn struct {
	Granted chan struct{}
}

// Take waits for the lane. A non-nil error is the context's cause, and the lane is not the caller's.
func (t *Turns) Take(ctx context.Context) error {
	if t.Try() {
		return nil
	}
	own := t.Reserve()
	select {
	case <-own.Granted:
		return nil
	case <-ctx.Done():
	}
	if !t.withdraw(own) {
		t.Release() // Granted in the meantime
	}
	return context.Cause(ctx)
}

// Try takes the lane if it is free.
func (t *Turns) Try() bool { return t.state.CompareAndSwap(untaken, taken) }

// Reserve takes the next place. It never waits.
func (t *Turns) Reserve() *Turn {
	own := &Turn{Granted: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		switch {
		case t.Try():
			close(own.Granted)
			return own
		case t.state.Load() == wanted || t.state.CompareAndSwap(taken, wanted):
			t.queue = append(t.queue, own)
			return own
		}
	}
}

// withdraw leaves the queue, and reports false if the turn was granted already.
func (t *Turns) withdraw(own *Turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.queue {
		if other == own {
			t.queue = append(t.queue[:i], t.queue[i+1:]...)
			return true
		}
	}
	return false
}

// Release hands the lane to whoever is next.
func (t *Turns) Release() {
	if t.state.CompareAndSwap(taken, untaken) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 { // all have withdrawn
		t.state.Store(untaken)
		return
	}
	next := t.queue[0]
	t.queue[0] = nil
	t.queue = t.queue[1:]
	close(next.Granted)
}
