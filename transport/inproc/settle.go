package inproc

import (
	"slices"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// settleTime is how long Close waits for others to come to a broadcast that has not waited for them. It bounds what a
// program pays that closes the endpoints of several replicas on one goroutine, the root's first, with a broadcast that
// nobody has taken: it could not go on by itself. Once a Close has waited for so long in vain no other waits.
const settleTime = time.Second

// linger waits until all others have come to the last broadcasts of a replica that is closed on all lanes, or have
// left, or the network is aborted.
func (nw *network) linger(rank int, lanes []*lane) {
	expired := &nw.expired
	var timer *time.Timer
	for _, l := range lanes {
		e := l.eps[rank]
		e.busy.Lock()
		for _, v := range e.visits {
			over := func() bool { return nw.aborted.Load() != nil || expired.Load() || v.Heard() }
			for !over() {
				if timer == nil {
					timer = time.AfterFunc(settleTime, func() {
						expired.Store(true)
						for _, l := range lanes {
							l.eps[rank].rouse(byEvent)
						}
					})
				}
				e.park.Store(0)
				e.pause(&assembly, over)
			}
		}
		e.busy.Unlock()
	}
	if timer != nil {
		timer.Stop()
	}
}

// untold is the abort of a network on which replicas disagree, if no call of the replica has told of it, or nil.
func (nw *network) untold(rank int) error {
	aborted := nw.aborted.Load()
	if aborted == nil || nw.told[rank].Load() {
		return nil
	}
	if !calls.Disagree(aborted) {
		return nil
	}
	nw.told[rank].Store(true)
	return aborted
}

// settle says what is wrong with the broadcasts that a closed endpoint has not heard of from others: for it to find,
// or for the others, whoever closes last.
func (e *endpoint) settle() error {
	if e.lane.nw.aborted.Load() != nil {
		return nil
	}
	for _, v := range e.visits {
		discord := func(place int) *transport.MismatchError { return e.discord(v.Members[place]) }
		if err := v.Unmatched(discord); err != nil {
			return err
		}
	}
	return e.unvisited()
}

// unvisited looks for broadcasts in groups that this endpoint has never met on peer memory.
func (e *endpoint) unvisited() error {
	e.lane.nw.mu.Lock()
	defer e.lane.nw.mu.Unlock()
	for group, t := range e.lane.tables {
		if e.visits[group] == nil && slices.Contains(t.Members, e.rank) {
			if err := t.Unvisited(e.rank); err != nil {
				return err
			}
		}
	}
	return nil
}
