package gcl

import (
	"sync"
	"sync/atomic"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/carry/phases"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// Group returns a Comm for the group that the replica belongs to when all replicas (not just those of c) are divided as
// g says. It sends nothing. The error names what does not fit.
//
// All replicas give the same g. Where two replicas disagree, and one of them takes the other for a member of its group,
// a collective in that group fails with ErrMismatch, and the error names both groups. That holds for lists that differ
// only in other groups too. Replicas that no group holds together are never compared: each of their groups works, as
// when two halves of a job are divided in two ways. A member that has left the job, since it had nothing to do with the
// others, is an error that says so, and not ErrMismatch. Split makes lists on which all replicas agree.
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
	defer func() { c.conn.blame(err) }()
	g, err := c.conn.groupOf(layout, c.options.Topology)
	if err != nil {
		return nil, err
	}
	c.setGroup(g)
	c.caller = carry.Caller{} // that of the Comm it was made of
	if err := c.checkLink(); err != nil {
		return nil, err
	}
	if err := c.checkNative(); err != nil {
		return nil, err
	}
	if err := c.checkOwn(); err != nil {
		return nil, err
	}
	c.resolve()
	if c.options.Implementation == Hybrid {
		if c.group.Split == nil {
			return nil, &OptionError{Option: "Implementation", Value: Hybrid.String(), Reason: c.group.uneven}
		}
		if c.caller.Setting.Hybrid() {
			h := c.caller.NewHybrid()
			h.Choose = func(collective schedule.Collective, bytes int64) phases.Way {
				return c.pricer(collective, bytes, tensor.U8).Way(h)
			}
			c.caller.Hybrid = h
		}
	}
	if c.compares = nil; c.options.CheckEqual > 0 && c.Size() > 1 {
		c.compares = c.caller.Plain()
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
	o, err := c.conn.override.on(o)
	if err != nil {
		return nil, err
	}
	out := *c
	out.options = o
	return out.settle(c.group.layout)
}

// resolve sets what calls look up that follows from the options, the topology and the machine.
func (c *Comm) resolve() {
	c.resolveCaller()
	c.checks = c.options.CheckFinite || c.options.CheckEqual > 0
	c.agreed = wire.Seed
	for i := range optionRows {
		if agreed := optionRows[i].agreed; agreed != nil {
			c.agreed = wire.Mix(c.agreed, agreed(&c.options, c.caller.Segment))
		}
	}
	if p := c.conn.prices; p != nil {
		c.agreed = wire.Mix(c.agreed, p.Digest())
	}
}

// fingerprint sums up what must be equal on all members and has no field of its own in a transport.Call.
func (c *Comm) fingerprint() uint64 { return wire.Mix(c.group.Digest, c.agreed) }

// groupOf returns the replica's group in a layout: always the same one for the same members and ring. Groups of the
// same members count their calls together.
func (l *connection) groupOf(layout commgroup.Layout, ring topology.RingName) (*membership, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := groupKey{layout, ring}
	if g := l.groups[key]; g != nil {
		return g, nil
	}
	replica := l.Endpoint.Rank()
	members := layout.Members(layout.GroupOf(replica))
	rings, err := l.topology.Rings(ring, members)
	if err != nil {
		return nil, &OptionError{Option: "Topology", Value: ring.String(), Reason: err.Error()}
	}
	g := &membership{Group: carry.NewGroup(members, layout.RankOf(replica), rings, partitionOf(layout)), layout: layout,
		link: linkAmong(l.Endpoint, members)}
	if layout.Stride() == 0 {
		g.lists = layout.Group().String()
	}
	if g.uneven, err = g.Divide(l.topology, ring); err != nil {
		return nil, err
	}
	if l.counts[g.ID] == nil {
		l.counts[g.ID] = new(tally)
	}
	g.made = l.counts[g.ID]
	l.groups[key] = g
	return g, nil
}

// partitionOf is the hash of a layout by lists, and 0 for one that a size and a stride say.
func partitionOf(layout commgroup.Layout) uint64 {
	if layout.Stride() > 0 {
		return 0
	}
	hash := uint64(wire.FNVOffset)
	for r := range layout.Replicas() {
		hash = wire.FNV(hash, layout.GroupOf(r))
	}
	return max(hash, 1)
}

// groupOfAll makes a group of members by rank, of which this endpoint's has the given one, with the ring that fits.
// They lie in one link domain.
func (l *connection) groupOfAll(members []int, rank int) (*membership, error) {
	rings, err := l.topology.Rings(topology.Auto, members)
	if err != nil {
		return nil, err
	}
	g := &membership{Group: carry.NewGroup(members, rank, rings, 0), link: linkAmong(l.Endpoint, members),
		made: new(tally)}
	g.Split = &carry.Split{Grid: phases.Grid{Domains: 1, Each: len(members), Place: rank}}
	return g, nil
}

// setGroup sets the group of a Comm that is being made.
func (c *Comm) setGroup(g *membership) {
	name := ""
	if c.label != nil {
		name = c.label.Name
	}
	c.group, c.label = g, &flight.Label{Name: name, Members: g.Members, Rank: g.Rank, Group: g.ID, Lists: g.lists}
	c.pairs = new(pairs)
}

// groupKey tells groups of one replica apart.
type groupKey struct {
	layout commgroup.Layout
	ring   topology.RingName
}

// membership is a group as the connection counts its calls.
type membership struct {
	*carry.Group
	layout commgroup.Layout
	link   transport.Link // see linkAmong
	uneven string         // why the group has no split, if it has none
	lists  string         // the layout's text form, if no size and stride say it
	made   *tally
}

// tally counts what a replica has made in a group of the same members, whatever the ring. They are taken in turn, but
// by a refused call that has no turn.
type tally struct {
	calls atomic.Uint64
	alike uint64 // calls with CheckEqual whose results are equal; used by whoever has the connection's turn

	once           sync.Once
	sent, received []atomic.Uint64 // messages to and from each rank; made by once
}
