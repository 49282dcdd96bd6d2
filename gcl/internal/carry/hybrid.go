package carry

import (
	"context"
	"errors"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/phases"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/cheapest"
	"gogcl.dev/internal/recent"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Hybrid is how collectives go in phases: inside the link domain the one way, across domains the other.
type Hybrid struct {
	*Split
	Inside, Across *Caller
	proved         recent.Map[phasesKey, bool] // the calls whose phases a program's own method has been proved for

	// Choose chooses by price who crosses between domains, of the calls of a collective of about so many bytes in the
	// larger buffer, a power of two. It is asked once for each power. All members get the same answer.
	Choose func(c schedule.Collective, bytes int64) phases.Way
	chosen [schedule.Barrier][64]struct { // used by whoever has the connection's turn
		known bool
		phases.Way
	}

	// For prices:

	FirstInside, FirstAcross *Caller // those of rank 0, but that messages and memory are as between this one's members
	Places                   [][]int // the members at each place: phases across that take place together
	Alike                    bool    // all domains have like links inside, as far as the transport tells
}

// NewHybrid makes the callers of the phases, where there are link domains to go by. Their tuning is that of the whole
// group: all its members must have it alike, and hosts need not be link domains. Their methods are not asked by price.
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
	first := func(own *Caller, g *Group) *Caller {
		of := *own
		of.Group = g
		return &of
	}
	split := w.Group.Split
	groups := split.groups(w.Group.Members)
	w.Flight.NamePhases(w.Group.ID, groups)
	h := &Hybrid{
		Split: split, proved: recent.Map[phasesKey, bool]{Most: maxPlans},
		Inside: caller(split.inside, route.Syncful), Across: caller(split.across, route.Syncless),
		Places: groups[split.Domains:], Alike: w.alike(groups[:split.Domains]),
	}
	h.FirstInside, h.FirstAcross = first(h.Inside, split.firstInside), first(h.Across, split.firstAcross)
	return h
}

// alike reports whether the links inside groups are of one class and over one transport. What a transport does not tell
// of is alike.
func (w *Caller) alike(groups [][]int) bool {
	e, ok := w.Endpoint.(transport.Linked)
	if !ok {
		return true
	}
	var first transport.Link
	for i, members := range groups {
		var link transport.Link // the slowest
		for _, m := range members[1:] {
			if l := e.Link(members[0], m); l.Class >= link.Class {
				link = l
			}
		}
		if i == 0 {
			first = link
		}
		if link.Class != first.Class || link.Transport != first.Transport {
			return false
		}
	}
	return true
}

// way is who crosses between domains in a call of so many bytes in the larger buffer.
func (h *Hybrid) way(c schedule.Collective, bytes int) phases.Way {
	way, another := phases.Usual(c)
	if !another {
		return way
	}
	if c == schedule.Barrier {
		c = schedule.AllReduce
	}
	class := cheapest.ClassOf(int64(bytes))
	kept := &h.chosen[c][class]
	if !kept.known {
		kept.known, kept.Way = true, h.Choose(c, 1<<class)
	}
	return kept.Way
}

// perform carries out a checked call.
func (h *Hybrid) perform(ctx context.Context, j *job.Job, fingerprint *transport.Call) error {
	way := h.way(j.Collective, j.Question.Bytes)
	if err := h.prove(j, way); err != nil {
		return err
	}
	return h.Inside.phases.Perform(ctx, h.Grid, way, h.Inside, h.Across, j, fingerprint)
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
func (h *Hybrid) prove(j *job.Job, way phases.Way) error {
	if h.Inside.Own == nil {
		return nil
	}
	var domain, place int
	if j.Collective.Contract().Rooted() {
		domain, place = h.At(j.Root)
	}
	key := phasesKey{j.Collective, j.Root, way}
	if proved, _ := h.proved.Get(key); proved {
		return nil
	}
	for _, part := range h.Of(j.Collective, way, j.Elements[0]) {
		w, root := h.Inside, place
		if part.Across {
			w, root = h.Across, domain
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
	way        phases.Way
}
