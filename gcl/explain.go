package gcl

import (
	"errors"
	"fmt"
	"math"
	"time"

	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/price"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// Explanation says how a collective would be carried out, why, and what that and the alternatives would cost. String
// prints it.
type Explanation struct {
	Collective schedule.Collective
	Bytes      int64 // in the larger of a rank's two buffers
	DType      tensor.DType
	Ranks      int
	Machine    string // what the replicas are on: "clique of 8 replicas", or "network of 8 replicas and 48 links"
	Links      string // between processes: what connects the replicas of the group, as in "shm", and why not memory

	// Method and Implementation are those that a call takes; both are Auto in a group of one, where nothing is sent. Of
	// Hybrid it is the method across link domains. Why gives the reason.
	Method         methods.Method
	Implementation Implementation
	Why            string

	Candidates []Candidate // the one chosen among them; none in a group of one
	Skipped    []Skipped   // methods of generators that are no candidates
}

// Skipped is a method of a generator that cannot carry out a collective, and why not: the generator does not do it,
// which is errors.ErrUnsupported, or makes a schedule that does not prove. A method of methods.Gallery that does not do
// it is not listed. If the options ask for that, Explanation.Why has the reason. In groups of
// more than 256 no method of methods.Gallery is a candidate unless the call takes it.
type Skipped struct {
	Method methods.Method
	Reason error
}

// Candidate is a way to carry out a collective, and its price.
type Candidate struct {
	Implementation Implementation
	Method         methods.Method
	Chosen         bool

	Rounds    int
	Barriers  int
	SentBytes int64 // by the rank that sends most; in one pass over peer memory, what a rank reads and writes of others

	// Estimate is how long the call takes. Of the method native, Rounds and Estimate are those of the agreement on the
	// call: the cost of the engine's own collective is not known.
	Estimate time.Duration

	// Reached is how much of what the network allows the estimate is: the time that no method is faster than by
	// messages, as cost.Model.Bound finds it, divided by the estimate. 1 is all of it. 0 over peer memory, of Hybrid
	// and of native.
	Reached float64
}

// Explain says which implementation and method a call with so many bytes in the larger of a rank's two buffers takes
// with c's options, and why. It sends nothing, and waits for nothing. Local, which sends nothing either, is not spoken
// of; a root is rank 0. Nor are the ...V forms: parts are equal.
//
// The estimates compare methods; they are not a promise. Messages are priced by methods/cost on the topology that the
// communicator was given (WithNetwork, or WithTopology with speeds that the caller knows), and else on links as slow
// as the slowest of the transport within a host and between hosts. Peer memory is always priced as the transport says,
// for the group. A transport says it as a transport.Linked; else it is priced as in one process: 8 GB/s with a latency
// of 1 us. Folding costs nothing, and every replica has a processor of its own. Over memory that processes share a
// call whose buffers are all from Alloc is explained.
//
// Errors: an unknown collective, a barrier, negative bytes, an invalid dtype, bytes that are not whole elements or, in
// an all-gather, all-to-all, gather or scatter, not G equal parts; by the method native, a call with Add that the
// transport's engine does not take; by a method of the program's own, a schedule that does not prove, of root 0; with
// Options.Strict, a method that does not do the call. Schedules of methods of the program's own are proved when they
// are first asked for.
func (c *Comm) Explain(collective schedule.Collective, bytes int64, dtype tensor.DType) (Explanation, error) {
	if c.check() != nil {
		return Explanation{}, newError("explain: nil Comm")
	}
	if err := c.checkExplain(collective, bytes, dtype); err != nil {
		return Explanation{}, errorf("explain: %w", err)
	}
	e := Explanation{
		Collective: collective, Bytes: bytes, DType: dtype,
		Ranks: c.Size(), Machine: c.machine(), Links: linksOf(c.group.link),
		Why: "a group of one has the result: nothing is sent",
	}
	if c.Size() == 1 {
		return e, nil
	}
	answer, err := c.pricer(collective, bytes, dtype).Answer()
	if err != nil {
		return Explanation{}, errorf("explain: %w", err)
	}
	e.Method, e.Implementation, e.Why = answer.Method, Implementation(answer.Implementation), answer.Why
	if _, ok := c.conn.Endpoint.(transport.Opener); ok && e.Implementation == Syncful {
		e.Why += "; buffers that are not from Alloc go by messages"
	}
	for _, x := range answer.Candidates {
		e.Candidates = append(e.Candidates, Candidate{
			Implementation: Implementation(x.Implementation), Method: x.Method, Chosen: x.Chosen,
			Rounds: x.Rounds, Barriers: x.Barriers, SentBytes: x.SentBytes, Estimate: x.Estimate,
			Reached: x.Reached,
		})
	}
	for _, x := range answer.Skipped {
		e.Skipped = append(e.Skipped, Skipped(x))
	}
	return e, nil
}

// pricer prices a call with so many bytes in the larger buffer.
func (c *Comm) pricer(collective schedule.Collective, bytes int64, dtype tensor.DType) price.Pricer {
	p := price.Pricer{Caller: &c.caller, Model: c.model(), Ask: newAsk(collective, 0, 0).Ask, DType: dtype,
		Elements: int(bytes / int64(dtype.Size())), Strict: c.options.Strict}
	for _, m := range c.conn.ownMethods() {
		p.Own = append(p.Own, price.Own{Method: m.method, Prover: m.prover})
	}
	return p
}

// model is the network on which messages are priced.
func (c *Comm) model() cost.Model {
	if p := c.conn.prices; p != nil {
		return p.Model()
	}
	return cost.Model{Network: cost.Machine(c.conn.topology)}
}

// machine is Explanation.Machine.
func (c *Comm) machine() string {
	if p := c.conn.prices; p != nil {
		network := p.Model().Network
		if _, ok := cost.TopologyOf(network); !ok {
			return fmt.Sprintf("network of %d replicas and %d links", network.Replicas(), network.Links())
		}
	}
	return c.conn.topology.String()
}

// linksOf is Explanation.Links of a link.
func linksOf(l transport.Link) string {
	switch {
	case l.Transport == inproc.Link().Transport:
		return ""
	case l.Why != "":
		return fmt.Sprintf("%s, and no shared memory, since %s", l.Transport, l.Why)
	}
	return l.Transport
}

func (c *Comm) checkExplain(collective schedule.Collective, bytes int64, dtype tensor.DType) error {
	size := int64(c.Size())
	switch {
	case !collective.Valid():
		return fmt.Errorf("unknown collective %d", collective)
	case collective == schedule.Barrier:
		return errors.New("a barrier has no bytes")
	case collective == schedule.Custom:
		return errCustom
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
	// a reduce-scatter pads
	if n := bytes / int64(dtype.Size()); n%size != 0 && contract.PerRank() && !contract.Combines {
		return fmt.Errorf("%d elements do not divide into %d equal parts, one for each rank", n, size)
	}
	a := newAsk(collective, 0, 0)
	if err := a.operator.Accepts(dtype); contract.Combines && err != nil {
		return nil // of another operator, which is not known
	}
	return c.checkEngine(&a, dtype, int(bytes/int64(dtype.Size())), &pack.Parts{})
}
