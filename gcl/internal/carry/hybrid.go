package carry

import (
	"context"
	"errors"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/recent"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Hybrid is how collectives go in phases: inside the link domain the one way, across domains the other.
type Hybrid struct {
	*Split
	Inside, Across *Caller
	proved         recent.Map[phasesKey, bool] // the calls whose phases a program's own method has been proved for
}

// NewHybrid makes the callers of the phases, where there are link domains to go by. Their tuning is that of the whole
// group: all its members must have it alike, and hosts need not be link domains. Prices are not asked.
func (w *Caller) NewHybrid() *Hybrid {
	caller := func(g *Group, i route.Implementation) *Caller {
		phase := *w
		phase.Group, phase.Hybrid, phase.Reproducible = g, nil, false
		s := &phase.Setting
		s.Implementation, s.Reproducible, s.Ranks, s.Domains, s.Each = i, false, phase.Size(), 0, 0
		s.Phase, s.Prices, phase.Prices = true, nil, nil
		s.Memory, s.Small = w.Reach(g.Members, w.Segment)
		s.Syncful, s.SyncfulWhy = s.Together()
		phase.Settle(nil)
		return &phase
	}
	split := w.Group.Split
	w.Flight.NamePhases(w.Group.ID, split.groups(w.Group.Members))
	return &Hybrid{
		Split: split, proved: recent.Map[phasesKey, bool]{Most: maxPlans},
		Inside: caller(split.inside, route.Syncful), Across: caller(split.across, route.Syncless),
	}
}

// perform carries out a checked call.
func (h *Hybrid) perform(ctx context.Context, j *job.Job, fingerprint *transport.Call) error {
	if err := h.prove(j); err != nil {
		return err
	}
	return h.Inside.phases.Perform(ctx, h.Grid, h.Inside, h.Across, j, fingerprint)
}

// GroupID implements phases.Caller.
func (w *Caller) GroupID() uint64 { return w.Group.ID }

// MethodOf implements phases.Caller.
func (w *Caller) MethodOf(q *route.Question) uint8 {
	if m := w.Setting.Route(q).Method; !m.Own() {
		return uint8(m)
	}
	return wire.OwnMethod
}

// prove asks for the schedules of all phases of a call, so that one which does not prove is an error before the first
// phase. Of a program's own method alone.
func (h *Hybrid) prove(j *job.Job) error {
	if h.Inside.Own == nil {
		return nil
	}
	key := phasesKey{j.Collective, j.Root}
	if proved, _ := h.proved.Get(key); proved {
		return nil
	}
	for _, part := range h.Of(j.Collective, j.Elements[0]) {
		w, root := h.Inside, j.Root%h.Each
		if part.Across {
			w, root = h.Across, j.Root/h.Each
		}
		if w.Size() == 1 {
			continue
		}
		a := job.Ask{Collective: part.Collective}
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
