package inproc

import (
	"context"
	"errors"
	"runtime"

	"gogcl.dev/transport"
)

var errUnwound = errors.New("a Fold panicked or ended its goroutine")

// Exchange implements transport.Endpoint.
func (e *endpoint) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	if !e.busy.TryLock() {
		return e.refuse(&call)
	}
	if err := e.checker.Check(e.rank, len(e.lane.eps), batch); err != nil {
		e.busy.Unlock()
		return err
	}
	e.begin(ctx, call, batch)
	defer e.end()
	var err error
	if e.closed.Load() {
		err = &transport.RoundError{Replica: e.rank, Round: call.Round, Peer: -1,
			Err: &transport.ClosedError{Replica: e.rank}}
	} else {
		err = e.run()
	}
	e.settled, e.torn = true, err != nil
	return err
}

// refuse is the error of a call while another is in progress.
func (e *endpoint) refuse(call *transport.Call) error {
	err := transport.ErrBusy
	if e.closed.Load() {
		err = &transport.ClosedError{Replica: e.rank}
	}
	return &transport.RoundError{Replica: e.rank, Round: call.Round, Peer: -1, Err: err}
}

// begin sets out what is to be done. It posts nothing.
func (e *endpoint) begin(ctx context.Context, call transport.Call, batch []transport.Transfer) {
	e.ctx, e.done, e.call, e.batch = ctx, ctx.Done(), call, batch
	e.called = true
	if call.Seq != 0 && !e.closed.Load() { // else it is no collective of a group, or the others read the history
		e.exchanged.Add(&call)
	}
	e.offered, e.sent, e.copied, e.settled, e.overdue = 0, 0, 0, false, false
	e.slots = append(e.slots[:0], make([]*slot, len(batch))...)
	e.chains = e.chains[:0]
	for i := range batch {
		switch t := &batch[i]; {
		case t.Kind == transport.Send:
		case t.Kind == transport.RecvFold && t.Next:
			e.chains[len(e.chains)-1].end++
		default:
			e.chains = append(e.chains, chain{i, i + 1})
			if t.Kind == transport.Recv {
				e.copied += len(t.Buf)
			}
		}
	}
}

// end lets go of the batch. After a Fold that did not return it does first what run would have done.
func (e *endpoint) end() {
	if !e.settled {
		e.fail(nil, errUnwound)
	}
	clear(e.slots)
	e.ctx, e.done, e.batch = nil, nil, nil
	e.busy.Unlock()
}

// run carries out the batch.
func (e *endpoint) run() error {
	if err := e.interruption(); err != nil {
		return e.fail(nil, err)
	}
	e.offer()
	for looks := 0; ; {
		moved, err := e.step()
		switch {
		case err != nil:
			return err
		case moved && looks > 0:
			e.adapt(looks)
			looks = 0
		}
		if len(e.chains) == 0 && e.sent == len(e.batch) {
			return nil
		}
		if moved {
			continue
		}
		if err := e.interrupted(); err != nil {
			return err
		}
		switch looks++; {
		case looks <= e.spins:
		case looks <= e.spins+yields:
			runtime.Gosched()
		default:
			if err := e.sleep(); err != nil {
				return err
			}
		}
	}
}

// offer posts all sends.
func (e *endpoint) offer() {
	for i := range e.batch {
		if t := &e.batch[i]; t.Kind == transport.Send {
			s := e.outgoing(t.Peer, t.Tag)
			e.slots[i] = s
			s.post(&e.call, t.Buf)
			e.offered = i + 1
			e.lane.eps[t.Peer].rouseFrom(&arrival, byEvent)
		}
	}
}

// step does what can be done without waiting: it takes what has arrived and, once nothing is left to receive, notes
// which sends have been taken.
func (e *endpoint) step() (moved bool, err error) {
	for k := 0; k < len(e.chains); k++ {
		c := &e.chains[k]
		n, err := e.claim(*c)
		if err != nil {
			return moved, err
		}
		if n == 0 {
			continue
		}
		if !e.apply(c.at, c.at+n) {
			return moved, e.interrupted()
		}
		e.release(free)
		moved = true
		if c.at += n; c.at == c.end {
			last := len(e.chains) - 1
			e.chains[k] = e.chains[last]
			e.chains = e.chains[:last]
			k--
		}
	}
	if len(e.chains) > 0 {
		return moved, nil
	}
	for ; e.sent < len(e.batch); e.sent++ {
		if e.batch[e.sent].Kind != transport.Send {
			continue
		}
		switch e.slots[e.sent].state.Load() {
		case free:
			moved = true
		case refused:
			return moved, e.interrupted()
		default:
			return moved, nil
		}
	}
	return moved, nil
}

// claim claims what has arrived of the chain, from its front, and returns how many messages that is.
func (e *endpoint) claim(c chain) (int, error) {
	e.claims = e.claims[:0]
	for i := c.at; i < c.end; i++ {
		t := &e.batch[i]
		s := e.slots[i]
		if s == nil {
			if s = e.incoming(t.Peer, t.Tag); s == nil {
				break
			}
			e.slots[i] = s
		}
		if !s.claim() {
			break
		}
		e.claims = append(e.claims, i)
		if !s.is(&e.call) {
			return 0, e.fail(t, &transport.MismatchError{Replica: e.rank, Peer: t.Peer, Mine: e.call, Theirs: s.call()})
		}
		if s.size != len(t.Buf) {
			return 0, e.fail(t, &transport.MismatchError{Replica: e.rank, Peer: t.Peer, Mine: e.call, Theirs: e.call,
				MineBytes: len(t.Buf), TheirsBytes: s.size})
		}
	}
	return len(e.claims), nil
}

// release gives what is claimed back to the senders.
func (e *endpoint) release(state uint32) {
	for _, i := range e.claims {
		s := e.slots[i]
		s.release(state)
		e.lane.eps[e.batch[i].Peer].rouseFrom(s, byEvent)
	}
	e.claims = e.claims[:0]
}
