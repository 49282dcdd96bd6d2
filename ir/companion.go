package ir

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// companion runs beside a replica what is started there, one call after the other.
type companion struct {
	replica *replica
	asked   chan *besideCall // as many as there are
	calls   []*besideCall
	looks   int // how often to look before parking
}

// besideCall is a place in the program where a call is started.
type besideCall struct {
	code    []instruction
	done    chan error
	pending bool         // started, not waited for; of the replica's goroutine
	base    tick         // of the first that the code does
	next    atomic.Int64 // as the replica's; never while it is not started
}

// companionLooks is how often a replica or its companion, where each has a processor of its own, looks for the other
// before it parks: for some 100 us (two-core EPYC), where to wake who is parked takes 50 us. BenchmarkPrefetch of
// package remote.
const companionLooks = 1000

// bindStart makes what starts a call.
func (r *replica) bindStart(s *step) (func() error, error) {
	code, err := r.bindAll(s.body, true)
	if err != nil {
		return nil, err
	}
	if r.companion == nil {
		r.companion = &companion{replica: r}
		if 2*r.session.program.replicas <= runtime.GOMAXPROCS(0) {
			r.companion.looks = companionLooks
		}
	}
	c := r.companion
	call := &besideCall{code: code, done: make(chan error, 1)}
	c.calls = append(c.calls, call)
	r.beside[s] = call
	return func() error {
		call.pending = true
		c.asked <- call
		return nil
	}, nil
}

// bindWait makes what waits for a call.
func (r *replica) bindWait(s *step) func() error {
	c, call := r.companion, r.beside[s.waits]
	return func() error {
		err, _ := receive(call.done, c.looks)
		call.pending = false
		return err
	}
}

// begin starts the companion's goroutine, once all calls are bound.
func (c *companion) begin() {
	if c != nil {
		c.asked = make(chan *besideCall, len(c.calls))
		c.replica.session.serving.Go(c.serve)
	}
}

// end ends the goroutine.
func (c *companion) end() {
	if c != nil {
		close(c.asked)
	}
}

// settle waits for the calls of a run that has failed.
func (c *companion) settle() {
	if c == nil {
		return
	}
	for _, call := range c.calls {
		if call.pending {
			<-call.done
			call.pending = false
		}
	}
}

func (c *companion) serve() {
	for {
		call, more := receive(c.asked, c.looks)
		if !more {
			return
		}
		call.done <- c.run(call)
	}
}

// run runs a call. Its error ends the run at once: the replica may be in an operation that needs others who wait for
// it.
func (c *companion) run(call *besideCall) (err error) {
	r := c.replica
	if ctx := r.session.ctx; ctx.Err() != nil {
		return context.Cause(ctx)
	}
	at, profiling := &instruction{}, r.session.profiling
	var start time.Time
	if profiling {
		start = time.Now()
	}
	defer func() {
		if v := recover(); v != nil {
			err = r.wrap(at, fmt.Errorf("panic: %v\n\n%s", v, debug.Stack()))
		}
		if profiling {
			r.besideClocks.total += time.Since(start)
		}
		if err != nil && err != errStopped {
			r.session.fail(err)
		}
	}()
	err = r.execute(call.code, call.base, &call.next, &at)
	if err == nil && r.session.check.on {
		// errStopped is not for the call, which has come to its end: what follows the wait may be earlier than the
		// finding.
		_ = r.session.reach(&call.next, never)
	}
	return err
}

// receive receives from a channel. It looks so many times before it parks.
func receive[T any](from chan T, looks int) (v T, ok bool) {
	for range looks {
		select {
		case v, ok = <-from:
			return v, ok
		default:
			runtime.Gosched()
		}
	}
	v, ok = <-from
	return v, ok
}
