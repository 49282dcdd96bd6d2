package inproc

import (
	"context"
	"slices"
	"time"
	"unsafe"

	"gogcl.dev/transport"
)

// NewEager is New, but every wait that parks is at once a long one.
func NewEager(n int) ([]transport.Endpoint, error) {
	return tuned(n, func(nw *network) { nw.every = time.Microsecond })
}

// tuned is New, with a change of its network and of those after.
func tuned(n int, tune func(*network)) ([]transport.Endpoint, error) {
	eps, err := New(n)
	if err == nil {
		nw := eps[0].(*endpoint).lane.nw
		nw.tune = tune
		tune(nw)
	}
	return eps, err
}

// NewSpacious is New where every replica is led to believe that it has a processor. They do not look long, since they
// have none.
func NewSpacious(n int) ([]transport.Endpoint, error) {
	return tuned(n, func(nw *network) {
		nw.spacious, nw.spins = true, 256
		for _, e := range nw.root.eps {
			e.spins = minSpins
		}
	})
}

// VisitSize is the size of what a member of a meeting has for itself.
func VisitSize() uintptr { return unsafe.Sizeof(visit{}) }

// ShownSize is the size of what a member has laid open.
func ShownSize() uintptr { return unsafe.Sizeof(shown{}) }

// NewFlickering is NewSpacious where the processors are now crowded and now not, until all endpoints are closed or the
// context is done. wait waits for the goroutine that sees to that.
func NewFlickering(ctx context.Context, n int) (eps []transport.Endpoint, wait func(), err error) {
	if eps, err = NewSpacious(n); err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c := &eps[0].(*endpoint).lane.nw.crowd
		open := func(e transport.Endpoint) bool { return !e.(*endpoint).closed.Load() }
		for ctx.Err() == nil && slices.ContainsFunc(eps, open) {
			c.Force(true)
			time.Sleep(20 * time.Microsecond)
			c.Force(false)
			time.Sleep(20 * time.Microsecond)
		}
	}()
	return eps, func() { <-done }, nil
}

// Crowd has the processors count as crowded, or not, at all endpoints of e's network.
func Crowd(e transport.Endpoint, crowded bool) { e.(*endpoint).lane.nw.crowd.Force(crowded) }

// LooksForItself reports whether e has looked for all others at its last meeting.
func LooksForItself(e transport.Endpoint) bool { return e.(*endpoint).last.Spread() }
