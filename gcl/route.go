package gcl

import (
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// How a call goes is decided here, once, by pure functions: a setting, which is a Comm's, and a question, which is a
// call's, give a route. What carries the call out, the trace, the flight recorder, Explain and its prices follow the
// route. Nothing in a setting or a question may look different to two members of a group: they would choose
// differently.

// setting is what options, group and transport say of how all calls of a Comm go.
type setting struct {
	asked          methods.Method // Options.Method
	implementation Implementation
	reproducible   bool
	tuning         methods.Tuning
	tuned          bool // an all-reduce goes by the tuning also where one pass over peer memory would do

	ranks         int
	strided       bool
	domains, each int // link domains with members, and members in each; 0: the domains do not hold equally many

	memory bool // the members reach each other's memory
	small  int  // bytes that a member may publish on boards; -1: there are none

	syncful    bool   // replicas step together
	syncfulWhy string // or why they do not
}

// question is what decides how one call goes, given the setting.
type question struct {
	collective schedule.Collective
	local      bool // the operator combines nothing
	several    bool // operands
	parts      bool // of different lengths, for the ranks
	bytes      int  // of the larger of a rank's two buffers, of all operands
	published  int  // bytes of the inputs, as a member would publish them
}

func (q *question) barrier() bool { return q.collective == schedule.Barrier }

// route is how a call goes.
type route struct {
	path     Path
	method   methods.Method
	because  because // of the method
	phases   bool    // the call goes in phases, each a call with a route of its own; path and method are not set
	barriers bool    // by messages: there is a barrier before each round
}

// because says why a route has its method.
type because uint8

const (
	asOptionsAsk because = iota
	asOnePass            // over peer memory, which no other method is
	asTuned              // by setting.tuning
)

// setting makes the Comm's.
func (c *Comm) newSetting() setting {
	s := setting{
		asked: c.options.Method, implementation: c.options.Implementation, reproducible: c.options.Reproducible,
		tuning: c.tuning(), tuned: c.options.MaxBroadcastSize != 0,
		ranks: c.Size(), strided: c.strided,
		memory: c.lane.memory != nil && c.lane.memory.Reaches(c.group.members), small: -1,
	}
	if b := c.lane.boards; b != nil && b.Reaches(c.group.members) {
		s.small = min(b.SmallLimit(), c.tile)
	}
	if split := c.group.split; split != nil {
		s.domains, s.each = split.domains, split.each
	}
	s.syncful, s.syncfulWhy = s.together()
	return s
}

// together decides whether replicas step together, and says why.
func (s *setting) together() (syncful bool, why string) {
	switch {
	case s.implementation == Hybrid && s.domains == 1:
		return true, "Syncful, as Hybrid is inside one link domain"
	case s.implementation == Hybrid && s.each == 1:
		return false, "Syncless, as Hybrid is between link domains with one rank in each"
	case s.implementation == Syncful && s.memory:
		return true, "Syncful, as the options ask"
	case s.implementation == Syncful:
		return true, "Syncful, as the options ask, which without peer memory is a barrier before each round"
	case s.implementation == Syncless:
		return false, "Syncless, as the options ask"
	case !s.memory:
		return false, "Syncless, since the transport has no peer memory"
	case s.asked == methods.Auto || s.asked == methods.Direct:
		return true, "Syncful, since the replicas share an address space"
	}
	return false, "Syncless, since Auto steps together for direct only"
}

// hybrid reports whether there are link domains to go by in phases.
func (s *setting) hybrid() bool { return s.domains > 1 && s.each > 1 }

// inPhases reports whether a call goes in phases, if Hybrid is what is asked for. A reproducible reduction is a fold in
// rank order, which phases are not: it goes the way that AutoImplementation takes, as a collective without phases and a
// call on several tensors do. A barrier goes in phases as an all-reduce of nothing, all of which wait for everyone.
func (s *setting) inPhases(q *question) bool {
	return s.hybrid() && !q.several && !q.parts && phasingOf(q.collective).perform != nil &&
		(q.barrier() || !s.reproducible || !q.collective.Contract().Combines)
}

// route decides how a call goes.
func (s *setting) route(q *question) (r route) {
	s.decide(&r, q)
	return r
}

// decide is route, into a zero route.
func (s *setting) decide(r *route, q *question) {
	switch {
	case s.ranks == 1 || q.local:
		r.path = PathLocal
		return
	case s.implementation == Hybrid && s.inPhases(q):
		r.phases = true
		return
	}
	r.method, r.because = s.method(q)
	switch {
	case !s.syncful || !s.memory:
		r.path, r.barriers = PathMessages, s.syncful
	case q.parts || r.method != methods.Direct && !q.barrier():
		r.path = PathRounds
	case q.published <= s.small:
		r.path = PathSmall
	default:
		r.path = PathMemory
	}
}

// byMessages decides how a call goes that was to go over peer memory, when the transport cannot lay a member's buffers
// open. It says so to all members.
func (s *setting) byMessages(q *question) route {
	apart := *s
	apart.memory, apart.small = false, -1
	apart.syncful, apart.syncfulWhy = apart.together()
	return apart.route(q)
}

// told is the implementation that a Trace is told of a route, in a phase of Hybrid or in none, 0.
func (s *setting) told(r *route, phase int) Implementation {
	switch {
	case r.path == PathLocal:
		return AutoImplementation
	case phase > 0:
		return Hybrid
	case s.syncful:
		return Syncful
	}
	return Syncless
}

// method decides by which method a call goes that is not local and not in phases.
func (s *setting) method(q *question) (methods.Method, because) {
	onePass := s.syncful && s.memory
	switch {
	case q.barrier():
		return methods.SendToAll, asOptionsAsk
	case s.asked != methods.Auto:
		return s.asked, asOptionsAsk
	case onePass && !(s.tuned && q.collective == schedule.AllReduce):
		return methods.Direct, asOnePass
	}
	m := s.tuning.Choose(q.collective, s.ranks, int64(q.bytes), s.strided)
	if onePass && m != methods.SendToAll {
		return methods.Direct, asOnePass
	}
	return m, asTuned
}

// worksIn is the element type in which a schedule carries partial results of a reduction: that of the data, but that
// 16-bit floats are kept in float32 until they are rounded once.
func (s *setting) worksIn(dtype tensor.DType) kernel.Type {
	if t := kernel.Type(dtype); !s.reproducible || kernel.Widen(t) == nil {
		return t
	}
	return kernel.Float32
}
