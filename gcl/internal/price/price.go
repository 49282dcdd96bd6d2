package price

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
)

// Answer is what Explain says.
type Answer struct {
	Method         methods.Method // of Hybrid, that across link domains
	Implementation route.Implementation
	Why            string
	Candidates     []Candidate
	Skipped        []Skipped
}

// Skipped is a method of the program's own that is no candidate.
type Skipped struct {
	Method methods.Method
	Reason error // of its Prover
}

// Own is a method of a generator: the program's own, or of the gallery.
type Own struct {
	Method methods.Method
	*methods.Prover
}

// library reports whether the method is one of the gallery and the generator the library's.
func (o Own) library() bool { return o.Method.InGallery() && o.Prover == o.Method.Prover() }

// Candidate is a way to carry out a call, and its price.
type Candidate struct {
	Implementation route.Implementation
	Method         methods.Method
	Chosen         bool

	Rounds    int
	Barriers  int
	SentBytes int64 // by the rank that sends most; in one pass over peer memory, what a rank reads and writes of others
	Estimate  time.Duration
	Reached   float64 // by messages: how much of what the network allows it is, as cost.Bound.Reached; else 0
}

// Pricer finds the candidates for one call.
type Pricer struct {
	*carry.Caller
	Model cost.Model // of the network
	job.Ask
	DType    tensor.DType
	Elements int   // in the larger buffer
	Own      []Own // that the Comm has
	Strict   bool  // a call that the method of the options does not do is an error

	beside [][]int     // of a phase across: the members of all groups that carry out the same at the same time
	bound  *cost.Bound // of the call by messages; nil: none is known, or nobody asks

	above int // the line of the last rule that fits whose method does not do the call; 0: there is none
}

// Answer says how the call goes, and what that and the alternatives cost.
func (p Pricer) Answer() (a Answer, err error) {
	resolved, r, skipped, err := p.resolve()
	if err != nil {
		return a, err
	}
	a.Method, a.Implementation = r.Method, route.Traced(r.Path, r.Together, 0)
	a.Why = resolved.why(r) + because(p.Setting.Method, skipped)
	if r.Phases {
		a.Implementation = route.Hybrid
		if a.Method, a.Why, err = p.whyHybrid(); err != nil {
			return a, err
		}
	}
	a.Candidates, err = resolved.candidates(&a)
	return a, err
}

// resolve is how the call goes: the route, and with whose setting. A program's own method that does not do the call is
// skipped, for a reason.
func (p Pricer) resolve() (resolved Pricer, r route.Route, skipped, err error) {
	r = p.route()
	if !r.Method.Own() && r.Because != route.AsRuled || r.Because == route.AsPriced || r.Path == route.Local {
		return p, r, nil, nil
	}
	if _, err := p.schedule(p.specOf(r.Method)); err == nil || !errors.Is(err, errors.ErrUnsupported) {
		return p, r, nil, err
	} else {
		skipped = err
	}
	if p.Strict && r.Because != route.AsRuled {
		return p, r, nil, p.Skips.Skips(p.Caller, &p.Ask, false)
	}
	resolved = p
	if r.Because == route.AsRuled {
		resolved.above = int(r.Line)
	} else {
		resolved.Caller = p.Instead()
		resolved.Caller.Hybrid = p.Caller.Hybrid
	}
	resolved, r, _, err = resolved.resolve() // what the rules have to say is in why
	return resolved, r, skipped, err
}

// because says why a method that the options ask for was skipped, if it was.
func because(asked methods.Method, skipped error) string {
	if skipped == nil || asked == methods.Auto {
		return ""
	}
	return fmt.Sprintf("; not %v, which the options ask for: %v", asked, skipped)
}

// schedule makes the schedule of a method, a program's own or not.
func (p Pricer) schedule(spec methods.Spec) (*schedule.Schedule, error) {
	for _, own := range p.Own {
		if own.Method == spec.Method {
			proved, err := p.Prove(own.Prover, spec)
			if err != nil {
				return nil, err
			}
			return proved.Schedule, nil
		}
	}
	return methods.Build(spec)
}

// question is that of the call.
func (p Pricer) question() route.Question {
	q := route.Question{Collective: p.Collective, Bytes: p.Elements * p.DType.Size()}
	q.Published, q.Above = q.Bytes, p.above
	if p.Collective.Contract().Input == schedule.Own {
		q.Published /= p.Size()
	}
	return q
}

// route is how the call goes.
func (p Pricer) route() route.Route {
	q := p.question()
	return p.Setting.Route(&q)
}

// bytes are those of the larger buffer as it is sent.
func (p Pricer) bytes() int64 {
	size := p.DType.Size()
	if p.Collective.Contract().Combines {
		size = p.Setting.WorksIn(p.DType).Size()
	}
	return int64(size) * int64(min(p.Elements, math.MaxInt/size))
}

// candidates are all methods by messages, direct on peer memory where there is one, what was chosen if it is none of
// these, and Hybrid where link domains allow it. An engine's own collective is one only where it was chosen. A method
// of the program's own that has no schedule for the call is skipped. One of the gallery that does not do the call is
// left out without a word, and so are all of them that were not chosen in a group of more than MostOffered, and Hybrid
// where Strict refuses its phases.
func (p Pricer) candidates(a *Answer) ([]Candidate, error) {
	method, implementation := a.Method, a.Implementation
	if bound, err := p.Model.Bound(p.Collective, 0, p.Group.Members); err == nil {
		p.bound = &bound // else prices have the error
	}
	var out []Candidate
	add := func(c Candidate, err error) error {
		c.Chosen = c.Method == method && c.Implementation == implementation
		out = append(out, c)
		return err
	}
	for _, m := range methods.All() {
		if m.Own() {
			continue
		}
		if err := add(p.messages(m)); err != nil {
			return nil, err
		}
	}
	for _, own := range p.Own {
		if own.library() && p.Size() > MostOffered && own.Method != method {
			continue
		}
		c, err := p.messages(own.Method)
		if own.library() && errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			a.Skipped = append(a.Skipped, Skipped{own.Method, err})
		} else if err := add(c, nil); err != nil {
			return nil, err
		}
	}
	overMemory := p.Setting.Memory
	if overMemory {
		if err := add(p.onePass(), nil); err != nil {
			return nil, err
		}
	}
	var err error
	switch {
	case method == methods.Native:
		err = add(p.agreement(), nil)
	case implementation != route.Syncful:
	case !overMemory:
		err = add(p.withBarriers(method))
	case method != methods.Direct:
		err = add(p.stepped(method))
	}
	if q := p.question(); err == nil && p.Setting.InPhases(&q) {
		h := p.NewHybrid()
		c, unable := p.inPhases(h, p.Way(h))
		if !p.Strict || !errors.Is(unable, errors.ErrUnsupported) {
			err = add(c, unable)
		}
	}
	return out, err
}

// MostOffered is the largest group for which the gallery's methods are candidates unasked. Their schedules are proved
// for it, which takes seconds for 1024 ranks.
const MostOffered = 256

// specOf is the schedule by which a method carries out the call, apart from its input.
func (p Pricer) specOf(m methods.Method) methods.Spec {
	if r := p.route(); r.Because == route.AsPriced && r.Method == m {
		s := p.Caller.Spec(&p.Ask, m, p.Elements*p.DType.Size(), false)
		s.Pieces = int(r.Pieces)
		return s
	}
	return p.Caller.Spec(&p.Ask, m, p.Elements*p.DType.Size(), false)
}

// price prices a schedule by the links of the topology.
func (p Pricer) price(spec methods.Spec, bytes int64) (cost.Estimate, error) {
	s, err := p.schedule(spec)
	if err != nil {
		return cost.Estimate{}, err
	}
	t, ok := cost.TopologyOf(p.Model.Network)
	if clique := ok && t.Shape() == topology.Clique; p.beside == nil || clique { // whose groups share no links
		return p.Model.Price(s, p.Group.Members, bytes)
	}
	return p.Model.Price(together(s, len(p.beside)), slices.Concat(p.beside...), bytes)
}

// messages is a method without barriers.
func (p Pricer) messages(m methods.Method) (Candidate, error) {
	e, err := p.price(p.specOf(m), p.bytes())
	return Candidate{Implementation: route.Syncless, Method: m, Rounds: e.Rounds, SentBytes: e.SentBytes,
		Estimate: e.Time, Reached: p.reached(e.Time)}, err
}

// reached is how much of what the network allows a time by messages is, 0 where that is not known.
func (p Pricer) reached(took time.Duration) float64 {
	if p.bound == nil {
		return 0
	}
	return p.bound.Reached(p.bytes(), took)
}

// agreement is what the members pay to agree on a collective of the transport's own engine. The price of the collective
// itself is not known.
func (p Pricer) agreement() Candidate {
	rounds := p.AgreementRounds()
	return Candidate{Implementation: route.Auto, Method: methods.Native, Rounds: rounds,
		Estimate: time.Duration(rounds) * p.Link.Latency}
}

// withBarriers is a method by messages with a barrier before each round, which is an empty message from everyone to
// everyone.
func (p Pricer) withBarriers(m methods.Method) (Candidate, error) {
	c, err := p.messages(m)
	if err != nil {
		return Candidate{}, err
	}
	barrier, err := p.price(methods.Spec{Method: methods.Direct, Collective: schedule.AllToAll, Size: p.Size()}, 0)
	c.Implementation, c.Barriers = route.Syncful, c.Rounds
	// but not past the greatest Duration
	c.Estimate = max(c.Estimate, c.Estimate+time.Duration(c.Barriers)*barrier.Time)
	c.Reached = p.reached(c.Estimate)
	return c, err
}

// stepped is a method on peer memory: the rounds of its schedule, a barrier to meet, and one after each round.
func (p Pricer) stepped(m methods.Method) (Candidate, error) {
	c, err := p.messages(m)
	if err != nil {
		return Candidate{}, err
	}
	c.Implementation, c.Barriers = route.Syncful, c.Rounds+1
	c.Estimate, c.Reached = p.memoryTime(c.Barriers, float64(c.SentBytes)), 0
	return c, nil
}

// onePass is one pass over peer memory, as if each rank had a processor: two barriers with each at its share of the
// memory between them, or for a small message one, or for a small broadcast or scatter none.
func (p Pricer) onePass() Candidate {
	n, ranks := int64(p.Elements)*int64(p.DType.Size()), int64(p.Size())
	others := n - n/ranks // what a rank has to do with the other ranks' data, once
	c := Candidate{Implementation: route.Syncful, Method: methods.Direct, Rounds: 1, Barriers: 2, SentBytes: others}
	q, contract := p.question(), p.Collective.Contract()
	small := q.Published <= p.Setting.Small
	switch {
	case small && contract.Input == schedule.AtRoot:
		c.Barriers = 0 // the root does not wait
	case small:
		c.Barriers = 1
	}
	read, written := float64(n), float64(n)
	// one part for each rank
	dealt := contract.Deals() || contract.Input == schedule.Own && contract.Output == schedule.AtRoot
	switch {
	case contract.Combines && contract.Output != schedule.Own && small:
		c.SentBytes, read = (ranks-1)*n, float64(ranks*n) // everyone, or the root, reduces everything
	case contract.Combines && contract.Output == schedule.Whole:
		c.SentBytes = saturatedDouble(others)
	case contract.Combines && contract.Output == schedule.AtRoot:
		c.SentBytes, written = n, written/float64(ranks)
	case dealt && (!small || contract.Deals()):
		c.SentBytes, read, written = n/ranks, read/float64(ranks), written/float64(ranks)
	case dealt: // a small gather, which is the root's work
	case contract.Output == schedule.Own:
		written /= float64(ranks)
	case contract.Input == schedule.AtRoot:
		c.SentBytes = n
	}
	c.Estimate = p.memoryTime(c.Barriers, (read+written)/2)
	return c
}

// memoryTime is how long barriers and copying take on peer memory.
func (p Pricer) memoryTime(barriers int, copied float64) time.Duration {
	ns := copied / p.Link.CopyBytesPerSecond * 1e9
	// rounded before it is added, on all processors alike
	ns += float64(float64(barriers) * float64(p.Size()) * float64(p.Link.Barrier))
	if ns > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(ns))
}

func saturatedDouble(n int64) int64 {
	if n > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return 2 * n
}

// why is the reason for a route, as in "direct, since ...; Syncful, since ...".
func (p Pricer) why(r route.Route) string {
	method, how := "as the options ask", p.Setting.SyncfulWhy
	if r.Path == route.Engine {
		a := p.agreement()
		return fmt.Sprintf("%v, %s: a collective of the transport's own engine, which has no schedule; the members agree "+
			"on the call first, in %d rounds of small messages, and what the engine takes is not known", r.Method, method,
			a.Rounds)
	}
	switch r.Because {
	case route.AsOnePass:
		method = "since on peer memory it is one pass" + p.skips()
	case route.AsTuned:
		method = "since " + p.whyTuned()
	case route.AsPriced:
		q := p.question()
		method = fmt.Sprintf("by price: %v", p.Setting.Priced(&q)) + p.skips()
	case route.AsRuled:
		method, how = "by "+p.whyRuled(), p.whyRuledTogether(r)
	}
	if p.Hybrid != nil {
		how += ", to which Hybrid leaves " + p.left()
	}
	return fmt.Sprintf("%v, %s; %s", r.Method, method, how)
}

// whyTuned says why the tuning chooses the method without a rule.
func (p Pricer) whyTuned() string {
	q := p.question()
	x := p.Setting.Case(&q)
	return p.Setting.Tuning.WhyByLinks(&x) + p.skips()
}

// whyRuled cites the rule by which the call goes.
func (p Pricer) whyRuled() string {
	q := p.question()
	return p.Setting.Tuning.WhyRule(p.Setting.Rule(&q)) + p.skips()
}

// whyRuledTogether says why replicas step together in a call by a rule, or why not.
func (p Pricer) whyRuledTogether(r route.Route) string {
	q := p.question()
	switch rule := p.Setting.Rule(&q); {
	case rule.Implementation != methods.AnyImplementation && r.Together:
		return "Syncful, as the rule was measured"
	case rule.Implementation != methods.AnyImplementation:
		return "Syncless, as the rule was measured"
	case r.Together != p.Setting.Syncful:
		return "Syncless, since Auto steps together for direct only"
	}
	return p.Setting.SyncfulWhy
}

// skips lists the rules that fit and do not decide.
func (p Pricer) skips() string {
	q := p.question()
	q.Above = 0
	x := p.Setting.Case(&q)
	var text strings.Builder
	text.WriteString(p.Setting.Tuning.Skips(&x))
	for x.Above != p.above { // the rules whose methods do not do the call
		rule := p.Setting.Tuning.Rule(&x)
		if rule == nil {
			break
		}
		_, err := p.schedule(p.specOf(rule.Method))
		fmt.Fprintf(&text, "; not %s, %v: %v", p.Setting.Tuning.Rules.Cite(rule), rule.Method, err)
		x.Above = rule.Line
		text.WriteString(p.Setting.Tuning.Skips(&x))
	}
	return text.String()
}

// left is what does not go in phases of Hybrid: every call of a collective that has none, or a reproducible one.
func (p Pricer) left() string {
	if p.Setting.Phased>>p.Collective&1 == 0 {
		return wire.WithArticle(p.Collective)
	}
	return "a reproducible reduction"
}

// Ranks is "1 rank" or "4 ranks".
func Ranks(n int) string {
	if n == 1 {
		return "1 rank"
	}
	return fmt.Sprintf("%d ranks", n)
}
