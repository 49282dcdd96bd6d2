package stream

import (
	"runtime"
	"time"

	"gogcl.dev/transport"
)

const (
	// asideLooks is after how many looks in vain messages are put aside whose turn has not come.
	asideLooks = 32

	// noticeAfter is how long a lane is parked before it tells those for whom it waits, so that a peer that disagrees
	// finds out.
	noticeAfter = 5 * time.Millisecond

	// A look that took longer than slowLook is one in which the waiter had no processor. For crowdedTime a lane then
	// looks for crowdedSpin at most before it parks.
	slowLook    = 500 * time.Microsecond
	crowdedTime = 10 * time.Millisecond
	crowdedSpin = 20 * time.Microsecond

	// A processor that was given to other threads and came back later than slowYield has had a whole turn of one that
	// has work to do. For dearTime a lane then parks at once: who sleeps and is woken is let in before those that
	// compute, and who gives the processor away after each look waits for the turns of all of them, each time.
	slowYield = 1500 * time.Microsecond
	dearTime  = 30 * time.Millisecond

	// pollTime is how long a Poller looks for progress before the lane looks at the context, at aborts, and at what
	// others have told. It is less than the 20 us after which the runtime takes the processor of a thread that is in C,
	// to give it to others. With one processor that is five switches of threads each time.
	pollTime = 10 * time.Microsecond

	// yieldLooks is how often a lane that waits gives its processor to other threads, in looks: that is a call of the
	// system that takes as long as a look, and has the scheduler move threads about. While the processors are crowded
	// it does so after each look.
	yieldLooks = 32
	yieldPolls = 2 // the same for a Poller, whose looks take longer and which sees to crowded processors itself
)

// goschedLooks is how often a lane that waits lets other goroutines run, in looks, where each replica of the process
// may have a processor: each time wakes an idle one, which costs a futex call. With one processor the lane does it at
// each look, or nobody would read control messages.
const goschedLooks = 256

// shareCalls is after how many calls a lane with a Poller lets other goroutines run where there is one processor,
// although it need not wait. A goroutine that has run for 10 ms is made to, and then the runtime looks at it every 20
// us for some time.
const shareCalls = 64

// shares reports whether a call that ends is to let other goroutines run.
func (l *Lane) shares() bool {
	if l.poller == nil || l.procs > 1 {
		return false
	}
	l.ended++
	return l.ended%shareCalls == 0
}

// yield gives the processor to other goroutines and threads, after some of the looks.
func (l *Lane) yield(crowded bool) {
	goroutines, threads := l.gives(replicas.Load(), crowded)
	if goroutines {
		runtime.Gosched()
	}
	if threads {
		began := time.Now()
		YieldProcessor()
		l.cameBack(began, time.Now())
	}
}

// cameBack notes when the processor was given to other threads, and when it has come back.
func (l *Lane) cameBack(began, now time.Time) {
	if now.Sub(began) > slowYield {
		l.dear = now.Add(dearTime)
	}
}

// spins is how long a lane that waits looks for progress before it parks, and whether the processors are crowded.
func (l *Lane) spins(now time.Time) (spin time.Duration, crowded bool) {
	crowded = now.Before(l.crowded)
	switch {
	case l.poller == nil && now.Before(l.dear):
		return 0, crowded
	case crowded:
		return min(l.node.Spin, crowdedSpin), true
	}
	return l.node.Spin, false
}

// Outnumbered reports whether the replicas of this process outnumber its processors: what the lane waits for is then
// done by a goroutine.
func (l *Lane) Outnumbered() bool { return replicas.Load() > l.procs }

// gives reports to whom the lane gives the processor after this look, in a process of so many replicas.
func (l *Lane) gives(replicas int64, crowded bool) (goroutines, threads bool) {
	if replicas > l.procs {
		return true, false
	}
	looks := l.pause.looks
	goroutines = l.procs == 1 || looks%goschedLooks == 0
	if l.poller != nil {
		return goroutines, looks%yieldPolls == 0
	}
	return goroutines, crowded || l.node.Crowded || looks%yieldLooks == 0
}

// wait lets time pass between two looks for progress.
func (l *Lane) wait() error {
	w := &l.pause
	now := time.Now()
	w.looks++
	if w.looks == 1 {
		w.began = now
	} else if now.Sub(w.last) > slowLook {
		l.crowded = now.Add(crowdedTime)
	}
	w.last = now
	aside := asideLooks
	if l.poller != nil { // each look has taken its time
		aside = 1
	}
	if w.looks == aside && l.divert() {
		return nil
	}
	if l.sees() {
		if came, err := l.look(now); came || err != nil {
			return err
		}
	} else if spin, crowded := l.spins(now); now.Sub(w.began) < spin {
		l.yield(crowded)
		return nil
	}
	if l.divert() {
		return nil
	}
	if err := l.survey(); err != nil {
		return err
	}
	again, err := l.listen(now)
	if err != nil {
		return err
	}
	l.park(now, again)
	return nil
}

// sees reports whether all links of the batch are such that a Looker sees them.
func (l *Lane) sees() bool {
	if l.looker == nil {
		return false
	}
	for _, r := range l.active {
		if link := l.peers[r].link.Load(); link != nil && !l.looker.Sees(link.Link) {
			return false
		}
	}
	return true
}

// look has a Looker look for what the batch waits for, unless it has found something again and again with which the
// lane could do nothing.
func (l *Lane) look(now time.Time) (came bool, err error) {
	if now.Sub(l.pause.began) >= l.node.Spin {
		return false, nil
	}
	for _, r := range l.active {
		if link := l.peers[r].link.Load(); link != nil {
			if err := l.watchLink(r, link.Link); err != nil {
				return false, err
			}
		}
	}
	return l.looker.Look(false, l.Outnumbered(), l.stops), nil
}

// stopped reports whether a look is to end: there is a reason to fail, or something has been told.
func (l *Lane) stopped() bool { return l.events.Load() != l.heardOf || l.interruption() != nil }

// park waits until there may be something to do, or until it is time to listen again.
func (l *Lane) park(now time.Time, again time.Duration) {
	w := &l.pause
	limit := noticeAfter
	if w.noticed || w.parks > 0 && now.Sub(w.began) >= noticeAfter {
		limit = l.notify(now)
	}
	if again >= 0 && again < limit {
		limit = again
	}
	w.parks++
	l.watch()
	l.sleep(limit)
	w.last = time.Now()
}

// notify tells those for whom the lane has long waited in which call that is, and later sends probes, and returns after
// how long to call it again.
func (l *Lane) notify(now time.Time) time.Duration {
	w := &l.pause
	switch rest := w.probe.Sub(now); {
	case !w.noticed:
		w.noticed = true
		message := transport.AppendCall(appendLane(l.draft[:0], waits, l.number), l.call)
		for _, r := range l.active {
			if l.waitsFor(r) {
				l.node.Host.Tell(r, message)
			}
		}
		w.interval = firstProbe
	case rest > 0:
		return rest
	default:
		l.beginChase()
		w.interval = min(4*w.interval, maxProbeAgain)
	}
	w.probe = now.Add(w.interval)
	return w.interval
}

// sleep parks, unless something has been told since l.heardOf.
func (l *Lane) sleep(limit time.Duration) {
	l.parked.Store(true)
	if l.events.Load() == l.heardOf {
		l.parker.Park(limit)
	}
	l.parked.Store(false)
}
