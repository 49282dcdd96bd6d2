package methods

import (
	"fmt"
	"strings"

	"gogcl.dev/methods/schedule"
)

// Case is what decides on the rule of a call.
type Case struct {
	Collective schedule.Collective
	Ranks      int
	Bytes      int64 // of the larger of a rank's two buffers
	Strided    bool  // the group was given with a stride above 1
	RankOrder  bool  // as in Spec

	// Implementation is the one that options ask for. AnyImplementation: they leave it open.
	Implementation Implementation
	Memory         bool // the ranks reach each other's memory
	Phase          bool // the call is a part of another, as by gcl.Hybrid

	// Above is the line of a rule whose method does not do the call after all. Only rules above it count. 0: all do.
	Above int
}

// Rule is the last rule that fits a case. One whose method cannot do the call is skipped: in a strided group, and where
// BroadcastFirst says so, broadcast for an all-reduce; in rank order a method that becomes a chain, which is not what
// was measured; a method without a way to carry out the collective; in a phase of another call a method whose schedules
// a Generator makes. One that fits but names an implementation that cannot be decides that no rule does: what stands
// above it was measured for smaller sizes. nil: there is no rule.
//
// A Generator may still find that it does not do a request. Then gcl asks again, for the rules above: see Case.Above.
func (t *Tuning) Rule(q *Case) *Rule {
	if t == nil || q == nil || t.Rules == nil || t.broadcastGoesFirst(q) {
		return nil
	}
	for r := t.Rules.above(q.Above, q.Collective, q.Ranks, q.Bytes); r != nil; {
		switch t.obstacle(r, q) {
		case none:
			return r
		case otherImplementation, noMemory:
			return nil
		}
		r = t.Rules.above(r.Line, q.Collective, q.Ranks, q.Bytes)
	}
	return nil
}

// broadcastGoesFirst reports whether MaxBroadcastBytes decides before Rules.
func (t *Tuning) broadcastGoesFirst(q *Case) bool { return t.BroadcastFirst && t.Broadcasts(q) }

// obstacle is why a rule that fits does not decide.
type obstacle uint8

const (
	none obstacle = iota
	otherImplementation
	noMemory
	strided
	limited
	never
	chainInOrder
	noWay
	inPhase
)

// obstacle finds what keeps a rule that fits from deciding.
func (t *Tuning) obstacle(r *Rule, q *Case) obstacle {
	switch {
	case r.Implementation != AnyImplementation && q.Implementation != AnyImplementation &&
		r.Implementation != q.Implementation:
		return otherImplementation
	case r.Implementation == Syncful && !q.Memory:
		return noMemory
	case r.Method == SendToAll && q.Collective == schedule.AllReduce && (q.Strided || t.MaxBroadcastBytes < 0 ||
		t.BroadcastFirst):
		switch {
		case q.Strided:
			return strided
		case t.MaxBroadcastBytes < 0:
			return never
		}
		return limited
	case r.Method.Own() && q.Phase:
		return inPhase
	}
	switch at := r.Method.row(); {
	case at == nil:
		return noWay
	case q.RankOrder && at.inOrder != nil && inRankOrder(q.Collective):
		return chainInOrder
	// Without any recipe it may have a generator by gcl.WithMethod.
	case at.recipes != nil && at.recipes.of(q.Collective) == nil:
		return noWay
	}
	return none
}

// text says why the rule does not decide.
func (o obstacle) text(r *Rule, q *Case) string {
	switch o {
	case otherImplementation:
		return fmt.Sprintf("it is for %v, and the options ask for %v", r.Implementation, q.Implementation)
	case noMemory:
		return "it is for peer memory, which there is none of"
	case strided:
		return "a group with a stride above 1 never takes broadcast"
	case limited:
		return "broadcast is to be taken for less than that only"
	case never:
		return "broadcast is never to be taken"
	case chainInOrder:
		return "in the order of the ranks the method is a chain of them, which was not measured"
	case inPhase:
		return "the schedules of a Generator are not taken for a phase"
	}
	return fmt.Sprintf("the method has no way to carry out %v", q.Collective)
}

// WhyRule cites a rule of t.Rules, as in "tcp.txt:12: all-reduce 3-5 0 broadcast 30 us".
func (t *Tuning) WhyRule(r *Rule) string {
	if t == nil || r == nil {
		return ""
	}
	return t.Rules.Cite(r) + ": " + r.String()
}

// Skips lists the rules that fit a case and do not decide, as far as the one that does, each with its reason, as in
// "; not tcp.txt:14, star: the method has no way to carry out reduce". It is "" if there are none.
func (t *Tuning) Skips(q *Case) string {
	if t == nil || q == nil || t.Rules == nil || t.broadcastGoesFirst(q) {
		return ""
	}
	var b strings.Builder
	for r := t.Rules.above(q.Above, q.Collective, q.Ranks, q.Bytes); r != nil; {
		o := t.obstacle(r, q)
		if o == none {
			break
		}
		fmt.Fprintf(&b, "; not %s, %s: %s", t.Rules.Cite(r), r.way(), o.text(r, q))
		if o == otherImplementation || o == noMemory {
			break
		}
		r = t.Rules.above(r.Line, q.Collective, q.Ranks, q.Bytes)
	}
	return b.String()
}
