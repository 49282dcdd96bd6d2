package measure

import (
	"context"
	"slices"
	"time"

	"gogcl.dev/gcl"
)

// Values are what all replicas of a process work on, and are to have in the end.
type Values struct {
	reduced, moved *pattern // of collectives that reduce, and of the others
	// Tamper changes a result before its check: nil, but for tests.
	Tamper func(replica int, result []byte)
}

// NewValues makes the values.
func (s *Settings) NewValues(tamper func(replica int, result []byte)) *Values {
	v := &Values{moved: newPattern(s.DType, gcl.Local, s.N), Tamper: tamper}
	if slices.ContainsFunc(s.Collectives, Collective.Reduces) { // else the operator need not take the type
		v.reduced = newPattern(s.DType, s.Op, s.N)
	}
	return v
}

// Runner carries out the calls of one operand at one replica. The slowest replica counts.
type Runner struct {
	Values  *Values
	Comm    *gcl.Comm // whose options are measured
	Clerk   *gcl.Comm // for what replicas have to tell each other about the measurement
	Operand Operand
	Clock   func() time.Duration // nil: the system's
}

// now is the time since some moment.
func (r *Runner) now() time.Duration {
	if r.Clock != nil {
		return r.Clock()
	}
	return time.Since(began)
}

var began = time.Now()

// Clerk is a Comm of the same replicas as c for what they have to tell each other about the measurement: with processes
// a lane of its own, so that nothing but the measured calls goes over the sockets of theirs.
func (s *Settings) Clerk(ctx context.Context, c *gcl.Comm) (*gcl.Comm, error) {
	if s.Processes {
		return c.Dup(ctx)
	}
	return c, nil
}

// Span times some calls that all replicas begin together: the seconds for one at this replica.
func (r *Runner) Span(ctx context.Context, calls int) (float64, error) {
	if err := r.Clerk.Barrier(ctx); err != nil {
		return 0, err
	}
	start := r.now()
	for range calls {
		if err := r.Operand.Call(ctx, r.Comm); err != nil {
			return 0, err
		}
	}
	return (r.now() - start).Seconds() / float64(calls), nil
}

// Path carries out a call, though not by a Batch, and returns how its data went. Of a call that first tried another
// path, or went in phases, it is the last one.
func (r *Runner) Path(ctx context.Context) (path gcl.Path, err error) {
	traced := r.Comm.Options()
	traced.Trace = &gcl.Trace{MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) { path = c.Path }}
	comm, err := r.Comm.With(traced)
	if err != nil {
		return path, err
	}
	single := r.Operand
	single.batch = nil
	err = single.Call(ctx, comm)
	return path, err
}

// AgreedSpan is Span by the slowest replica's clock, and more than 0.
func (r *Runner) AgreedSpan(ctx context.Context, calls int) (float64, error) {
	each, err := r.Span(ctx, calls)
	if err != nil {
		return 0, err
	}
	slowest := []float64{max(each, 1e-9)}
	err = gcl.AllReduceInPlace(ctx, r.Clerk, slowest, gcl.Max)
	return slowest[0], err
}

// Prepare fills the input, and spoils the result, before a call that Check is to look at.
func (r *Runner) Prepare() { r.Operand.prepare(r.pattern(), r.Clerk) }

// Rewrite writes other values into this replica's input than those of the turn before. Turns count from 0.
func (r *Runner) Rewrite(turn int) { r.Operand.rewrite(r.pattern(), r.Clerk, turn) }

// Check counts the wrong elements of the result at this replica. where is the first of them.
func (r *Runner) Check() (wrong, where int) {
	if r.Values.Tamper != nil {
		r.Values.Tamper(r.Clerk.Rank(), r.Operand.result.Bytes())
	}
	return r.Operand.check(r.pattern(), r.Clerk)
}

func (r *Runner) pattern() *pattern {
	if r.Operand.Collective.Reduces() {
		return r.Values.reduced
	}
	return r.Values.moved
}
