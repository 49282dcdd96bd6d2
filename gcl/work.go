package gcl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"gogcl.dev/gcl/internal/lane"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/transport"
)

// Work is a function given to Start.
type Work struct {
	done chan struct{}
	err  error
}

// Wait returns once the function has returned, with its error. It does not watch a context of its own, because until
// the function has returned the buffers are not the caller's: cancel the context given to Start to end it early.
// Of a nil or zero Work, which nothing was given to, it is an error.
func (w *Work) Wait() error {
	if w == nil || w.done == nil {
		return newError("Wait of a Work that Start has not returned")
	}
	<-w.done
	return w.err
}

// Done returns a channel that is closed when Wait would return at once, for a select. Of a nil or zero Work it is nil.
func (w *Work) Done() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.done
}

// WaitAll waits for all, and returns the first error in their order. Nothing of any is in progress then.
func WaitAll(works ...*Work) error {
	var first error
	for _, w := range works {
		if err := w.Wait(); first == nil {
			first = err
		}
	}
	return first
}

// started is a function given to Start. Within it the turn of the connection is its own, and calls on its Comm take
// turns among themselves.
type started struct {
	conn    *connection
	running atomic.Bool
	turns   lane.Turns
}

// startKey is the context key under which a function given to Start finds its *started.
type startKey struct{}

// Start queues f behind whatever this replica's connection has been asked to do and returns at once. f runs on a
// goroutine of its own; of this connection it must use only the Comm that it is given, and the buffers that it uses
// belong to it until Wait. Collectives called on c after Start run after f. Start calls count in program order like
// collectives: every replica must make the same ones. An error of f does not abort the others by itself, but that of a
// collective in it does; a panic does.
//
// A call in f on another Comm of the connection is an error if it is given f's context or one made from it, but for the
// Run of a Batch. With any other context it waits until that is done, since it waits for f. A Start in f is an error.
func (c *Comm) Start(ctx context.Context, f func(context.Context, *Comm) error) *Work {
	w := &Work{done: make(chan struct{})}
	switch {
	case c.check() != nil || ctx == nil || f == nil:
		w.err = newError("Start needs a Comm, a context and a function")
	case c.started != nil, c.inTurnOf(ctx) != c:
		w.err = newError("Start inside a function given to Start, whose turn it would wait for: call f itself")
	}
	if w.err != nil {
		close(w.done)
		return w
	}
	own := c.conn.turns.Reserve()
	root := c.conn.root()
	root.works.Add(1)
	if c.conn != root {
		c.conn.works.Add(1)
	}
	go func() {
		defer func() {
			close(w.done)
			if c.conn != root {
				c.conn.works.Done()
			}
			root.works.Done()
		}()
		<-own.Granted // whoever has the turn watches a context of its own
		defer c.conn.turns.Release()
		inner := *c
		inner.started = &started{conn: c.conn}
		inner.started.running.Store(true)
		defer inner.started.running.Store(false)
		guard(c, func() error { return f(context.WithValue(ctx, startKey{}, inner.started), &inner) }, func(err error) {
			w.err = err
			if isCrash(err) {
				c.Abort(err)
			}
		})
	}()
	return w
}

// inTurnOf is c, or within a function given to Start, which ctx tells of, c with the function's turn.
func (c *Comm) inTurnOf(ctx context.Context) *Comm {
	if c.started != nil || ctx == nil {
		return c
	}
	s, _ := ctx.Value(startKey{}).(*started)
	if s == nil || s.conn != c.conn || !s.running.Load() {
		return c
	}
	inner := *c
	inner.started = s
	return &inner
}

// enter waits for the connection's turn. In a function given to Start the turn is the function's, and enter waits for
// other calls in it. On an error the turn is not the caller's. call says what waits; nil for no collective.
func (c *Comm) enter(ctx context.Context, call *transport.Call) error {
	if ctx == nil { // an error, but one that must wait for its turn to be counted
		ctx = context.Background()
	}
	turns := c.turns()
	switch {
	case c.started != nil && !c.started.running.Load():
		return errors.New("the Comm of a function given to Start is used after it returned")
	case turns.Try():
		return nil
	}
	if c.inTurnOf(ctx) != c {
		return errors.New("a function given to Start uses another Comm than the one it was given")
	}
	began := ticks.Now()
	if err := c.takeTurn(ctx, turns, call); err != nil { // the peers wait for a call that will not come
		waiting := &queueError{c.conn.flights.Look().Latest(c.conn.Flight), err}
		c.Abort(waiting)
		return &waitError{waiting, began}
	}
	return nil
}

func (c *Comm) leave() { c.turns().Release() }

// turns is who lets the Comm's calls in.
func (c *Comm) turns() *lane.Turns {
	if c.started != nil {
		return &c.started.turns
	}
	return &c.conn.turns
}

// waitError says that the context was done before it was the call's turn, which has aborted the communicator.
type waitError struct {
	*queueError
	began int64 // when it began to wait, by ticks.Now
}

func (e *waitError) Unwrap() []error { return []error{ErrAborted, e.queueError} }

// queueError says behind what a call has waited for its turn.
type queueError struct {
	behind string // the name of a call, or a function given to Start
	err    error  // why it waits no more
}

func (e *queueError) words() string {
	return fmt.Sprintf("waiting for what was asked of the connection before (%s): %s", e.behind, explain(e.err))
}

func (e *queueError) Error() string { return e.words() }
func (e *queueError) Unwrap() error { return e.err }

// takeTurn takes a turn, and has the flight recorder know what waits for it.
func (c *Comm) takeTurn(ctx context.Context, turns *lane.Turns, call *transport.Call) error {
	if call != nil {
		defer c.conn.Flight.Admitted(c.conn.Flight.Wait(c.label, call))
	}
	return turns.Take(ctx)
}

// errGoexit is what becomes of a runtime.Goexit.
var errGoexit = errors.New("runtime.Goexit was called, as t.FailNow does")

// guard calls f and then done with its error, which is a *PanicError when f panicked and errGoexit when it called
// runtime.Goexit. In that case guard does not return: the goroutine ends after its deferred calls.
func guard(c *Comm, f func() error, done func(error)) {
	var err error
	returned := false
	defer func() {
		c := c.latest()
		if v := recover(); v != nil {
			err = &PanicError{Replica: c.Replica(), Value: v, Stack: debug.Stack(), at: c.place(0)}
		} else if !returned {
			err = &replicaError{replica: c.Replica(), err: errGoexit, at: c.place(0)}
		}
		done(err)
	}()
	err = f()
	returned = true
}

// isCrash reports whether an error of guard is a panic or a Goexit.
func isCrash(err error) bool {
	var p *PanicError
	return errors.As(err, &p) || errors.Is(err, errGoexit)
}
