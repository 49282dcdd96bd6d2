package gcl

import (
	"cmp"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/carry/phases"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/cheapest"
	"gogcl.dev/transport"
)

// resolveCaller sets how the Comm's calls are carried out, given its group and options.
func (c *Comm) resolveCaller() {
	o, before := &c.options, c.caller
	c.caller = carry.Caller{
		Carrier: &c.conn.Carrier, Group: c.group.Group, Reproducible: o.Reproducible, Stages: o.StageFragments,
		Cache: o.lastLevelCache(), Segment: c.segmentBytes(),
		Link: c.group.link, LatencyBytes: latencyBytes(c.group.link), Own: c.conn.prover(o.Method),
		Skips: (*strict)(c),
	}
	s := route.Setting{
		Method: o.Method, Implementation: route.Implementation(o.Implementation), Reproducible: o.Reproducible,
		Tuning: c.tuning(), Tuned: o.MaxBroadcastSize != 0, Ruled: o.Tuning != nil,
		Ranks: c.Size(), Strided: c.strided,
		Phased: phases.Collectives(),
	}
	_, s.Opened = c.conn.Endpoint.(transport.Opener)
	s.Memory, s.Small = c.caller.Reach(c.group.Members, c.caller.Segment)
	if split := c.group.Split; split != nil {
		s.Domains, s.Each = split.Domains, split.Each
	}
	s.Syncful, s.SyncfulWhy = s.Together()
	if c.conn.prices != nil && c.Size() > 1 {
		c.caller.Prices = c.priced
		s.Prices = c.priced(o.Reproducible, false)
	}
	c.caller.Setting = s
	c.caller.Settle(&before)
}

// priced are the choices by price for the Comm's group. All members have the same ones.
func (c *Comm) priced(inOrder, constants bool) *cheapest.Table {
	g := c.group
	return c.conn.prices.Of(cheapest.Group{
		ID: wire.Mix(g.ID, g.Digest), RankOrder: inOrder, Constants: constants,
		NoBroadcast: c.strided || c.options.MaxBroadcastSize != 0,
	}, g.Members, g.Rings.First, g.Rings.Second)
}

// segmentBytes is how long a segment of a message may be: what the IO tiles stage together. On peer memory,
// where nothing is staged, it bounds what is taken from a peer at a time, and what a member publishes. Calls look at
// Caller.Segment instead: the topology is 96 bytes, which this copies.
func (c *Comm) segmentBytes() int {
	return cmp.Or(c.options.MaxBytesPerTile, DefaultMaxBytesPerTile) * c.conn.topology.IOTiles()
}
