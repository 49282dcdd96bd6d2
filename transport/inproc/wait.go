package inproc

import (
	"context"
	"time"
)

// How an endpoint waits: where every replica can have a processor it looks for progress again and again; then it lets
// other goroutines run in between; then it parks. A look takes some 10 ns.
const (
	minSpins = 16
	maxSpins = 1024
	yields   = 5
)

// adapt learns from a wait that ended after so many looks. Spinning that was in vain costs the processor that
// the peer may be waiting for, when other programs or goroutines are about.
func (e *endpoint) adapt(looks int) {
	switch {
	case !e.lane.nw.roomy:
	case looks <= e.spins:
		e.spins = min(2*e.spins, maxSpins)
	default:
		e.spins = max(e.spins/2, minSpins)
	}
}

// patrolEvery is how often the network looks for endpoints that have parked for long. They register as blocked.
const patrolEvery = time.Millisecond

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
	registered := e.overdue
	if registered {
		if err := e.lane.blocked.enter(e); err != nil {
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
		if e.ready() {
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
		return v.met() || e.interruption() != nil || e.lane.closed.Load() > 0 && e.missing(v) >= 0 || e.ahead(v) != nil
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

// arm sees to it that patrol comes by.
func (nw *network) arm() {
	if !nw.armed.Load() && nw.armed.CompareAndSwap(false, true) {
		nw.timer.Reset(nw.every)
	}
}

// patrol wakes who is still in the park in which the last patrol saw it. It comes again as long as somebody is parked
// whom it has not woken; those in the register do not count.
func (nw *network) patrol() {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	again := false
	for _, l := range nw.lanes {
		for _, e := range l.eps {
			on, park := e.waiting.Load(), e.park.Load()
			switch {
			case on == nil || park == 0:
			case e.seen == park:
				e.rouseFrom(on, byPatrol)
			default:
				e.seen = park
				again = true
			}
		}
	}
	if again {
		nw.timer.Reset(nw.every)
		return
	}
	nw.armed.Store(false)
	for _, l := range nw.lanes {
		for _, e := range l.eps {
			if e.waiting.Load() != nil && e.park.Load() != 0 {
				nw.arm() // it parked before it could see that nobody would come
				return
			}
		}
	}
}
