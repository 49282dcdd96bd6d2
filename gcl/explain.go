package gcl

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
)

// Explanation says how a collective would be carried out, why, and what that and the alternatives would cost. String
// prints it.
type Explanation struct {
	Collective schedule.Collective
	Bytes      int64 // in the larger of a rank's two buffers
	DType      tensor.DType
	Ranks      int
	Machine    string // where the replicas sit, as in "clique of 8 replicas"

	// Method and Implementation are those that a call takes; both are Auto in a group of one, where nothing is sent. Of
	// Hybrid it is the method across link domains. Why gives the reason.
	Method         methods.Method
	Implementation Implementation
	Why            string

	Candidates []Candidate // the one chosen among them; none in a group of one
}

// Candidate is a way to carry out a collective, and its price.
type Candidate struct {
	Implementation Implementation
	Method         methods.Method
	Chosen         bool

	Rounds    int
	Barriers  int
	SentBytes int64 // by the rank that sends most; in one pass over peer memory, what a rank reads and writes of others
	Estimate  time.Duration
}

// Explain says which implementation and method a call with so many bytes in the larger of a rank's two buffers takes
// with c's options, and why. It sends nothing, and waits for nothing. Local, which sends nothing either, is not spoken
// of; a root is rank 0.
//
// The estimates compare methods; they are not a promise. Messages are priced by methods/cost on the topology that the
// communicator was given (WithTopology, with speeds that the caller knows), and without one as a host on which a link
// carries 8 GB/s with a latency of 1 us. Peer memory is always priced as the host's. Folding costs nothing, and every
// replica has a processor of its own.
//
// Errors: an unknown collective, a barrier, negative bytes, an invalid dtype, bytes that are not whole elements or, in
// an all-gather, all-to-all, gather or scatter, not G equal parts.
func (c *Comm) Explain(collective schedule.Collective, bytes int64, dtype tensor.DType) (Explanation, error) {
	if c.check() != nil {
		return Explanation{}, newError("explain: nil Comm")
	}
	if err := c.checkExplain(collective, bytes, dtype); err != nil {
		return Explanation{}, errorf("explain: %w", err)
	}
	e := Explanation{
		Collective: collective, Bytes: bytes, DType: dtype,
		Ranks: c.Size(), Machine: c.lane.topology.String(),
		Why: "a group of one has the result: nothing is sent",
	}
	if c.Size() == 1 {
		return e, nil
	}
	p := pricer{&c.way, c.lane.topology, newAsk(collective, 0, 0), dtype, int(bytes / int64(dtype.Size()))}
	r := p.route()
	e.Method, e.Implementation, e.Why = r.Method, Implementation(c.way.Setting.Told(&r, 0)), p.why(r)
	if r.Phases {
		across := p.phases(p.Hybrid)[0]
		e.Method, e.Implementation, e.Why = across.route().Method, Hybrid, p.whyHybrid()
	}
	var err error
	if e.Candidates, err = p.candidates(e.Method, e.Implementation); err != nil {
		return Explanation{}, errorf("explain: %w", err)
	}
	return e, nil
}

func (c *Comm) checkExplain(collective schedule.Collective, bytes int64, dtype tensor.DType) error {
	size := int64(c.Size())
	switch {
	case !collective.Valid():
		return fmt.Errorf("unknown collective %d", collective)
	case collective == schedule.Barrier:
		return errors.New("a barrier has no bytes")
	case !dtype.Valid():
		return fmt.Errorf("invalid dtype %d", dtype)
	case bytes < 0:
		return fmt.Errorf("%d bytes", bytes)
	case bytes > math.MaxInt:
		return fmt.Errorf("%d bytes are more than a slice holds", bytes)
	case bytes%int64(dtype.Size()) != 0:
		return fmt.Errorf("%d bytes are not whole elements of %v", bytes, dtype)
	}
	contract := collective.Contract()
	if n := bytes / int64(dtype.Size()); n%size != 0 && contract.PerRank() && !contract.Combines { // a reduce-scatter pads
		return fmt.Errorf("%d elements do not divide into %d equal parts, one for each rank", n, size)
	}
	return nil
}

// hostLink is what gcl takes a link between replicas in one process to be: see hostLatencyBytes, which is their
// product.
var hostLink = topology.Speed{BytesPerSecond: 8e9, Latency: time.Microsecond}

const (
	// hostMemoryBytesPerSecond is what a replica copies between peers' buffers: twice what messages carry, as an
	// all-reduce of 1 MiB over two replicas takes 23 us instead of 47 (prototype, two-core machine of
	// docs/determinism.md).
	hostMemoryBytesPerSecond = 16e9

	// hostBarrierPerRank is how much each replica adds to a barrier: eight goroutines on two cores meet in 1.0 us (same
	// machine).
	hostBarrierPerRank = 120 * time.Nanosecond
)

// pricer finds the candidates for one call.
type pricer struct {
	*carry.Way
	topology topology.Topology
	ask
	dtype    tensor.DType
	elements int // in the larger buffer
}

// question is that of the call.
func (p pricer) question() route.Question {
	q := route.Question{Collective: p.Collective, Bytes: p.elements * p.dtype.Size()}
	q.Published = q.Bytes
	if p.Collective.Contract().Input == schedule.Own {
		q.Published /= p.Size()
	}
	return q
}

// route is how the call goes.
func (p pricer) route() route.Route {
	q := p.question()
	return p.Setting.Route(&q)
}

// bytes are those of the larger buffer as it is sent.
func (p pricer) bytes() int64 {
	size := p.dtype.Size()
	if p.Collective.Contract().Combines {
		size = p.Setting.WorksIn(p.dtype).Size()
	}
	return int64(size) * int64(min(p.elements, math.MaxInt/size))
}

// candidates are all methods by messages, direct on peer memory where there is one, what was chosen if it is none of
// these, and Hybrid where link domains allow it.
func (p pricer) candidates(method methods.Method, implementation Implementation) ([]Candidate, error) {
	var out []Candidate
	add := func(c Candidate, err error) error {
		c.Chosen = c.Method == method && c.Implementation == implementation
		out = append(out, c)
		return err
	}
	for _, m := range methods.All() {
		if err := add(p.messages(m)); err != nil {
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
	case implementation != Syncful:
	case !overMemory:
		err = add(p.withBarriers(method))
	case method != methods.Direct:
		err = add(p.stepped(method))
	}
	if q := p.question(); err == nil && p.Setting.InPhases(&q) {
		err = add(p.inPhases(p.NewHybrid()))
	}
	return out, err
}

// specOf is the schedule by which a method carries out the call, apart from its input.
func (p pricer) specOf(m methods.Method) methods.Spec {
	return p.Way.Spec(&p.Ask, m, p.elements*p.dtype.Size(), false)
}

// price prices a schedule by the links of the topology.
func (p pricer) price(spec methods.Spec, bytes int64) (cost.Estimate, error) {
	s, err := methods.Build(spec)
	if err != nil {
		return cost.Estimate{}, err
	}
	return cost.Price(s, p.Group.Members, p.topology, bytes)
}

// messages is a method without barriers.
func (p pricer) messages(m methods.Method) (Candidate, error) {
	e, err := p.price(p.specOf(m), p.bytes())
	return Candidate{Implementation: Syncless, Method: m, Rounds: e.Rounds, SentBytes: e.SentBytes, Estimate: e.Time}, err
}

// withBarriers is a method by messages with a barrier before each round, which is an empty message from everyone to
// everyone.
func (p pricer) withBarriers(m methods.Method) (Candidate, error) {
	c, err := p.messages(m)
	if err != nil {
		return Candidate{}, err
	}
	barrier, err := p.price(methods.Spec{Method: methods.Direct, Collective: schedule.AllToAll, Size: p.Size()}, 0)
	c.Implementation, c.Barriers = Syncful, c.Rounds
	c.Estimate = max(c.Estimate, c.Estimate+time.Duration(c.Barriers)*barrier.Time) // but not past the greatest Duration
	return c, err
}

// stepped is a method on peer memory: the rounds of its schedule, a barrier to meet, and one after each round.
func (p pricer) stepped(m methods.Method) (Candidate, error) {
	c, err := p.messages(m)
	if err != nil {
		return Candidate{}, err
	}
	c.Implementation, c.Barriers = Syncful, c.Rounds+1
	c.Estimate = p.hostTime(c.Barriers, float64(c.SentBytes))
	return c, nil
}

// onePass is what shared does, as if each rank had a processor: two barriers with each at its share of the memory
// between them, or for a small message one, or for a small broadcast or scatter none.
func (p pricer) onePass() Candidate {
	n, ranks := int64(p.elements)*int64(p.dtype.Size()), int64(p.Size())
	others := n - n/ranks // what a rank has to do with the other ranks' data, once
	c := Candidate{Implementation: Syncful, Method: methods.Direct, Rounds: 1, Barriers: 2, SentBytes: others}
	q, contract := p.question(), p.Collective.Contract()
	small := q.Published <= p.Setting.Small
	switch {
	case small && contract.Input == schedule.AtRoot:
		c.Barriers = 0 // the root does not wait
	case small:
		c.Barriers = 1
	}
	read, written := float64(n), float64(n)
	dealt := contract.Deals() || contract.Input == schedule.Own && contract.Output == schedule.AtRoot // one part for each rank
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
	c.Estimate = p.hostTime(c.Barriers, (read+written)/2)
	return c
}

// hostTime is how long barriers in this process and copying take.
func (p pricer) hostTime(barriers int, copied float64) time.Duration {
	ns := copied / hostMemoryBytesPerSecond * 1e9
	if ns > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return time.Duration(barriers*p.Size())*hostBarrierPerRank + time.Duration(math.Round(ns))
}

func saturatedDouble(n int64) int64 {
	if n > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return 2 * n
}

// why is the reason for a route, as in "direct, since ...; Syncful, since ...".
func (p pricer) why(r route.Route) string {
	method := "as the options ask"
	switch r.Because {
	case route.AsOnePass:
		method = "since on peer memory it is one pass"
	case route.AsTuned:
		bytes := int64(p.elements) * int64(p.dtype.Size())
		method = "since " + p.Setting.Tuning.Why(p.Collective, p.Size(), bytes, p.Setting.Strided)
	}
	how := p.Setting.SyncfulWhy
	if p.Hybrid != nil {
		how += ", to which Hybrid leaves " + p.left()
	}
	return fmt.Sprintf("%v, %s; %s", r.Method, method, how)
}

// left is what does not go in phases of Hybrid: every call of a collective that has none, or a reproducible one.
func (p pricer) left() string {
	if p.Setting.Phased>>p.Collective&1 == 0 {
		return wire.WithArticle(p.Collective)
	}
	return "a reproducible reduction"
}
