package gcl

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/internal/cheapest"
	"gogcl.dev/methods/cost"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// CommOption configures the Comm that New or Join makes, or those that Run makes.
type CommOption func(*config)

type config struct {
	options   Options
	override  overrides // of options, by the environment
	own       []ownMethod
	ownErr    error // of the first WithMethod that is wrong
	topology  topology.Topology
	machine   bool             // topology was given
	network   *cost.Model      // of WithNetwork; nil: it was not given
	prices    *cheapest.Prices // of methods on the network, given by either; nil: it is not known
	endpoints []transport.Endpoint
	flights   *flight.Recorders // Run: of its replicas
	job, run  string            // Join: see watch.Process
	stall     time.Duration     // see WithStallAfter
	noQuit    bool              // see WithDumpOnQuit
	process   bool              // Join: the process answers those that ask for its state
	elastic   *Elastic          // nil: WithElastic was not given
}

// WithOptions sets the options that the replicas' first Comm has, but for what the environment overrides: see
// ParseOptions.
func WithOptions(o Options) CommOption { return func(c *config) { c.options = o } }

// WithTopology says where the replicas sit, which decides on ring orders. The default is a link domain for each host of
// the transport, or one where it does not tell (see [transport.Linked]), in which every pair is linked. Links are as
// slow as the slowest within a host, and as the slowest between hosts.
//
// The topology's links are a network as of [WithNetwork], unless that gives another. On them messages take no time of a
// processor, so that methods of many messages look cheap: where processors matter, give WithNetwork a model with an
// Overhead.
func WithTopology(t topology.Topology) CommOption {
	return func(c *config) { c.topology, c.machine = t, true }
}

// WithNetwork says what connects the replicas: links, the ways of messages over them, and what a message takes of a
// processor. From then on auto goes by price: a call by messages whose method the options leave open takes the method
// that is cheapest on this network, as package methods/cost prices it, of the constants and methods.Gallery. Rules of
// Options.Tuning and a limit of Options.MaxBroadcastSize go before it, and it goes before the library's own tables.
// Explain cites the price. Calls that go over memory which the replicas share go as without a network, and so do the
// phases of Hybrid, but that the price decides who crosses between hosts.
//
// A price is one for sizes around a power of two, and made when a call first asks for it, which among thousands of
// replicas takes seconds: see docs/design/auto.md. Meanwhile the call does not look at its context: a deadline that
// passes is noticed afterwards.
//
// An endpoint that has a method Model() cost.Model, as those of transport/sim have, gives the network itself.
//
// All replicas give the same network, of as many replicas as there are, numbered alike. Join refuses networks that
// differ, and so does every call, as an ErrMismatch. Ring orders are those of the topology: see [WithTopology].
func WithNetwork(m cost.Model) CommOption { return func(c *config) { c.network = &m } }

// WithEndpoints makes Run use these endpoints, by rank, instead of replicas as goroutines on transport/inproc. Run
// closes them, unless it refuses its arguments. nil is as without the option. New, which is given its endpoint, and
// Join, which makes it, refuse the option, and so do RunProcess, and RunOrJoin in a job.
func WithEndpoints(endpoints []transport.Endpoint) CommOption {
	return func(c *config) { c.endpoints = endpoints }
}

// stallAfter is the default of WithStallAfter.
const stallAfter = 30 * time.Second

// WithStallAfter says after how long a collective that waits is logged by package slog, as a warning: once, and again
// each time that it has waited twice as long. The line has the call, the replicas of this process that are in it, who
// has not come, and in which call each of those is, in other processes too. The default is 30 s; 0 or less logs none.
// Of communicators that share their transport's memory, the first one made decides for all.
func WithStallAfter(d time.Duration) CommOption { return func(c *config) { c.stall = d } }

// noEndpoints refuses WithEndpoints.
func (c *config) noEndpoints(why string) error {
	if c.endpoints != nil {
		return errorf("WithEndpoints is an option of Run alone: %s", why)
	}
	return nil
}

// newConfig resolves options for n replicas. The topology may be missing: see place.
func newConfig(n int, opts []CommOption) (*config, error) {
	c := &config{stall: stallAfter}
	if err := c.take(opts); err != nil {
		return nil, err
	}
	var err error
	if c.override, err = environmentOptions(); err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, errorf("%d replicas, want 1 or more", n)
	}
	if e := c.elastic; e != nil && e.Replace {
		c.elastic = &Elastic{Min: e.Min, Max: n}
	}
	switch e := c.elastic; {
	case e != nil && e.Min > n:
		return nil, errorf("WithElastic: Min is %d, want %d at most, which is the number of replicas", e.Min, n)
	case e != nil && e.Max != 0 && e.Max < n:
		return nil, errorf("WithElastic: Max is %d, want %d or more, which is the number of replicas, or 0: no newcomers",
			e.Max, n)
	}
	if err := c.fit(n); err != nil {
		return nil, err
	}
	return c, nil
}

// take takes options, and looks at what does not hang on the number of replicas.
func (c *config) take(opts []CommOption) error {
	for i, o := range opts {
		if o == nil {
			return errorf("option %d is nil", i)
		}
		o(c)
	}
	if c.ownErr != nil {
		return c.ownErr
	}
	if err := c.options.check(); err != nil {
		return err
	}
	if c.elastic != nil && c.elastic.Min < 1 {
		return errorf("WithElastic: Min is %d, want 1 or more", c.elastic.Min)
	}
	if c.elastic != nil && c.elastic.Replace && c.elastic.Max != 0 {
		return errorf("WithElastic: Max is %d and Replace is set, want one of them", c.elastic.Max)
	}
	if c.elastic != nil && c.elastic.Max != 0 && c.elastic.Max < c.elastic.Min {
		return errorf("WithElastic: Max is %d and Min %d, want Max not below Min, or 0: no newcomers", c.elastic.Max,
			c.elastic.Min)
	}
	return nil
}

// fit has topology and network be of n replicas, and prices the methods on them.
func (c *config) fit(n int) error {
	if have := c.topology.Replicas(); c.machine && have != n {
		return errorf("a topology of %d replicas for %d", have, n)
	}
	switch {
	case c.network != nil:
		if err := c.network.Check(); err != nil {
			return errorf("WithNetwork: %w", err)
		}
		if have := c.network.Network.Replicas(); have != n {
			return errorf("WithNetwork: a network of %d replicas for %d", have, n)
		}
		c.prices = cheapest.New(*c.network)
	case c.machine:
		c.prices = cheapest.New(cost.Model{Network: cost.Machine(c.topology)})
	}
	return nil
}

// place says where the replicas of a transport sit, and what connects them, if no option did.
func (c *config) place(e transport.Endpoint) (err error) {
	if m, ok := e.(modelled); ok && c.prices == nil {
		c.prices = pricesOf(e, m)
	} else if c.prices != nil {
		c.prices = sharedPrices(e, c.prices)
	}
	if !c.machine {
		c.topology, err = byHost(e)
	}
	return err
}

// modelled is an endpoint that knows the network between the replicas. All endpoints of its transport know the same.
type modelled interface{ Model() cost.Model }

// pricesOf are those of the endpoint's network, which the replicas of a process share if the transport has them find
// each other.
func pricesOf(e transport.Endpoint, m modelled) *cheapest.Prices {
	made := sync.OnceValue(func() *cheapest.Prices { return cheapest.New(m.Model()) })
	if s, ok := e.(transport.Shared); ok {
		type key struct{}
		kept, _ := s.Shared().LoadOrStore(key{}, made)
		made = kept.(func() *cheapest.Prices)
	}
	return made()
}

// sharedPrices are the first ones with this digest that a replica of the process has been given, if the transport has
// the replicas find each other: so a choice is made once for all.
func sharedPrices(e transport.Endpoint, p *cheapest.Prices) *cheapest.Prices {
	s, ok := e.(transport.Shared)
	if !ok {
		return p
	}
	type key struct{ digest uint64 }
	kept, _ := s.Shared().LoadOrStore(key{p.Digest()}, p)
	return kept.(*cheapest.Prices)
}

// Run calls body on n replicas, each a goroutine with its own Comm of all n, and returns when all have returned.
// Without [WithEndpoints] n is 8,192 at most.
//
// The first error that a body returns aborts the communicator: collectives of the others fail with ErrAborted, and
// their context is cancelled. Run returns that error, with the replica where it began; nil if every body returned nil.
// A panic becomes a *PanicError and aborts the others in the same way, and so does runtime.Goexit. A body that returns
// while others wait for it in a collective gives them a *PeerError. Functions given to Start are waited for, and the
// Comms are closed. With [WithElastic] the others go on, and their bodies run anew.
//
// Every process that calls Run has a job of its own. In one of several processes of a launcher the first Run of several
// replicas logs that by package slog: [RunOrJoin] makes one job of them.
func Run(ctx context.Context, n int, body func(context.Context, *Comm) error, opts ...CommOption) error {
	if ctx == nil || body == nil {
		return newError("Run needs a context and a body")
	}
	cfg, err := newConfig(n, opts)
	if err != nil {
		return err
	}
	if n > 1 {
		aloneOnce.Do(func() { sayAlone(n, os.LookupEnv) })
	}
	comms, err := cfg.open(n)
	if err != nil {
		return err
	}
	return runReplicas(ctx, comms, body)
}

// runReplicas calls body on the replicas of this process and closes them.
func runReplicas(ctx context.Context, comms []*Comm, body func(context.Context, *Comm) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	first := firstError{cancel: cancel, replicas: len(comms), elastic: comms[0].conn.made.elastic}
	away := newAway(ctx, comms)
	defer away.stop()
	var replicas sync.WaitGroup
	for _, c := range comms {
		replicas.Go(func() {
			defer away.returned(c)
			ctx := c.labelBody(ctx)
			c.conn.flights.Body(c.Replica())
			guard(c, func() error { return c.runs(ctx, body) }, func(err error) {
				c := c.latest()
				first.note(c, err, true)
				first.note(c, c.Close(), err == nil)
			})
		})
	}
	replicas.Wait()
	return first.result()
}

// open makes the Comms of all replicas.
func (cfg *config) open(n int) ([]*Comm, error) {
	endpoints := cfg.endpoints
	if endpoints == nil {
		var err error
		if endpoints, err = inproc.New(n); err != nil {
			return nil, err
		}
	}
	if len(endpoints) != n {
		return nil, errorf("%d endpoints for %d replicas", len(endpoints), n)
	}
	comms := make([]*Comm, n)
	cfg.flights = flight.New(describeData)
	for i, e := range endpoints {
		if e == nil || e.Rank() != i || e.Size() != n {
			return nil, errorf("endpoint %d does not have rank %d of %d", i, i, n)
		}
		if i == 0 {
			if err := cfg.place(e); err != nil {
				return nil, err
			}
		}
		var err error
		if comms[i], err = newComm(e, cfg); err != nil {
			for _, c := range comms[:i] {
				c.conn.Flight.Close()
			}
			return nil, err
		}
	}
	comms[0].beSeen()
	return comms, nil
}

// firstError keeps the error with which it began, and aborts the communicator on it.
type firstError struct {
	cancel   context.CancelCauseFunc
	replicas int      // of this process
	elastic  *Elastic // of WithElastic, or nil

	mu      sync.Mutex // guards what follows
	err     error
	aborted bool // err says that another replica failed, whose own error is better
	failed  int  // replicas
}

// note takes the error of one replica, and whether it is the replica's first.
func (f *firstError) note(c *Comm, err error, first bool) {
	if err == nil {
		return
	}
	if !isCrash(err) {
		err = &replicaError{replica: c.Replica(), err: err, at: c.place(0)}
	}
	c.Abort(err)
	if left := f.keep(err, first); left > 0 && first {
		slog.Warn("gcl: a replica has failed, and the others may go on without it", "replica", c.Replica(), "left", left,
			"error", err)
	}
}

// keep keeps an error. It returns how many replicas are left, or 0 if they are too few, whose context it cancels.
func (f *firstError) keep(err error, first bool) (left int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	other := (*transport.AbortError)(nil)
	switch aborted := errors.As(err, &other); {
	case f.err == nil || f.aborted && !aborted:
		f.err, f.aborted = err, aborted
	case f.elastic != nil && !aborted:
		f.err = errors.Join(f.err, err)
	}
	if first {
		f.failed++
	}
	if f.enough() {
		return f.replicas - f.failed
	}
	f.cancel(f.err)
	return 0
}

// enough reports whether as many replicas are left as WithElastic wants. The caller holds f.mu.
func (f *firstError) enough() bool {
	return f.failed == 0 || f.elastic != nil && f.replicas-f.failed >= f.elastic.Min
}

// result is what Run returns when all bodies have returned.
func (f *firstError) result() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.enough() {
		return nil
	}
	return f.err
}
