package gcl

import (
	"context"
	"errors"
	"sync/atomic"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// Comm is one replica's handle on one group of replicas, with one set of options. It is immutable: Group and With
// return another that shares the connection. Collectives on all Comms of one connection run one after the other, in
// program order; Dup opens another connection. A Comm may be used by several goroutines, but replicas must make their
// calls in the same order, and goroutines that race for a connection have no order.
type Comm struct {
	lane    *connection
	group   *membership
	label   *flight.Label // what the flight recorder knows of name and group
	options Options
	strided bool          // the group was given with a stride above 1
	digest  uint64        // of options and ring orders, for the fingerprint
	way     carry.Way     // how calls are carried out
	agreed  uint64        // the options that members must have alike, summed up
	hybrid  *carry.Hybrid // how collectives go in phases, or nil if they do not
	started *started      // the function given to Start that this is the Comm of, or nil
}

// New makes a Comm for one replica from its end of a transport. Group and options are the defaults. The Comm owns the
// endpoint: Close closes it. Within one process Run is simpler.
func New(endpoint transport.Endpoint, opts ...RunOption) (*Comm, error) {
	if endpoint == nil {
		return nil, newError("nil endpoint")
	}
	cfg, err := newConfig(endpoint.Size(), opts)
	if err != nil {
		return nil, err
	}
	if cfg.endpoints != nil {
		return nil, newError("New takes its endpoint as an argument, not by WithEndpoints")
	}
	return newComm(endpoint, cfg)
}

func newComm(endpoint transport.Endpoint, cfg *config) (*Comm, error) {
	all := cfg.flights
	if all == nil {
		all = flight.Shared(endpoint, describeData)
	}
	c := &Comm{lane: newConnection(endpoint, cfg.topology, nil, all)}
	c.lane.override = cfg.override
	if cfg.machine {
		c.lane.ipusPerReplica = cfg.topology.IPUsPerReplica()
	}
	c, err := c.inGroup(commgroup.Group{})
	if err != nil {
		return nil, err
	}
	return c.With(cfg.options)
}

// newConnection makes a connection, a Dup of another unless that is nil. Its flight recorder is one of all; nil: it has
// none.
func newConnection(endpoint transport.Endpoint, t topology.Topology, from *connection,
	all *flight.Recorders) *connection {
	l := &connection{
		topology: t,
		groups:   map[groupKey]*membership{}, counts: map[groupKey]*atomic.Uint64{}, flights: all,
	}
	if from != nil {
		from.dups++
		l.first, l.number = from.root(), wire.FNV(wire.FNVOffset, int(from.number), int(from.dups))
		l.first.mu.Lock()
		l.first.others = append(l.first.others, l)
		l.first.mu.Unlock()
	}
	l.Carrier = carry.NewCarrier(endpoint, all.Open(endpoint.Rank(), l.number))
	return l
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
	if c == nil || c.lane == nil {
		return 0
	}
	return c.lane.Endpoint.Rank()
}

// Replicas is the number of replicas, in the group or not.
func (c *Comm) Replicas() int {
	if c == nil || c.lane == nil {
		return 0
	}
	return c.lane.Endpoint.Size()
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

// Group returns a Comm for the group that the replica belongs to when all replicas (not just those of c) are divided as
// g says. It sends nothing. The error names what does not fit.
func (c *Comm) Group(g commgroup.Group) (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.inGroup(g)
}

// inGroup is Group for a Comm that need not have a group yet.
func (c *Comm) inGroup(g commgroup.Group) (*Comm, error) {
	layout, err := g.Resolve(c.Replicas())
	if err != nil {
		return nil, err
	}
	out := *c
	out.strided = g.Stride > 1
	return out.settle(layout)
}

// settle puts a Comm that is being made into its group, and makes what follows from group and options.
func (c *Comm) settle(layout commgroup.Layout) (_ *Comm, err error) {
	defer func() { c.lane.blame(err) }()
	g, err := c.lane.groupOf(layout, c.options.Topology)
	if err != nil {
		return nil, err
	}
	c.setGroup(g)
	if err := c.checkLink(); err != nil {
		return nil, err
	}
	c.resolve()
	if c.options.Implementation == Hybrid {
		if c.group.Split == nil {
			return nil, &OptionError{Option: "Implementation", Value: Hybrid.String(), Reason: c.group.uneven}
		}
		if c.way.Setting.Hybrid() {
			c.way.Hybrid = c.way.NewHybrid()
		}
	}
	c.digest = c.fingerprint()
	return c, nil
}

// With returns a Comm with other options, but for what the environment overrides: see ParseOptions. It sends nothing. A
// value that is out of range, or does not go with the group, is an *OptionError.
func (c *Comm) With(o Options) (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o, err := o.override(c.lane.override)
	if err != nil {
		return nil, err
	}
	out := *c
	out.options = o
	return out.settle(c.group.layout)
}

// resolve sets what calls look up that follows from the options, the topology and the machine.
func (c *Comm) resolve() {
	c.resolveWay()
	c.agreed = wire.Seed
	for i := range optionRows {
		if agreed := optionRows[i].agreed; agreed != nil {
			c.agreed = wire.Mix(c.agreed, uint64(agreed(&c.options, c.way.Tile)))
		}
	}
}

// fingerprint sums up what must be equal on all members and has no field of its own in a transport.Call.
func (c *Comm) fingerprint() uint64 { return wire.Mix(c.group.Digest, c.agreed) }

// groupOf returns the replica's group in a layout: always the same one for the same members and ring. Groups of the
// same members count their calls together.
func (l *connection) groupOf(layout commgroup.Layout, ring topology.RingName) (*membership, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := groupKey{layout.Size(), layout.Stride(), ring}
	if g := l.groups[key]; g != nil {
		return g, nil
	}
	replica := l.Endpoint.Rank()
	members := layout.Members(layout.GroupOf(replica))
	rings, err := l.topology.Rings(ring, members)
	if err != nil {
		return nil, &OptionError{Option: "Topology", Value: ring.String(), Reason: err.Error()}
	}
	g := &membership{Group: carry.NewGroup(members, layout.RankOf(replica), rings), layout: layout}
	if g.uneven, err = g.Divide(l.topology, ring); err != nil {
		return nil, err
	}
	every := groupKey{size: key.size, stride: key.stride}
	if l.counts[every] == nil {
		l.counts[every] = new(atomic.Uint64)
	}
	g.seq = l.counts[every]
	l.groups[key] = g
	return g, nil
}

// groupOfAll makes a group of members by rank, of which this endpoint's has the given one, with the ring that fits.
// They lie in one link domain.
func (l *connection) groupOfAll(members []int, rank int) (*membership, error) {
	rings, err := l.topology.Rings(topology.Auto, members)
	if err != nil {
		return nil, err
	}
	g := &membership{Group: carry.NewGroup(members, rank, rings), seq: new(atomic.Uint64)}
	g.Split = &carry.Split{Domains: 1, Each: len(members), Place: rank}
	return g, nil
}

// Dup opens an independent connection between all replicas, each of which must call it, and returns a Comm on it with
// c's group and options. It does not wait for the others. What runs on one connection does not wait for the other. An
// error on either aborts both.
//
// That replicas which disagree get an error, and never wait for ever, is a promise for each connection by itself. A
// replica that is late on one connection because it waits on another is not in disagreement: one of its goroutines may
// still make the call. So replicas that use two connections in opposite orders, each on one goroutine, wait until a
// context ends; then the error says who is where on every connection. Comm.Dump says it at any time.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) {
	switch {
	case c.check() != nil || ctx == nil:
		return nil, newError("Dup needs a Comm and a context")
	case c.started != nil:
		return nil, newError("Dup inside a function given to Start")
	}
	if err := c.enter(ctx, nil); err != nil {
		return nil, &callError{what: "dup" + wire.Quote(c.label.Name), replica: c.Replica(), err: err, at: c.place(0)}
	}
	defer c.leave()
	endpoint, err := c.lane.Endpoint.Dup(ctx)
	if err != nil {
		return nil, c.otherFailure(ctx, "dup", err)
	}
	out := *c
	out.lane = newConnection(endpoint, c.lane.topology, c.lane, c.lane.flights)
	out.lane.ipusPerReplica, out.lane.override = c.lane.ipusPerReplica, c.lane.override
	return out.settle(c.group.layout)
}

// setGroup sets the group of a Comm that is being made.
func (c *Comm) setGroup(g *membership) {
	name := ""
	if c.label != nil {
		name = c.label.Name
	}
	c.group, c.label = g, &flight.Label{Name: name, Members: g.Members, Rank: g.Rank, Group: g.ID}
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
	out.label = &l
	return &out
}

// Name returns the name given by Named, or "".
func (c *Comm) Name() string {
	if c == nil || c.label == nil {
		return ""
	}
	return c.label.Name
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
	c.lane.Endpoint.Abort(cause)
}

// Close leaves the communicator, on all Comms that share the connection; closing the first connection closes its Dups
// and forgets what Alloc gave out. Functions given to Start are waited for, so none may call it. Peers that wait for
// this replica get a *PeerError, or ErrMismatch if they are in another call than its last in the group; what was
// complete stays good. Comms made by Run are closed by it. It is closed even if there is an error: ErrMismatch when
// replicas disagree, which has ended the communicator and of which no call of this replica has told; a *PeerError when
// one has left without a call that did not wait for it, of a collective with a root (see Broadcast).
//
// So that it can know, Close of the first connection waits, for a second at most, for members that have not come to the
// last call of a collective with a root in a group. What they find later is their error alone. Close of a Dup waits for
// nobody, and tells what is known by then.
func (c *Comm) Close() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.started != nil {
		return newError("Close inside a function given to Start")
	}
	c.lane.works.Wait()
	c.lane.allocs.close()
	c.lane.closeIPUs()
	c.lane.Flight.Close()
	err := c.lane.Endpoint.Close()
	if err == nil {
		err = c.lane.unheard()
	}
	c.lane.part()
	if err != nil {
		return c.otherFailure(context.Background(), "close", err)
	}
	return nil
}
