package gcl

import (
	"context"
	"errors"

	"gogcl.dev/commgroup"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// Comm is one replica's handle on one group of replicas, with one set of options. It is immutable: Group and With return another that
// shares the connection. Collectives on all Comms of one connection run one after the other, in program order; Dup opens
// another connection. A Comm may be used by several goroutines, but replicas must make their calls in the same order,
// and goroutines that race for a connection make none.
type Comm struct {
	lane    *lane
	group   *group
	options Options
	strided bool     // the group was given with a stride above 1
	digest  uint64   // of options and ring orders, for the fingerprint
	started *started // the function given to Start that this is the Comm of, or nil
}

// New makes a Comm for one replica from its end of a transport. Group and options are the defaults. The Comm owns the endpoint: Close closes it.
// Within one process Run is simpler.
func New(endpoint transport.Endpoint, opts ...RunOption) (*Comm, error) {
	if endpoint == nil {
		return nil, errors.New("gcl: nil endpoint")
	}
	cfg, err := newConfig(endpoint.Size(), opts)
	if err != nil {
		return nil, err
	}
	if cfg.endpoints != nil {
		return nil, errors.New("gcl: New takes its endpoint as an argument, not by WithEndpoints")
	}
	return newComm(endpoint, cfg)
}

func newComm(endpoint transport.Endpoint, cfg *config) (*Comm, error) {
	c := &Comm{lane: newLane(endpoint, cfg.topology, nil)}
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

func newLane(endpoint transport.Endpoint, t topology.Topology, first *lane) *lane {
	l := &lane{endpoint: endpoint, topology: t, first: first, groups: map[groupKey]*group{}}
	l.memory, _ = endpoint.(transport.PeerMemory)
	l.shared.memory = l.memory
	return l
}

// check returns an error for a Comm that was not made by this package.
func (c *Comm) check() error {
	if c == nil || c.group == nil {
		return errors.New("gcl: nil Comm")
	}
	return nil
}

// Rank is the replica's place in the group, 0 <= Rank < Size.
func (c *Comm) Rank() int { return c.group.rank }

// Size is the number of replicas in the group.
func (c *Comm) Size() int { return len(c.group.members) }

// Replica is the replica's number among all, 0 <= Replica < Replicas.
func (c *Comm) Replica() int { return c.lane.endpoint.Rank() }

// Replicas is the number of replicas, in the group or not.
func (c *Comm) Replicas() int { return c.lane.endpoint.Size() }

// Members returns the replicas of the group by rank, in a slice of the caller's own.
func (c *Comm) Members() []int { return append([]int(nil), c.group.members...) }

// Options returns the options that the Comm was made with, as the environment has changed them.
func (c *Comm) Options() Options { return c.options }

// Group returns a Comm for the group that the replica belongs to when all replicas (not just those of c) are divided as g says. It sends nothing. The
// error names what does not fit.
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
	members, err := c.lane.groupOf(layout)
	if err != nil {
		return nil, err
	}
	out := *c
	out.group = members
	out.strided = g.Stride > 1
	out.digest = out.fingerprint()
	return &out, nil
}

// With returns a Comm with other options, and what the environment overrides: see ParseOptions. It sends nothing. A value
// that is out of range is an *OptionError.
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
	out.digest = out.fingerprint()
	return &out, nil
}

// fingerprint sums up what must be equal on all members and has no field of its own in a transport.Call.
func (c *Comm) fingerprint() uint64 {
	reproducible := 0
	if c.options.Reproducible {
		reproducible = 1
	}
	return fnv(c.group.digest, reproducible, int(c.options.Implementation))
}

// groupOf returns the replica's group in a layout: always the same one for the same members, since it counts their calls.
func (l *lane) groupOf(layout commgroup.Layout) (*group, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := groupKey{layout.Size(), layout.Stride()}
	if g := l.groups[key]; g != nil {
		return g, nil
	}
	replica := l.endpoint.Rank()
	g, err := l.newGroup(layout.Members(layout.GroupOf(replica)), layout.RankOf(replica))
	if err != nil {
		return nil, err
	}
	l.groups[key] = g
	return g, nil
}

// newGroup makes a group of members by rank, of which this endpoint's has the given one.
func (l *lane) newGroup(members []int, rank int) (*group, error) {
	rings, err := l.topology.Rings(topology.Auto, members)
	if err != nil {
		return nil, err
	}
	return &group{
		members: members,
		rank:    rank,
		rings:   rings,
		id:      fnv(fnvOffset, members...),
		digest:  fnv(fnv(fnvOffset, rings.First...), rings.Second...),
		plans:   map[planKey]*plan{},
		stepped: map[planKey]*stepped{},
	}, nil
}

// Barrier returns when every member of the group has called it.
func (c *Comm) Barrier(ctx context.Context) error {
	return c.do(ctx, call{collective: schedule.AllReduce, barrier: true, dtype: tensor.U8})
}

// Dup opens an independent connection between all replicas, each of which must call it, and returns a Comm on it with c's group and options.
// What runs on one connection does not wait for the other. An error on either aborts both.
func (c *Comm) Dup(ctx context.Context) (*Comm, error) {
	switch {
	case c.check() != nil || ctx == nil:
		return nil, errors.New("gcl: Dup needs a Comm and a context")
	case c.started != nil:
		return nil, errors.New("gcl: Dup inside a function given to Start")
	}
	if err := c.enter(ctx); err != nil {
		return nil, &callError{what: "dup", replica: c.Replica(), err: err}
	}
	defer c.leave()
	endpoint, err := c.lane.endpoint.Dup(ctx)
	if err != nil {
		return nil, newCallError(ctx, "dup", c.Replica(), err)
	}
	out := *c
	out.lane = newLane(endpoint, c.lane.topology, c.lane.root())
	out.lane.ipusPerReplica, out.lane.override = c.lane.ipusPerReplica, c.lane.override
	return out.regroup(c.group)
}

// regroup puts a Comm with a fresh lane into the group of the same members.
func (c *Comm) regroup(old *group) (*Comm, error) {
	stride := 1
	if len(old.members) > 1 {
		stride = old.members[1] - old.members[0]
	}
	layout, err := commgroup.Group{Type: commgroup.Consecutive, Size: len(old.members), Stride: stride}.Resolve(c.Replicas())
	if err != nil {
		return nil, err
	}
	if c.group, err = c.lane.groupOf(layout); err != nil {
		return nil, err
	}
	return c, nil
}

// Abort makes every collective on every replica, now and later, fail with ErrAborted and the cause. The first abort wins.
func (c *Comm) Abort(cause error) {
	if c.check() != nil {
		return
	}
	if cause == nil {
		cause = errors.New("no cause given")
	}
	c.lane.endpoint.Abort(cause)
}

// Close leaves the communicator, on all Comms that share the connection; closing the first connection closes its Dups and forgets what Alloc gave out. Functions given to Start are
// waited for, so none may call it. Peers that wait for this replica get a *PeerError; what was complete stays good. Comms made by Run are closed by it.
func (c *Comm) Close() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.started != nil {
		return errors.New("gcl: Close inside a function given to Start")
	}
	c.lane.works.Wait()
	c.lane.allocs.close()
	c.lane.closeIPUs()
	return c.lane.endpoint.Close()
}
