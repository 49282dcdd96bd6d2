package inproc

import (
	"context"
	"runtime"

	"gogcl.dev/transport"
)

// Done implements transport.Endpoint.
func (e *endpoint) Done() <-chan struct{} { return e.lane.nw.done }

// Err implements transport.Endpoint.
func (e *endpoint) Err() error {
	if err := e.lane.nw.aborted.Load(); err != nil {
		return err
	}
	if e.closed.Load() {
		return &transport.ClosedError{Replica: e.rank}
	}
	return nil
}

// interruption says why the endpoint must stop, whatever its batch: it is closed, the network is aborted, or the
// context is done.
func (e *endpoint) interruption() error {
	if e.done != nil {
		select {
		case <-e.done:
			return context.Cause(e.ctx)
		default:
		}
	}
	return e.Err()
}

// interrupted ends the Exchange if there is a reason to, a closed peer that it waits for among them.
func (e *endpoint) interrupted() error {
	if err := e.interruption(); err != nil {
		return e.fail(e.unfinished(), err)
	}
	if e.lane.closed.Load() > 0 && e.visit != nil {
		if place := e.visit.Missing(); place >= 0 {
			r := e.visit.Members[place]
			return e.fail(&transport.Transfer{Peer: r, Kind: transport.Recv}, e.desertion(r))
		}
		return nil
	}
	if e.lane.closed.Load() > 0 {
		if t := e.forsaken(); t != nil {
			return e.fail(t, e.unpaired(t, e.desertion(t.Peer)))
		}
	}
	return nil
}

// unfinished is the first transfer that is not done, or nil.
func (e *endpoint) unfinished() *transport.Transfer {
	if len(e.chains) > 0 {
		return &e.batch[e.chains[0].at]
	}
	for i := e.sent; i < e.offered; i++ {
		if s := e.slots[i]; e.batch[i].Kind == transport.Send && s.state.Load() != free {
			return &e.batch[i]
		}
	}
	return nil
}

// forsaken is a transfer that its peer, being closed, will never carry out, or nil.
func (e *endpoint) forsaken() *transport.Transfer {
	for _, c := range e.chains {
		for i := c.at; i < c.end; i++ {
			t := &e.batch[i]
			if e.lane.eps[t.Peer].left.Load() == nil {
				continue
			}
			// Looked for after it has left: it has posted all that it ever will.
			if !e.arrived(i) {
				return t
			}
		}
	}
	for i := e.sent; i < e.offered; i++ {
		t := &e.batch[i]
		if t.Kind == transport.Send && e.lane.eps[t.Peer].left.Load() != nil && e.slots[i].state.Load() == posted {
			return t
		}
	}
	return nil
}

// fail ends the Exchange with an error at t, or at no transfer in particular when t is nil. It aborts the network, and
// returns when no peer can touch the buffers of the batch any more.
func (e *endpoint) fail(t *transport.Transfer, err error) error {
	where := &transport.RoundError{Replica: e.rank, Round: e.call.Round, Peer: -1, Err: err}
	if t != nil {
		where.Kind, where.Peer = t.Kind, t.Peer
	}
	// First the abort, which stops those who read our memory; then we wait for them.
	e.lane.nw.told[e.rank].Store(true)
	aborted := e.lane.nw.abort(e.rank, where)
	e.release(refused)
	e.retract()
	if e.visit != nil {
		e.visit.Vacate()
		e.visit.Show(transport.Memory{})
	}
	switch {
	case aborted.Cause == error(where):
	case err == error(aborted):
		where = &transport.RoundError{Replica: e.rank, Round: e.call.Round, Peer: -1, Err: aborted}
	default: // somebody else was first
		where.Err = &transport.LateError{Err: err, Aborted: aborted}
	}
	return where
}

// retract takes back what is posted and waits for those who have claimed the rest.
func (e *endpoint) retract() {
	for i := range e.batch[:e.offered] {
		s := e.slots[i]
		if e.batch[i].Kind != transport.Send || s.withdraw() {
			continue
		}
		for tries := 0; s.state.Load() == claimed; tries++ {
			if tries < yields {
				runtime.Gosched()
				continue
			}
			e.park.Store(0)
			e.pause(s, func() bool { return s.state.Load() != claimed })
		}
	}
}
