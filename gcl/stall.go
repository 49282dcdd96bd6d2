package gcl

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/internal/watch"
)

// logStall logs a call that has waited for long.
func logStall(s flight.Stall) {
	slog.Warn("gcl: a call has waited for long", "call", s.Call, "waited", s.Waited,
		"replicas", replicasText(s.Replicas), "why", s.Why)
}

// replicasText is for texts, as in "0, 2-7".
func replicasText(replicas []int) string { return watch.Ranges(replicas) }

// awayTime is how long after the context of bodies is done those are waited for that have not returned, before that is
// logged: the others' errors, which say who it is, come out only when all have.
const awayTime = time.Second

// away are the bodies of Run that have not returned.
type away struct {
	flights *flight.Recorders
	unwatch func() bool // ends the watch of the context

	mu       sync.Mutex // guards what follows
	replicas []int
	timer    *time.Timer // nil: the context is not done, or was when all had returned
	logged   chan struct{}
}

// newAway watches the bodies that are called on Comms with a context.
func newAway(ctx context.Context, comms []*Comm) *away {
	a := &away{flights: comms[0].conn.flights, logged: make(chan struct{})}
	for _, c := range comms {
		a.replicas = append(a.replicas, c.Replica())
	}
	a.unwatch = context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.replicas) > 0 {
			a.timer = time.AfterFunc(awayTime, func() { a.log(context.Cause(ctx)) })
		}
	})
	return a
}

// returned notes that a body has returned.
func (a *away) returned(c *Comm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replicas = slices.DeleteFunc(a.replicas, func(r int) bool { return r == c.Replica() })
}

// stop ends the watch: all have returned.
func (a *away) stop() {
	a.unwatch()
	a.mu.Lock()
	timer := a.timer
	a.mu.Unlock()
	if timer != nil && !timer.Stop() {
		<-a.logged
	}
}

// log says which bodies have not returned, and what their replicas do.
func (a *away) log(cause error) {
	defer close(a.logged)
	a.mu.Lock()
	replicas := slices.Clone(a.replicas)
	a.mu.Unlock()
	if len(replicas) > 0 {
		slog.Warn("gcl: the context of Run is done, and bodies have not returned", "replicas", replicasText(replicas),
			"cause", cause, "doing", a.flights.Doing(replicas))
	}
}
