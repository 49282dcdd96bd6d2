package carry

import (
	"sync/atomic"

	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/recent"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// Group is a set of members as this replica sees it, on one connection.
type Group struct {
	Members []int // replica ids by rank
	Rank    int   // this replica's
	Rings   topology.Rings
	ID      uint64 // see wire.GroupID
	Digest  uint64 // of the ring orders, and of lists
	Split   *Split // nil if link domains do not hold equally many members

	Unconfirmed atomic.Uint64 // the last call that did not wait for all members, by its number: see Caller.unconfirmed

	// Used by whoever has the connection's turn.
	plans   recent.Map[rounds.Key, rounds.Executor]
	skipped recent.Map[rounds.Key, bool] // what a program's own method does not do
	given   recent.Map[*schedule.Schedule, *rounds.Given]
}

// maxPlans bounds the plans that a rank keeps for a group: a program has one for each collective, root and class of
// sizes that it uses. It saves the generator, and the arrangement of what it says.
const maxPlans = 2048

// NewGroup makes a group. partition is the hash of the lists that it was given by, or 0.
func NewGroup(members []int, rank int, rings topology.Rings, partition uint64) *Group {
	g := &Group{
		Members: members, Rank: rank, Rings: rings, ID: wire.GroupID(members, partition),
		Digest: wire.FNV(wire.FNV(wire.FNVOffset, rings.First...), rings.Second...),
	}
	g.plans.Most, g.skipped.Most, g.given.Most = maxPlans, maxPlans, maxGiven
	if partition != 0 {
		g.Digest = wire.Mix(g.Digest, partition)
	}
	return g
}
