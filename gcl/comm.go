package gcl

import (
	"context"
	"errors"
	"os"
	"sync/atomic"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/internal/watch"
	"gogcl.dev/transport"
)

// Comm is one replica's handle on one group of replicas, with one set of options. It is immutable: Group and With
// return another that shares the connection. Collectives on all Comms of one connection run one after the other, in
// program order; Dup opens another connection. A Comm may be used by several goroutines, but replicas must make their
// calls in the same order, and goroutines that race for a connection have no order.
type Comm struct {
	conn     *connection
	group    *membership
	label    *flight.Label // what the flight recorder knows of name and group
	pairs    *pairs        // labels of messages, of the same name and group
	options  Options
	strided  bool          // the group was given with a stride above 1
	digest   uint64        // of options and ring orders, for the fingerprint
	caller   carry.Caller  // how calls are carried out
	agreed   uint64        // the options that members must have alike, summed up
	checks   bool          // Options.CheckFinite or CheckEqual is set
	compares *carry.Caller // how the digests of Options.CheckEqual go; nil: they do not
	started  *started      // the function given to Start that this is the Comm of, or nil
}

// New makes a Comm for one replica from its end of a transport. Group and options are the defaults. The Comm owns the
// endpoint: Close closes it. Within one process Run is simpler.
func New(endpoint transport.Endpoint, opts ...CommOption) (*Comm, error) {
	if endpoint == nil {
		return nil, newError("nil endpoint")
	}
	cfg, err := newConfig(endpoint.Size(), opts)
	if err != nil {
		return nil, err
	}
	if err := cfg.noEndpoints("New is given its endpoint"); err != nil {
		return nil, err
	}
	if err := cfg.place(endpoint); err != nil {
		return nil, err
	}
	c, err := newComm(endpoint, cfg)
	if err == nil {
		c.beSeen()
	}
	return c, err
}

func newComm(endpoint transport.Endpoint, cfg *config) (_ *Comm, err error) {
	all := cfg.flights
	if all == nil {
		all = flight.Shared(endpoint, describeData)
	}
	if r, ok := endpoint.(transport.Reporter); ok && all != nil {
		r.ReportBy(all.Report)
		all.Hear(r)
	}
	all.Watch(cfg.stall, func(stalls []flight.Stall, heard []watch.Process) {
		for _, s := range stalls {
			logStall(s)
		}
		if dir := os.Getenv(varDumpDir); dir != "" {
			writeState(dir, all, heard)
		}
	})
	if cfg.noQuit {
		all.IgnoreQuit()
	}
	c := &Comm{conn: newConnection(endpoint, cfg.topology, nil, all)}
	own := c.conn.Flight
	defer func() {
		if err != nil {
			own.Close()
		}
	}()
	c.conn.override, c.conn.own, c.conn.prices = cfg.override, cfg.own, cfg.prices
	c.conn.made, c.conn.newest = cfg, new(atomic.Pointer[Comm])
	if cfg.machine {
		c.conn.ipusPerReplica = cfg.topology.IPUsPerReplica()
	}
	if c, err = c.inGroup(commgroup.Group{}); err != nil {
		return nil, err
	}
	return c.With(cfg.options)
}

// check returns an error for a Comm that was not made by this package.
func (c *Comm) check() error {
	if c == nil || c.group == nil {
		return newError("nil Comm")
	}
	return nil
}

// Rank is the replica's place in the group, 0 <= Rank < Size. Of a nil or zero Comm, which has no replicas, it is 0,
// and so are Size, Replica and Replicas.
func (c *Comm) Rank() int {
	if c == nil || c.group == nil {
		return 0
	}
	return c.group.Rank
}

// Size is the number of replicas in the group.
func (c *Comm) Size() int {
	if c == nil || c.group == nil {
		return 0
	}
	return len(c.group.Members)
}

// Replica is the replica's number among all, 0 <= Replica < Replicas.
func (c *Comm) Replica() int {
	if c == nil || c.conn == nil {
		return 0
	}
	return c.conn.Endpoint.Rank()
}

// Replicas is the number of replicas, in the group or not.
func (c *Comm) Replicas() int {
	if c == nil || c.conn == nil {
		return 0
	}
	return c.conn.Endpoint.Size()
}

// Members returns the replicas of the group by rank, in a slice of the caller's own.
func (c *Comm) Members() []int {
	if c == nil || c.group == nil {
		return nil
	}
	return append([]int(nil), c.group.Members...)
}

// Options returns the options that the Comm was made with, but for what the environment overrides: see ParseOptions.
func (c *Comm) Options() Options {
	if c == nil {
		return Options{}
	}
	return c.options
}

// Named returns a Comm with a name, as in "layer3/grads", which shows in errors, in traces and in what Dump prints.
// Nothing else is new: it is the same connection, and the calls of both count together. Replicas need not use the same
// names. Comms made from it have its name too; "" takes it off. It costs nothing in a call.
func (c *Comm) Named(name string) *Comm {
	if c.check() != nil {
		return c
	}
	out := *c
	l := *c.label
	l.Name = name
	out.label, out.pairs = &l, new(pairs)
	return &out
}

// Name returns the name given by Named, or "".
func (c *Comm) Name() string {
	if c == nil || c.label == nil {
		return ""
	}
	return c.label.Name
}

// Done returns a channel that is closed when the communicator has been aborted, by whatever replica: every collective,
// now and later, fails. Err says why. Of a nil or zero Comm the channel is nil.
func (c *Comm) Done() <-chan struct{} {
	if c.check() != nil {
		return nil
	}
	return c.conn.Endpoint.Done()
}

// Err returns why collectives of the Comm would fail, as far as this replica knows: an ErrAborted or a *PeerError, or
// ErrClosed after Close; else nil.
func (c *Comm) Err() error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.conn.Endpoint.Err(); err != nil {
		return c.otherFailure(context.Background(), "communicator", err)
	}
	return nil
}

// Abort makes every collective on every replica, now and later, fail with ErrAborted and the cause, which may be nil.
// The first abort wins.
func (c *Comm) Abort(cause error) {
	if c.check() != nil {
		return
	}
	if cause == nil {
		cause = errors.New("no cause given")
	}
	c.conn.Endpoint.Abort(cause)
}
