package carry

import (
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/internal/cheapest"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// Caller is how the calls of one Comm are carried out.
type Caller struct {
	*Carrier
	Group        *Group
	Setting      route.Setting
	Reproducible bool  // reductions are folded in rank order
	ordered      bool  // calls whose operands do not commute alone: no program's own method does them
	Stages       bool  // inputs are copied first
	Cache        int   // bytes of the last-level cache
	Segment      int   // bytes of a segment of a message, at most
	LatencyBytes int64 // what a link carries in the latency of one round, for methods.Spec.Pipelined

	// Link is the worst that the links between members have, field by field. No field that a price depends on is zero.
	Link transport.Link

	// Prices finds the choices of auto by price. nil: the network is not known.
	Prices func(inOrder, constants bool) *cheapest.Table

	Hybrid *Hybrid // how collectives go in phases, or nil if they do not

	Own     *methods.Prover // of Setting.Method, where that is a program's own method; else nil
	instead *Caller         // of calls that the own method does not do
	Skips   Skipping        // is asked about them

	last *decided // the last route, since tables make it dear to decide again
}

// Skipping decides what becomes of calls that the method of the options does not do. An error is that of the call; with
// nil it goes by another method. byCounts says that its parts have lengths of their own.
type Skipping interface {
	Skips(w *Caller, a *job.Ask, byCounts bool) error
}

// decided is the route of the last question of a Caller. Most calls ask what the one before has asked. It belongs to
// whoever has the connection's turn, and so does not lie in a Caller, which others may copy at any time.
type decided struct {
	question route.Question
	route    route.Route
	some     bool // there is one

	inOrder *Caller // see Caller.inOrder; nil: nobody has asked yet
}

// decide finds the route of a job.
func (w *Caller) decide(r *route.Route, q *route.Question) {
	l := w.last
	if l.some && l.question.Same(q) {
		*r = l.route
		return
	}
	w.Setting.Decide(r, q)
	l.question, l.route, l.some = *q, *r, true
}

// worksIn is the element type in which a reduction works: a program's own operator takes that of the data alone.
func (w *Caller) worksIn(does *job.Reduction, dtype tensor.DType) kernel.Type {
	if does.Fold.Own() {
		return kernel.Type(dtype)
	}
	return w.Setting.WorksIn(dtype)
}

// Size is the number of ranks.
func (w *Caller) Size() int { return len(w.Group.Members) }

// segment is the length of a segment in whole elements of elemSize bytes.
func (w *Caller) segment(elemSize int) int { return max(w.Segment/elemSize, 1) * elemSize }

// Reach says whether members reach each other's memory, and how many bytes, of segment at most, one may publish on
// boards; -1: there are none.
func (l *Carrier) Reach(members []int, segment int) (memory bool, small int) {
	memory, small = l.Memory != nil && l.Memory.Reaches(members), -1
	if l.boards != nil && l.boards.Reaches(members) {
		small = min(l.boards.SmallLimit(), segment)
	}
	return memory, small
}

// onRings reports whether a schedule goes along the group's rings.
func (w *Caller) onRings(m methods.Method, collective schedule.Collective) bool {
	return m.Rings() > 0 && !(w.Reproducible && collective.Contract().Combines)
}
