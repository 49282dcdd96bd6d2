package inproc

import "context"

// How an endpoint waits: where every replica can have a processor it looks for progress again and again; then it lets
// other goroutines run in between; then it parks. A look takes some 10 ns.
const (
	minSpins = 16
	maxSpins = 1024
	yields   = 5
)

// adapt learns from a wait and its number of looks. Spinning that was in vain costs the processor that
// the peer may be waiting for, when other programs or goroutines are about.
func (e *endpoint) adapt(looks int) {
	switch {
	case !e.lane.nw.spacious:
	case looks <= e.spins:
		e.spins = min(2*e.spins, maxSpins)
	default:
		e.spins = max(e.spins/2, minSpins)
	}
}

// arrival stands in endpoint.waiting for any message.
var arrival slot

// reason is why a parked endpoint was woken.
type reason uint8

const (
	byEvent  reason = iota // something may be possible that was not
	byPatrol               // it has been parked for long
)

// sleep parks until there may be something to do. An endpoint that has been parked for long stands in the register
// meanwhile.
func (e *endpoint) sleep() error {
	if err := e.discordant(); err != nil {
		return err
	}
	e.watch(e.ctx)
	registered := false
	if e.overdue {
		var err error
		if registered, err = e.lane.blocked.enter(e); err != nil {
			return e.fail(nil, err)
		}
	}
	on := &arrival
	switch {
	case e.visit != nil:
		on = &assembly
	case len(e.chains) == 0:
		on = e.slots[e.sent]
	}
	e.parks++
	if registered {
		e.park.Store(0)
	} else {
		e.park.Store(e.parks)
	}
	why := e.pause(on, func() bool {
		if e.ready() || registered && e.visit == nil && e.elsewhere() != nil {
			return true
		}
		if !registered {
			e.lane.nw.arm()
		}
		return false
	})
	if registered {
		e.lane.blocked.leave(e)
	}
	e.overdue = why == byPatrol
	return nil
}

// ready reports whether run has something to do. It changes nothing that a bystander looks at.
func (e *endpoint) ready() bool {
	if v := e.visit; v != nil {
		return v.Met() || e.interruption() != nil || e.lane.closed.Load() > 0 && v.Missing() >= 0 || v.Ahead() != nil
	}
	for _, c := range e.chains {
		if s := e.sight(c.at); s != nil && s.state.Load() == posted {
			return true
		}
	}
	if len(e.chains) == 0 {
		if s := e.slots[e.sent].state.Load(); s == free || s == refused {
			return true
		}
	}
	return e.interruption() != nil || e.lane.closed.Load() > 0 && e.forsaken() != nil
}

// pause parks until somebody rouses the endpoint, unless stop says that there is no need to. Whoever swaps waiting
// from on to nil sends one token; so a pause that is called off takes the token that is on its way, and none is ever
// left over.
func (e *endpoint) pause(on *slot, stop func() bool) reason {
	e.waiting.Store(on)
	if stop() && e.waiting.Swap(nil) != nil {
		return byEvent
	}
	return <-e.wake
}

// rouse wakes the endpoint if it is parked.
func (e *endpoint) rouse(why reason) {
	for {
		on := e.waiting.Load()
		if on == nil || e.rouseFrom(on, why) {
			return
		}
	}
}

// rouseFrom wakes the endpoint if it is parked for this slot.
func (e *endpoint) rouseFrom(on *slot, why reason) bool {
	if e.waiting.Load() != on || !e.waiting.CompareAndSwap(on, nil) {
		return false
	}
	e.wake <- why
	return true
}

// watch has the endpoint roused when the context is done. Registering costs, so it happens before a park only, and the
// registration stays for the next Exchange with the same context.
func (e *endpoint) watch(ctx context.Context) {
	done := ctx.Done()
	if done == e.watched {
		return
	}
	if e.stopWatch != nil {
		e.stopWatch()
		e.stopWatch = nil
	}
	if e.watched = done; done != nil {
		e.stopWatch = context.AfterFunc(ctx, e.onDone)
	}
}
