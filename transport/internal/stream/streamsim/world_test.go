package streamsim

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing/synctest"
	"time"

	"gogcl.dev/transport/internal/stream"
)

// world is what one seed decides, and what has come of it.
type world struct {
	rng    *rand.Rand
	nodes  []*node
	actors []*actor
	events events
	back   chan struct{} // an actor gives way
	cur    *actor        // the actor that runs
	idler  func()        // looks for what is wrong while nobody can go on
	log    func(format string, args ...any)

	// Of the seed.
	dataDelay, tellDelay, dialDelay time.Duration // scales of delays
	caps                            []int         // bytes of a pipe: one of these
	yield                           int           // one call of a Link in so many gives way; 0: none

	count    int    // events that have been planned
	steps    int    // actors and events that have had a turn
	calls    int    // of Links
	trace    uint64 // a hash of all steps
	over     bool   // actors that have a turn end
	canceled bool   // a context is done: goroutines of package context may be about
	closing  atomic.Int32
	idle     time.Time // when the last actor ended

	wrong string // what is wrong, if an oracle of the world has seen something
	stall string // the first time at which all waited with nothing under way, in words
}

// The limits of a seed. What goes beyond them hangs, or turns in a circle.
const (
	maxSteps = 2_000_000
	maxCalls = 20_000_000
)

// epoch is when the time of a bubble begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// actor is a goroutine of a replica.
type actor struct {
	name   string
	node   *node
	resume chan struct{}
	done   bool
	parked *parker // where it is parked
	timed  bool    // until counts
	pauses bool    // it computes until then
	until  time.Time
	waits  bool // in await, and has looked in vain after so many moves of the node
	seen   int
}

type event struct {
	at   time.Time
	no   int
	what string
	do   func()
}

// events is a heap by time. Events of one instant stand in the order in which they were planned.
type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].no < h[j].no
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return x
}

// note says what happens, where somebody reads it.
func (w *world) note(format string, args ...any) {
	if w.log != nil {
		w.log("%12v  %s", time.Since(epoch), fmt.Sprintf(format, args...))
	}
}

// fail notes what is wrong. The first counts, and ends the run.
func (w *world) fail(format string, args ...any) {
	if w.wrong == "" && !w.over {
		w.wrong = fmt.Sprintf(format, args...)
		w.note("WRONG: %s", w.wrong)
	}
}

// name is the text of an event, where somebody reads it.
func (w *world) name(format string, args ...any) string {
	if w.log == nil {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// at plans an event.
func (w *world) at(at time.Time, what string, do func()) {
	w.count++
	heap.Push(&w.events, event{at, w.count, what, do})
}

// after plans an event.
func (w *world) after(d time.Duration, what string, do func()) { w.at(time.Now().Add(d), what, do) }

// delay is between 0 and four times the scale, and less than it mostly.
func (w *world) delay(scale time.Duration) time.Duration {
	if scale == 0 {
		return 0
	}
	switch w.rng.IntN(4) {
	case 0:
		return 0
	case 1:
		return time.Duration(w.rng.Int64N(int64(4 * scale)))
	}
	return time.Duration(w.rng.Int64N(int64(scale)))
}

// spawn begins an actor. A panic of it is wrong.
func (w *world) spawn(n *node, name string, f func()) {
	a := &actor{name: name, node: n, resume: make(chan struct{})}
	w.actors = append(w.actors, a)
	go func() {
		defer func() {
			w.caught(recover(), name)
			a.done = true
			w.back <- struct{}{}
		}()
		<-a.resume
		if !w.over {
			f()
		}
	}()
}

// caught notes a panic.
func (w *world) caught(panicked any, by string) {
	if panicked != nil {
		w.fail("%s panics: %v\n%s", by, panicked, debug.Stack())
	}
}

// end ends the actors that are not done.
func (w *world) end() {
	w.over, w.cur = true, nil
	for _, a := range w.actors {
		if !a.done {
			a.resume <- struct{}{}
			<-w.back
		}
	}
}

// pass gives way: the world chooses who goes on.
func (w *world) pass() {
	a := w.cur
	w.back <- struct{}{}
	<-a.resume
	if w.over {
		runtime.Goexit()
	}
}

// pause has the actor compute for some time.
func (w *world) pause(d time.Duration) {
	a := w.cur
	a.pauses, a.timed, a.until = true, true, time.Now().Add(d)
	w.pass()
}

// await has the actor wait until ready, which may have effects then, is true: by what another actor of the replica
// does.
func (w *world) await(ready func() bool) {
	for !ready() {
		w.cur.waits, w.cur.seen = true, w.cur.node.moves
		w.pass()
	}
}

// called gives way at some calls of a Link.
func (w *world) called() {
	if w.over {
		return
	}
	if w.calls++; w.calls > maxCalls {
		panic(fmt.Sprintf("more than %d calls of links", maxCalls))
	}
	if w.cur != nil && w.yield > 0 && w.rng.IntN(w.yield) == 0 {
		w.pass()
	}
}

// ready reports whether an actor can go on now.
func (a *actor) ready(now time.Time) bool {
	switch {
	case a.waits:
		return a.seen != a.node.moves
	case a.pauses:
		return !now.Before(a.until)
	case a.parked == nil:
		return true
	}
	return a.parked.woken.Load() || a.timed && !now.Before(a.until)
}

// errHang says that virtual time, or the number of steps, has run out.
var errHang = errors.New("hangs")

// run has all actors run until they are done and nothing is under way, for so much time at most.
func (w *world) run(limit time.Duration) error {
	end := time.Now().Add(limit)
	var ready []*actor
	for w.wrong == "" {
		w.closeLinks()
		now := time.Now()
		live := false
		ready = ready[:0]
		var next time.Time // when a park or a pause ends
		pauses := false
		for _, a := range w.actors {
			if a.done || a.node.dead {
				continue
			}
			live = true
			if a.ready(now) {
				ready = append(ready, a)
			} else if a.timed {
				pauses = pauses || a.pauses
				if next.IsZero() || a.until.Before(next) {
					next = a.until
				}
			}
		}
		if !live && w.idle.IsZero() {
			w.idle = now
		}
		if !live && len(w.events) == 0 {
			return nil
		}
		turns := len(ready)
		if len(w.events) > 0 && !w.events[0].at.After(now) {
			turns++
		}
		if turns == 0 {
			w.idler()
			if len(w.events) > 0 {
				if next.IsZero() || w.events[0].at.Before(next) {
					next = w.events[0].at
				}
			} else if !pauses && w.stall == "" {
				w.stall = w.waiting()
				w.note("all wait, and nothing is under way: %s", w.stall)
			}
			if next.IsZero() || next.After(end) {
				return errHang
			}
			time.Sleep(next.Sub(now))
			continue
		}
		if w.steps++; w.steps > maxSteps {
			return errHang
		}
		turn := w.rng.IntN(turns)
		w.trace = (w.trace ^ uint64(now.Sub(epoch)) ^ uint64(turn)<<40) * 0x9e3779b97f4a7c15
		if turn < len(ready) {
			w.turn(ready[turn])
			continue
		}
		e := heap.Pop(&w.events).(event)
		w.trace = (w.trace ^ uint64(e.no)) * 0x9e3779b97f4a7c15
		w.note("%s", e.what)
		w.do(&e)
	}
	return nil
}

// do has an event happen.
func (w *world) do(e *event) {
	defer func() { w.caught(recover(), "what came from outside") }()
	e.do()
}

// turn has an actor run until it gives way.
func (w *world) turn(a *actor) {
	looked := a.waits
	if a.parked != nil {
		a.parked.woken.Store(false)
	}
	a.parked, a.timed, a.pauses, a.waits = nil, false, false, false
	if !looked {
		w.note("%s goes on", a.name)
	}
	w.cur = a
	a.resume <- struct{}{}
	<-w.back
	w.cur = nil
	if !looked || !a.waits {
		a.node.moves++
	}
}

// waiting names the actors that wait.
func (w *world) waiting() (names string) {
	for _, a := range w.actors {
		if !a.done && !a.node.dead {
			names += a.name + "; "
		}
	}
	return names
}

// closeLinks does what Close has asked for: several goroutines may call it at once, in any order.
func (w *world) closeLinks() {
	if w.closing.Swap(0) == 0 {
		return
	}
	for _, n := range w.nodes {
		for _, e := range n.ends {
			e.close()
		}
	}
}

// parker is a stream.Parker.
type parker struct {
	w     *world
	woken atomic.Bool
}

func (p *parker) Watch(l stream.Link) error {
	if e, ok := l.(*end); ok {
		e.parker = p
	}
	p.Wake()
	return nil
}

func (p *parker) Wake()        { p.woken.Store(true) }
func (p *parker) Close() error { return nil }

func (p *parker) Park(limit time.Duration) {
	w := p.w
	if w.over {
		runtime.Goexit()
	}
	if w.canceled { // the wake-up of a context that is done may be under way, and counts whenever it comes
		synctest.Wait()
	}
	if p.woken.Swap(false) {
		return
	}
	a := w.cur
	a.parked, a.timed = p, limit >= 0
	if a.timed {
		a.until = time.Now().Add(limit)
	}
	w.pass()
}
