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

// How often a member lets others run before it parks, where members outnumber processors: less often where the others
// will be done in no time. gclperf -n 8 -sizes 8,32K on two cores, medians of three: at 8 B 2.0 us with two
// gatherYields, 2.5 with one or twelve, 2.8 with five; at 32 KiB 8.6 us with twelve meetYields, 9.7 with five, 12.5
// with one.
const (
	gatherYields = 2
	meetYields   = 12
)

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
