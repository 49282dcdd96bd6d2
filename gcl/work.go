package gcl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// Work is a function given to Start.
type Work struct {
	done chan struct{}
	err  error
}

// Wait returns once the function has returned, with its error. It does not watch a context of its own, because until the function has returned the buffers
// are not the caller's: cancel the context given to Start to end it early.
func (w *Work) Wait() error {
	<-w.done
	return w.err
}

// startKey is the context key under which a function given to Start finds its lane.
type startKey struct{}

// Start queues f behind whatever this replica's connection has been asked to do and returns at once. f runs on a goroutine of its own; it must use only the
// Comm that it is given, and the buffers that it uses belong to it until Wait. Collectives called on c after Start run after f. Start
// calls count in program order like collectives: every replica must make the same ones. An error of f does not abort the others by itself, but
// that of a collective in it does; a panic does.
func (c *Comm) Start(ctx context.Context, f func(context.Context, *Comm) error) *Work {
	w := &Work{done: make(chan struct{})}
	switch {
	case c == nil || ctx == nil || f == nil:
		w.err = errors.New("gcl: Start needs a Comm, a context and a function")
	case c.started != nil:
		w.err = errors.New("gcl: Start inside a function given to Start")
	}
	if w.err != nil {
		close(w.done)
		return w
	}
	own := c.lane.turns.reserve()
	c.lane.works.Go(func() {
		defer close(w.done)
		<-own.granted // whoever has the turn watches a context of its own
		defer c.lane.turns.release()
		inner := *c
		inner.started = new(atomic.Bool)
		inner.started.Store(true)
		defer inner.started.Store(false)
		guard(c.Replica(), func() error { return f(context.WithValue(ctx, startKey{}, c.lane), &inner) }, func(err error) {
			w.err = err
			if isCrash(err) {
				c.Abort(err)
			}
		})
	})
	return w
}

// enter waits for the lane's turn. In a function given to Start the turn is the function's.
func (c *Comm) enter(ctx context.Context) error {
	if c.started != nil {
		if !c.started.Load() {
			return errors.New("gcl: the Comm of a function given to Start is used after it returned")
		}
		return nil
	}
	if c.lane.turns.try() {
		return nil
	}
	if ctx.Value(startKey{}) == c.lane {
		return errors.New("gcl: a function given to Start uses another Comm than the one it was given")
	}
	err := c.lane.turns.take(ctx)
	if err != nil { // the peers wait for a call that will not come
		c.Abort(err)
	}
	return err
}

func (c *Comm) leave() {
	if c.started == nil {
		c.lane.turns.release()
	}
}

// errGoexit is what becomes of a runtime.Goexit.
var errGoexit = errors.New("runtime.Goexit was called, as t.FailNow does")

// guard calls f and then done with its error, which is a *PanicError when f panicked and errGoexit when it called runtime.Goexit. In that case guard does
// not return: the goroutine ends after its deferred calls.
func guard(replica int, f func() error, done func(error)) {
	err := fmt.Errorf("gcl: replica %d: %w", replica, errGoexit)
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Replica: replica, Value: v, Stack: debug.Stack()}
		}
		done(err)
	}()
	err = f()
}

// isCrash reports whether an error of guard is a panic or a Goexit.
func isCrash(err error) bool {
	var p *PanicError
	return errors.As(err, &p) || errors.Is(err, errGoexit)
}
