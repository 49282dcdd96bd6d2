package carry

import (
	"errors"
	"fmt"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// UnprovedError says that a method has no right schedule for a call, of which nothing has been sent.
type UnprovedError struct{ Err error }

func (e *UnprovedError) Error() string { return e.Err.Error() }
func (e *UnprovedError) Unwrap() error { return e.Err }

// errSkipped says that a program's own method, or that of a rule, does not do a call. The call goes by Caller.instead,
// or by the rules above.
var errSkipped = errors.New("the method does not do the call")

// programs makes the programs of the ranks of a schedule.
type programs struct {
	spec   methods.Spec
	proved *methods.Proved // of a program's own method; nil: the Spec makes them
}

func (p *programs) program(rank int) (schedule.Program, error) {
	if p.proved != nil {
		return p.proved.Programs[rank], nil
	}
	return p.spec.Program(rank)
}

// programs finds those of a key. Of a program's own method, or that of a rule, the error is errSkipped or an
// *UnprovedError.
func (w *Caller) programs(key planKey, spec methods.Spec, ruled bool) (programs, error) {
	if skipped, _ := w.Group.skipped.Get(key); skipped {
		return programs{}, errSkipped
	}
	if !spec.Method.Own() {
		return programs{spec: spec}, nil
	}
	prover := w.Own
	if ruled {
		prover = w.ProverOf(spec.Method)
	}
	if prover == nil { // a name that only another communicator has a generator for, or that is registered later
		return programs{}, errSkipped
	}
	proved, err := w.Prove(prover, spec)
	if errors.Is(err, errors.ErrUnsupported) {
		return programs{}, w.skips(key)
	}
	if err != nil {
		return programs{}, &UnprovedError{err}
	}
	return programs{spec, proved}, nil
}

// skips remembers that the method of a key does not do its calls.
func (w *Caller) skips(key planKey) error {
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
func (w *Caller) skipped(a *Ask, byCounts bool) error {
	if w.Skips == nil {
		return nil
	}
	if err := w.Skips.Skips(w, a, byCounts); err != nil {
		return &UnprovedError{err}
	}
	return nil
}

// Settle completes a way whose setting is complete.
func (w *Caller) Settle() {
	if w.instead = nil; w.Own != nil {
		w.instead = w.Instead()
	}
	w.remember()
}

// remember makes room for the last route.
func (w *Caller) remember() {
	if w.last = nil; w.Setting.Tuning.Rules != nil {
		w.last = new(decided)
	}
}

// Instead is the way of calls that a program's own method does not do: that of Auto.
func (w *Caller) Instead() *Caller {
	out := *w
	out.Own, out.Hybrid, out.instead = nil, nil, nil
	s := &out.Setting
	s.Method = methods.Auto
	s.Syncful, s.SyncfulWhy = s.Together()
	out.remember()
	return &out
}

// prove asks for the schedules of all phases of a call, so that one which does not prove is an error before the first
// phase. Of a program's own method alone.
func (h *Hybrid) prove(j *Job) error {
	if h.Inside.Own == nil {
		return nil
	}
	key := phasesKey{j.Collective, j.Root}
	if proved, _ := h.proved.Get(key); proved {
		return nil
	}
	for _, part := range h.Phases(j.Collective, j.elements[0]) {
		w, root := h.Inside, j.Root%h.Each
		if part.Across {
			w, root = h.Across, j.Root/h.Each
		}
		if w.Size() == 1 {
			continue
		}
		a := Ask{Collective: part.Collective}
		if part.Collective.Contract().Rooted() {
			a.Root = root
		}
		_, err := w.Prove(w.Own, w.Spec(&a, w.Setting.Method, 0, false))
		switch {
		case !errors.Is(err, errors.ErrUnsupported):
			if err != nil {
				return &UnprovedError{err}
			}
		case j.Collective != schedule.Barrier: // which no method is asked for
			if err := w.skipped(&a, false); err != nil {
				return err
			}
		}
	}
	*h.proved.Place(key) = true
	return nil
}

// phasesKey is what decides on the schedules of the phases of a call.
type phasesKey struct {
	collective schedule.Collective
	root       int
}

// methodNumber stands for a method in a transport.Call.
func methodNumber(m methods.Method) uint8 {
	if m.Own() {
		return wire.OwnMethod
	}
	return uint8(m)
}
