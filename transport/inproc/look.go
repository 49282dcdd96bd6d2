package inproc

import (
	"runtime"
	"time"

	"gogcl.dev/transport/internal/meeting"
)

// looksPerYield is how often a member with a processor of its own looks before it lets other goroutines run once, some
// 5 us: the one that it waits for may be queued behind it, having been woken by it or after a crowded time. Without
// this, gclperf -n 4 -sizes 8 began at 0.5 or 2 us by chance on four cores; with it at 0.5.
const looksPerYield = 4 << 10

// Wait implements meeting.Host.
func (v *visit) Wait() error {
	e := v.e
	e.overdue = false
	looks, long := 0, time.Duration(0)
	for ; !v.Met(); looks++ {
		switch {
		case v.Spread() && looks < v.spins:
			if looks%meeting.LooksPerCheck == meeting.LooksPerCheck-1 {
				if err := e.interrupted(); err != nil {
					return err
				}
				if looks%looksPerYield == looksPerYield-1 {
					if long == 0 {
						long = e.lane.nw.crowd.Elapsed()
					}
					runtime.Gosched()
				}
			}
		case !v.Spread() && looks < v.yields:
			runtime.Gosched()
		default:
			if err := e.interrupted(); err != nil {
				return err
			}
			if err := e.sleep(); err != nil {
				return err
			}
		}
	}
	if long > 0 {
		e.lane.nw.crowd.Waited(&e.window, long)
	}
	switch { // spinning in vain costs the processor that the others may be waiting for
	case looks == 0:
	case looks <= v.spins:
		v.spins = min(2*v.spins, v.table.limit)
	default:
		v.spins = max(v.spins/2, min(meeting.MinSpins, v.table.limit))
	}
	return nil
}
