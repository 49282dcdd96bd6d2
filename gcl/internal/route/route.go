package route

import (
	"gogcl.dev/internal/cheapest"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Setting is what options, group and transport say of how all calls of a Comm go.
type Setting struct {
	Method         methods.Method // Options.Method
	Implementation Implementation
	Reproducible   bool
	Tuning         methods.Tuning
	Tuned          bool // an all-reduce goes by the tuning also where one pass over peer memory would do
	Ruled          bool // the tuning's rules are the job's own
	Phase          bool // the calls are phases of others, by Hybrid

	// Prices has the choices of auto for calls by messages, where the network between the members is known. nil: it is
	// not.
	Prices *cheapest.Table

	Ranks         int
	Strided       bool
	Domains, Each int // link domains with members, and members in each; 0: the domains do not hold equally many

	Memory bool // the members reach each other's memory
	Opened bool // of that only what gcl.Alloc gave: a transport.Opener
	Small  int  // bytes that a member may publish on boards; -1: there are none

	Phased uint32 // by collective, a bit: Hybrid has phases for it

	Syncful    bool   // replicas step together
	SyncfulWhy string // why replicas step together, or why not
}

// Question is what decides how one call goes, given the setting.
type Question struct {
	Collective schedule.Collective
	Local      bool // the operator combines nothing
	Several    bool // operands
	Parts      bool // the ranks' parts have lengths of their own
	Given      bool // the call comes with its schedule
	Unpriced   bool // prices do not count: the method that they choose does not do the call
	Bytes      int  // of the larger of a rank's two buffers, of all operands
	Published  int  // bytes of the inputs, as a member would publish them
	Above      int  // only the tuning's rules above this line count; 0: all do
}

// Same reports whether two questions are the same. It compares field by field: their bytes may just have been written
// one by one, and to read them in words stalls.
func (q *Question) Same(as *Question) bool {
	return q.Bytes == as.Bytes && q.Collective == as.Collective && q.Published == as.Published && q.Local == as.Local &&
		q.Several == as.Several && q.Parts == as.Parts && q.Given == as.Given && q.Above == as.Above &&
		q.Unpriced == as.Unpriced
}

func (q *Question) barrier() bool { return q.Collective == schedule.Barrier }

// Route is how a call goes. It is copied for each call, so it is kept small.
type Route struct {
	Path     Path
	Method   methods.Method
	Because  Because // of the method
	Line     int32   // of the rule, if it is AsRuled
	Pieces   int32   // of a pipeline, if it is AsPriced: see methods.Spec
	Phases   bool    // the call goes in phases, each a call with a route of its own; path and method are not set
	Barriers bool    // by messages: there is a barrier before each round
	Together bool    // replicas step together
}

// Because says why a route has its method.
type Because uint8

// The reasons.
const (
	AsOptionsAsk Because = iota
	AsOnePass            // over peer memory, which no other method is
	AsTuned              // by the links of Setting.Tuning
	AsRuled              // by a rule of Setting.Tuning
	AsPriced             // by Setting.Prices
	AsCounts             // parts of different lengths, which go straight
)

// Together decides whether replicas step together, and says why.
func (s *Setting) Together() (syncful bool, why string) {
	switch {
	case s.Implementation == Hybrid && s.Domains == 1:
		return true, "Syncful, as Hybrid is inside one link domain"
	case s.Implementation == Hybrid && s.Each == 1:
		return false, "Syncless, as Hybrid is between link domains with one rank in each"
	case s.Implementation == Syncful && s.Memory:
		return true, "Syncful, as the options ask"
	case s.Implementation == Syncful:
		return true, "Syncful, as the options ask, which without peer memory is a barrier before each round"
	case s.Implementation == Syncless:
		return false, "Syncless, as the options ask"
	case !s.Memory:
		return false, "Syncless, since the transport has no peer memory"
	case s.Method == methods.Auto || s.Method == methods.Direct:
		return true, "Syncful, since the replicas share memory"
	}
	return false, "Syncless, since Auto steps together for direct only"
}

// Hybrid reports whether there are link domains to go by in phases.
func (s *Setting) Hybrid() bool { return s.Domains > 1 && s.Each > 1 }

// InPhases reports whether a call goes in phases, if Hybrid is what is asked for. A reproducible reduction is a fold in
// rank order, which phases are not: it goes the way that AutoImplementation takes, as a collective without phases and a
// call on several tensors do. A barrier goes in phases as an all-reduce of nothing, all of which wait for everyone.
func (s *Setting) InPhases(q *Question) bool {
	return s.Hybrid() && !q.Several && !q.Parts && s.Phased>>q.Collective&1 == 1 &&
		(q.barrier() || !s.Reproducible || !q.Collective.Contract().Combines)
}

// Route decides how a call goes.
func (s *Setting) Route(q *Question) (r Route) {
	s.Decide(&r, q)
	return r
}

// Decide is Route, into a zero Route.
func (s *Setting) Decide(r *Route, q *Question) {
	switch {
	case q.Given:
		s.given(r)
		return
	case s.Ranks == 1 || q.Local:
		r.Path = Local
		return
	case s.Implementation == Hybrid && s.InPhases(q):
		r.Phases = true
		return
	}
	if q.Parts && q.Collective.Contract().Input == schedule.Blocks {
		s.straight(r)
		return
	}
	s.method(r, q)
	if r.Method == methods.Native {
		r.Path = Engine
		return
	}
	switch {
	case !r.Together || !s.Memory:
		r.Path, r.Barriers = Messages, r.Together
	case r.Method != methods.Direct && !q.barrier():
		r.Path = Rounds
	case q.Published <= s.Small && !q.Parts: // which members would publish different numbers of bytes of
		r.Path = Small
	default:
		r.Path = Memory
	}
}

// straight is the route of an all-to-all whose parts are of different lengths: each goes straight from its rank to its
// rank. Any other method would have a rank pass on parts whose lengths it does not know, and so would a pass over peer
// memory.
func (s *Setting) straight(r *Route) {
	r.Path, r.Method, r.Because = Messages, methods.Direct, AsCounts
	r.Together = s.Implementation == Syncful
	r.Barriers = r.Together
}

// given is the route of a call that comes with its schedule: by messages, unless replicas are asked to step together.
// Its Method is Auto.
func (s *Setting) given(r *Route) {
	r.Path, r.Together = Messages, s.Implementation == Syncful || s.Implementation == Hybrid && s.Domains == 1
	switch {
	case r.Together && s.Memory && s.Ranks > 1:
		r.Path = Rounds
	case r.Together && s.Ranks > 1:
		r.Barriers = true
	}
}

// ByMessages decides how a call goes that was to go over peer memory, when the transport cannot lay a member's buffers
// open. It says so to all members.
func (s *Setting) ByMessages(q *Question) Route {
	apart := *s
	apart.Memory, apart.Small = false, -1
	apart.Syncful, apart.SyncfulWhy = apart.Together()
	return apart.Route(q)
}

// Traced is the implementation that a Trace is told of, in a phase of Hybrid or in none, 0. An engine has none.
func Traced(p Path, together bool, phase int) Implementation {
	switch {
	case p == Local || p == Engine:
		return Auto
	case phase > 0:
		return Hybrid
	case together:
		return Syncful
	}
	return Syncless
}

// method decides by which method a call goes that is not local and not in phases, and whether replicas step together.
func (s *Setting) method(r *Route, q *Question) {
	onePass := s.Syncful && s.Memory
	r.Together = s.Syncful
	switch {
	case q.barrier():
		r.Method, r.Because = methods.SendToAll, AsOptionsAsk
		return
	case s.Method != methods.Auto:
		r.Method, r.Because = s.Method, AsOptionsAsk
		return
	}
	if s.Ruled && s.byRule(r, q) { // before anything is priced, which takes a while
		return
	}
	if priced := s.Priced(q); priced != nil {
		r.Method, r.Pieces, r.Because = priced.Method, int32(priced.Pieces), AsPriced
		return
	}
	if !s.Ruled && s.byRule(r, q) {
		return
	}
	r.Method, r.Because = methods.Direct, AsOnePass
	if onePass && !(s.Tuned && q.Collective == schedule.AllReduce) {
		return
	}
	x := s.Case(q)
	if m := s.Tuning.ByLinks(&x); !onePass || m == methods.SendToAll {
		r.Method, r.Because = m, AsTuned
	}
}

// byRule has a rule of the tuning decide, if there is one. A rule for messages is not for buffers that the members open
// to each other. Whether a call has such buffers turns out in the pass over them; a call without them then goes by
// ByMessages.
func (s *Setting) byRule(r *Route, q *Question) bool {
	rule := s.Rule(q)
	if rule == nil || !s.ruledTogether(rule) && s.Syncful && s.Memory && s.Opened {
		return false
	}
	r.Method, r.Because, r.Line, r.Together = rule.Method, AsRuled, int32(rule.Line), s.ruledTogether(rule)
	return true
}

// Priced is the choice for a call by messages where the network is known, or nil. Replicas that step together are not
// asked what links cost: they go over the memory that they share, or wait for each other before each round. Where a
// limit asks for broadcast nothing is priced.
func (s *Setting) Priced(q *Question) *cheapest.Choice {
	if s.Prices == nil || s.Syncful || q.Unpriced {
		return nil
	}
	if s.Tuned {
		if x := s.Case(q); s.Tuning.Broadcasts(&x) {
			return nil
		}
	}
	return s.Prices.Choose(q.Collective, int64(q.Bytes))
}

// Rule is the rule of the tuning by which a call goes whose method the options leave open, or nil.
func (s *Setting) Rule(q *Question) *methods.Rule {
	if s.Tuning.Rules == nil {
		return nil
	}
	x := s.Case(q)
	return s.Tuning.Rule(&x)
}

// Case is what decides on the rule of a call.
func (s *Setting) Case(q *Question) methods.Case {
	return methods.Case{Collective: q.Collective, Ranks: s.Ranks, Bytes: int64(q.Bytes), Strided: s.Strided,
		RankOrder: s.Reproducible, Implementation: s.wantedImplementation(), Memory: s.Memory, Phase: s.Phase,
		Above: q.Above}
}

// wantedImplementation is the implementation that the options ask for, if they do.
func (s *Setting) wantedImplementation() methods.Implementation {
	switch {
	case s.Implementation == Syncless, s.Implementation == Hybrid && s.Domains != 1 && s.Each == 1:
		return methods.Syncless
	case s.Implementation == Syncful, s.Implementation == Hybrid && s.Domains == 1:
		return methods.Syncful
	}
	return methods.AnyImplementation
}

// ruledTogether reports whether replicas step together in a call by a rule.
func (s *Setting) ruledTogether(r *methods.Rule) bool {
	switch {
	case r.Implementation != methods.AnyImplementation:
		return r.Implementation == methods.Syncful
	case s.wantedImplementation() != methods.AnyImplementation:
		return s.Syncful
	}
	return s.Memory && r.Method == methods.Direct
}

// WorksIn is the element type in which a schedule carries partial results of a reduction: that of the data, but that
// 16-bit floats are kept in float32 until they are rounded once.
func (s *Setting) WorksIn(dtype tensor.DType) kernel.Type {
	if t := kernel.Type(dtype); !s.Reproducible || kernel.Widen(t) == nil {
		return t
	}
	return kernel.Float32
}
