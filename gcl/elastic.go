package gcl

import (
	"context"
	"errors"
	"runtime/pprof"

	"gogcl.dev/transport"
)

// Elastic says with how many replicas a job goes on when some are gone: see WithElastic.
type Elastic struct {
	Min int // replicas, 1 or more

	// Max is how many replicas there may be when newcomers come to a job of processes, by JoinConfig.Newcomer: as many
	// as the job begins with, or more. 0: none come. In one process none do. All replicas have the same.
	Max int

	// Replace stands for a Max of as many as the job begins with, for programs that do not know how many these are.
	Replace bool
}

// ErrMembersChanged is what Comm.Commit returns when a newcomer waits: the step is done, and Rejoin takes the newcomer
// in. A body that returns it runs anew: see WithElastic.
var ErrMembersChanged = newError("a newcomer waits to be taken in by Rejoin")

// WithElastic has a job go on when replicas fail, as long as Min are left, and when newcomers come. Those that are left
// call Rejoin, which is an error where they are fewer.
//
// Run, RunProcess and RunOrJoin do that for a body which returns ErrMembersChanged, or the error of a call that has
// failed since another replica is gone or has aborted, or of a step that failed there: the body runs anew, with the
// Comm that Rejoin has returned. Comm.Change says how its members differ, and how many steps are done. What a body
// keeps from one run to the next, as its state after these steps, is made outside of it.
//
// A body that returns another error, panics or calls runtime.Goexit has failed, and is logged by package slog. It
// aborts the communicator, so that the others hear why, and closes it, so that they can go on without it. Their context
// is not cancelled as long as Min bodies have not failed. Run returns nil if Min bodies or more have returned nil, and
// else the errors of all that failed by themselves. Errors have the numbers that replicas have after the last Rejoin.
//
// RunProcess does the same for its one body, whose error it returns, and does not cancel the body's context when
// another replica fails.
func WithElastic(e Elastic) CommOption { return func(c *config) { c.elastic = &e } }

// runs calls body, and again with the Comm of Rejoin when the members change.
func (c *Comm) runs(ctx context.Context, body func(context.Context, *Comm) error) error {
	for {
		err := body(ctx, c)
		c = c.latest()
		if err == nil || !c.changes(err) {
			return err
		}
		next, change, again := Rejoin(ctx, c)
		if again != nil {
			return errors.Join(err, again)
		}
		before, _ := c.Change()
		// Else the error would come again. One who has heard ErrMembersChanged may find that the newcomer is gone,
		// while another has heard of that one's Rejoin only: the step tells them both.
		same := len(change.Left)+len(change.Came) == 0 && change.Committed == before.Committed
		if same && !errors.Is(err, ErrMembersChanged) {
			return err
		}
		c, ctx = next, next.conn.body
		pprof.SetGoroutineLabels(ctx)
	}
}

// changes reports whether an error of a body is one after which c goes on with other members. That of an own function
// in Commit counts, whatever has come of telling the others.
func (c *Comm) changes(err error) bool {
	if c.conn.made.elastic == nil || c.conn.steps.state.Load() == rejoined {
		return false
	}
	step, isStep := errors.AsType[*StepError](err)
	if isStep && step.Err != nil {
		err = step.Err
	}
	aborted, other := errors.AsType[*transport.AbortError](err)
	_, lost := errors.AsType[*PeerError](err)
	return isStep && step.Err == nil || errors.Is(err, ErrMembersChanged) || lost ||
		other && aborted.Replica != c.Replica()
}
