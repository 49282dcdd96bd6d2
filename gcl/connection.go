package gcl

import (
	"slices"
	"sync"
	"sync/atomic"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/lane"
	"gogcl.dev/topology"
)

// connection is one replica's connection and all that belongs to it and not to one Comm: what calls are carried out
// with, whose turn it is, the groups and their counters. Everything but turns, mu and works is used only by whoever has
// the turn.
type connection struct {
	carry.Carrier
	topology topology.Topology
	turns    lane.Turns
	first    *connection    // that of the first connection; nil for itself
	number   uint64         // the same at all replicas: 0 is the first connection's
	dups     uint64         // made of this lane; used by whoever has the turn
	works    sync.WaitGroup // functions given to Start; for the first connection, those of its Dups too
	allocs   allocations    // what Alloc has given out; the first connection's, for its Dups too

	ipusPerReplica int               // 0: not known
	override       map[string]string // options as text, by the environment

	mu     sync.Mutex // guards what follows, up to the empty line
	groups map[groupKey]*membership
	counts map[groupKey]*atomic.Uint64 // membership.seq of the groups of the same members, whatever the ring
	ipus   map[int]*ipus               // this replica's own, by how many
	closed bool                        // closeIPUs has run: from then on, errors within the replica are ErrClosed
	others []*connection               // of the first connection: those of its Dups that are not closed

	withins atomic.Uint64 // collectives within the replica

	flights *flight.Recorders // the recorders of all lanes of the communicator in this process
	tracing tracing
	many    many
	alone   carry.Job // of the call in progress, if it is on one operand
}

// root is the lane of the first connection.
func (l *connection) root() *connection {
	if l.first != nil {
		return l.first
	}
	return l
}

// part is told that the lane is closed. The first connection forgets a Dup.
func (l *connection) part() {
	if l.first == nil {
		return
	}
	l.first.mu.Lock()
	defer l.first.mu.Unlock()
	l.first.others = slices.DeleteFunc(l.first.others, func(o *connection) bool { return o == l })
}

// groupKey tells groups of one replica apart: a group's size and stride fix its members.
type groupKey struct {
	size, stride int
	ring         topology.RingName
}

// membership is a group as the connection counts its calls.
type membership struct {
	*carry.Group
	layout commgroup.Layout
	uneven string         // why the group has no split, if it has none
	seq    *atomic.Uint64 // calls made; taken in turn, but by a refused call that has no turn
}
