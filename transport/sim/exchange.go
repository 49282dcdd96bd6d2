package sim

import (
	"context"
	"errors"

	"gogcl.dev/transport"
)

var errUnwound = errors.New("a Fold panicked or ended its goroutine")

// Exchange implements transport.Endpoint.
func (e *endpoint) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	if !e.busy.TryLock() {
		return e.refuse(&call)
	}
	defer e.busy.Unlock()
	if e.closed.Load() {
		return e.refuse(&call)
	}
	if err := e.checker.Check(e.rank, e.Size(), batch); err != nil {
		return err
	}
	n := e.n
	n.mu.Lock()
	e.begin(call, batch)
	settled := false
	defer func() {
		if !settled { // n.mu is not held while a Fold runs
			n.mu.Lock()
			if e.err == nil {
				e.fail(nil, errUnwound)
			}
			e.unread()
			e.release()
		}
		e.end()
		n.mu.Unlock()
	}()
	err := e.run(ctx)
	settled = true
	return err
}

// refuse is the error of a call while another is in progress, or after Close.
func (e *endpoint) refuse(call *transport.Call) error {
	err := transport.ErrBusy
	if e.closed.Load() {
		err = &transport.ClosedError{Replica: e.rank}
	}
	return &transport.RoundError{Replica: e.rank, Round: call.Round, Peer: -1, Err: err}
}

// begin sets out what is to be done. It posts nothing. The caller holds n.mu here and below.
func (e *endpoint) begin(call transport.Call, batch []transport.Transfer) {
	e.called, e.call, e.batch = true, call, batch
	e.history.Add(&call)
	e.exchanges++
	e.states = append(e.states[:0], make([]state, len(batch))...)
	e.open, e.work, e.inbox = len(batch), 0, e.inbox[:0]
	e.active, e.late, e.finished, e.err = true, true, false, nil
	e.lane.active++
	e.replica.away = false
	e.n.account(e.replica)
}

// end lets go of the batch.
func (e *endpoint) end() {
	e.active, e.torn = false, e.err != nil
	e.lane.active--
	e.batch = nil
	clear(e.states)
	if e.roused {
		e.roused = false
		e.replica.awake--
	}
	e.n.account(e.replica)
	e.n.settle()
}

// run carries out the batch.
func (e *endpoint) run(ctx context.Context) error {
	n, r := e.n, e.replica
	switch aborted := r.aborted.Load(); {
	case e.closed.Load(): // since Exchange has looked
		e.err = e.refuse(&e.call)
	case ctx.Err() != nil:
		e.fail(nil, context.Cause(ctx))
	case aborted != nil:
		e.fail(nil, aborted)
	}
	if r.calls++; r.calls == r.dies && e.err == nil {
		n.die(r)
	}
	switch {
	case e.err != nil:
		return e.err
	case len(e.batch) == 0:
		return nil
	}
	n.posts = append(n.posts, e)
	if ctx.Done() != nil {
		serial := e.exchanges
		stop := context.AfterFunc(ctx, func() { e.interrupt(serial, context.Cause(ctx)) })
		defer stop()
	}
	for {
		switch {
		case e.err != nil:
			e.release()
			return e.err
		case len(e.inbox) > 0:
			e.take()
		case e.finished:
			return nil
		default:
			e.wait()
		}
	}
}

// release waits until nobody reads the buffers of a batch that has failed.
func (e *endpoint) release() {
	for e.pinned > 0 {
		e.n.unpinned.Wait()
	}
}

// interrupt ends an Exchange whose context is done.
func (e *endpoint) interrupt(serial uint64, cause error) {
	e.n.mu.Lock()
	defer e.n.mu.Unlock()
	if e.exchanges == serial && e.live() {
		e.fail(e.unfinished(), cause)
		e.n.settle()
	}
}

// live reports whether there is an Exchange in progress that may still fail.
func (e *endpoint) live() bool { return e.active && e.err == nil && !e.finished }

// wait waits until somebody has something for the endpoint to do.
func (e *endpoint) wait() {
	n, r := e.n, e.replica
	e.idle = true
	r.idle++
	if e.roused {
		e.roused = false
		r.awake--
	}
	n.account(r)
	n.settle()
	n.mu.Unlock()
	<-e.wake
	n.mu.Lock()
}

// rouse ends a wait.
func (e *endpoint) rouse() {
	if !e.idle {
		return
	}
	r := e.replica
	e.idle, e.roused = false, true
	r.idle--
	r.awake++
	e.n.account(r)
	e.wake <- struct{}{}
}

// letterIn is a message that an endpoint is to take.
type letterIn struct {
	index int // of the transfer
	from  half
	buf   []byte // of the sender
}

// take copies or folds what has arrived, without n.mu: the senders stay in their Exchange until it is done.
func (e *endpoint) take() {
	n := e.n
	e.reading = e.reading[:0]
	for _, i := range e.inbox {
		from := e.states[i].peer
		e.reading = append(e.reading, letterIn{i, from, from.e.batch[from.index].Buf})
	}
	e.inbox = e.inbox[:0]
	n.mu.Unlock()
	for _, l := range e.reading {
		apply(&e.batch[l.index], l.buf)
	}
	n.mu.Lock()
	for _, l := range e.reading {
		e.tick(l.index)
		l.from.e.tick(l.from.index)
	}
	e.unread()
}

// unread lets the senders go whose buffers the endpoint has read.
func (e *endpoint) unread() {
	for _, l := range e.reading {
		l.from.e.unpin()
	}
	clear(e.reading)
	e.reading = e.reading[:0]
}

func (e *endpoint) unpin() {
	if e.pinned--; e.pinned == 0 && e.err != nil {
		e.n.unpinned.Broadcast()
	}
}

// tick notes that a transfer is done, and with the last that all are, once the processor has done its part.
func (e *endpoint) tick(index int) {
	if e.err != nil {
		return
	}
	e.states[index].phase = done
	if e.open--; e.open > 0 {
		return
	}
	if e.work == 0 {
		e.finished = true
		e.rouse()
		return
	}
	serial := e.exchanges
	e.n.simulator.after(e.work, func() {
		if e.exchanges == serial && e.live() {
			e.finished = true
			e.rouse()
		}
	})
}

// apply carries out a receive. What comes before it in its chain has been carried out.
func apply(t *transport.Transfer, from []byte) {
	switch {
	case len(t.Buf) == 0:
	case t.Kind == transport.Recv:
		copy(t.Buf, from)
	case !t.Next:
		t.Fold(t.Buf, t.With, from)
	default:
		if len(t.With) > 0 && &t.With[0] != &t.Buf[0] {
			t.Fold(t.Buf, t.Buf, t.With)
		}
		t.Fold(t.Buf, t.Buf, from)
	}
}
