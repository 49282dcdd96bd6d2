package inproc

import (
	"sync/atomic"
	"time"
)

// patrolEvery is how often the network looks for endpoints that have parked for long. They register as blocked.
const patrolEvery = time.Millisecond

// The work of the register for those who wait costs at most a twentieth of the time that they wait. `go test -bench
// Search ./transport/inproc` shows what a look costs.
const (
	share = 20
	// a look at a transfer, a place at a meeting or an endpoint, none of them in a cache
	lookTime = 50 * time.Nanosecond

	// One endpoint searches at a time. No more than eight wait at the register's expense, or the searches of a thousand
	// would take all of a processor until the last one stands in it, instead of two fifths.
	maxPayers = 8
)

// credit is how many looks those who wait have paid for.
type credit struct {
	balance atomic.Int64 // below 0: a search has cost more than there was
	price   atomic.Int64 // of the last search
}

// earn adds the share of a wait that pays for searches, and returns what there is. No more than a search is saved up.
func (c *credit) earn(waited time.Duration) int64 {
	for {
		old := c.balance.Load()
		balance := min(old, c.price.Load()) + int64(waited/(share*lookTime))
		if c.balance.CompareAndSwap(old, balance) {
			return balance
		}
	}
}

// spend pays for a search.
func (c *credit) spend(looks int) {
	c.balance.Add(-int64(looks))
	c.price.Store(int64(looks))
}

// arm sees to it that patrol comes by.
func (nw *network) arm() {
	if !nw.armed.Load() && nw.armed.CompareAndSwap(false, true) {
		nw.timer.Reset(nw.every)
	}
}

// patrol wakes who is still in the park in which the last patrol saw it, if the searches can be paid for. It comes
// again as long as somebody is parked whom it has not woken; those in the register do not count.
func (nw *network) patrol() {
	nw.mu.Lock()
	defer nw.mu.Unlock()
	looks := 0 // of the patrol itself
	for _, l := range nw.lanes {
		looks += len(l.eps)
	}
	every := max(nw.every, time.Duration(looks)*lookTime*share)
	again := false
	for _, l := range nw.lanes {
		again = l.patrol(every) || again
	}
	if again {
		nw.timer.Reset(every)
		return
	}
	for _, l := range nw.lanes {
		l.waiters = 0
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

// patrol is the network's for one lane, and reports whether somebody is parked whom it has not woken. The first to be
// woken is the one after the last of the time before: however little can be paid for, each has its turn.
func (l *lane) patrol(every time.Duration) (again bool) {
	c := &l.blocked.credit
	balance := c.earn(time.Duration(min(l.waiters, maxPayers)) * every)
	l.waiters = 0
	for k, first := 0, l.turn; k < len(l.eps); k++ {
		e := l.eps[(first+k)%len(l.eps)]
		on, park := e.waiting.Load(), e.park.Load()
		if on == nil {
			continue
		}
		l.waiters++
		switch {
		case park == 0:
		case e.seen != park:
			e.seen = park
			again = true
		case balance <= 0:
			again = true
		case e.rouseFrom(on, byPatrol):
			balance -= c.price.Load()
			l.turn = e.rank + 1
		}
	}
	return again
}
