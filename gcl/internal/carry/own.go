package carry

import (
	"errors"
	"fmt"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// UnprovedError says that a method has no right schedule for a call, of which nothing has been sent.
type UnprovedError struct{ Err error }

func (e *UnprovedError) Error() string { return e.Err.Error() }
func (e *UnprovedError) Unwrap() error { return e.Err }

// errSkipped says that a program's own method, or that of a rule, does not do a call. The call goes by Caller.instead,
// or by the rules above.
var errSkipped = errors.New("the method does not do the call")

// programs finds those of a key. Of a program's own method, or that of a rule, the error is errSkipped or an
// *UnprovedError.
func (w *Caller) programs(key rounds.Key, spec methods.Spec, because route.Because) (rounds.Programs, error) {
	if skipped, _ := w.Group.skipped.Get(key); skipped {
		return rounds.Programs{}, errSkipped
	}
	if !spec.Method.Own() {
		return rounds.Programs{Spec: spec}, nil
	}
	if w.ordered { // a proof takes operands to commute
		return rounds.Programs{}, errSkipped
	}
	prover := w.Own
	switch because {
	case route.AsRuled:
		prover = w.ProverOf(spec.Method)
	case route.AsPriced: // the gallery's, which has the price, and not one that WithMethod gives its name
		prover = spec.Method.Prover()
	}
	if prover == nil { // a name that only another communicator has a generator for, or that is registered later
		return rounds.Programs{}, errSkipped
	}
	proved, err := w.Prove(prover, spec)
	if errors.Is(err, errors.ErrUnsupported) {
		return rounds.Programs{}, w.skips(key)
	}
	if err != nil {
		return rounds.Programs{}, &UnprovedError{err}
	}
	return rounds.Programs{Spec: spec, Proved: proved}, nil
}

// skips remembers that the method of a key does not do its calls.
func (w *Caller) skips(key rounds.Key) error {
	*w.Group.skipped.Place(key) = true
	return errSkipped
}

// Prove is the schedule of a program's own method for the group, which messages have tags enough for.
func (w *Caller) Prove(p *methods.Prover, spec methods.Spec) (*methods.Proved, error) {
	proved, err := p.Prove(methods.Request{Spec: spec, Members: w.Group.Members})
	if err != nil {
		return nil, err
	}
	if most := min(proved.Chunks, transport.MaxTag+1); proved.Between > most {
		return nil, fmt.Errorf("%v: a rank sends another %d messages in one round of %d chunks, want at most %d", spec.Method,
			proved.Between, proved.Chunks, most)
	}
	return proved, nil
}

// skipped asks what becomes of a call that the method of the options does not do.
func (w *Caller) skipped(a *job.Ask, byCounts bool) error {
	if w.Skips == nil {
		return nil
	}
	if err := w.Skips.Skips(w, a, byCounts); err != nil {
		return &UnprovedError{err}
	}
	return nil
}

// Settle completes a Caller whose setting is complete. before is one that it replaces, whose memory it takes, or nil.
func (w *Caller) Settle(before *Caller) {
	if w.instead = nil; w.Own != nil {
		w.instead = w.Instead()
	}
	if before == nil || before.last == nil {
		w.last = &decided{}
		return
	}
	w.last = before.last
	*w.last = decided{}
}

// inOrder is the Caller of calls whose operands do not commute: w with reductions in rank order.
func (w *Caller) inOrder() *Caller {
	if w.last.inOrder == nil {
		out := *w
		out.Reproducible, out.ordered, out.Hybrid = true, true, nil
		s := &out.Setting
		s.Reproducible = true
		if w.Prices != nil { // no method of the gallery folds in the order of the ranks
			s.Prices = w.Prices(true, true)
		}
		s.Syncful, s.SyncfulWhy = s.Together()
		out.Settle(nil)
		w.last.inOrder = &out
	}
	return w.last.inOrder
}

// Plain is the Caller of calls that the library makes for itself: by Auto, whatever the options name.
func (w *Caller) Plain() *Caller {
	out := w.Instead()
	s := &out.Setting
	s.Implementation = route.Auto
	s.Syncful, s.SyncfulWhy = s.Together()
	return out
}

// Instead is the Caller of calls that a program's own method does not do: that of Auto.
func (w *Caller) Instead() *Caller {
	out := *w
	out.Own, out.Hybrid, out.instead = nil, nil, nil
	s := &out.Setting
	s.Method = methods.Auto
	s.Syncful, s.SyncfulWhy = s.Together()
	out.last = &decided{}
	return &out
}
