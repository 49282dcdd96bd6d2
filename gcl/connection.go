package gcl

import (
	"slices"
	"sync"
	"sync/atomic"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/lane"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// connection is one replica's connection and all that belongs to it and not to one Comm: whose turn it is, the groups and
// their counters, the memory that collectives work in. Everything but turns, mu and works is used only by whoever has
// the turn.
type connection struct {
	endpoint transport.Endpoint
	memory   transport.PeerMemory // the endpoint, if it offers that; else nil
	boards   transport.Boards     // likewise
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
	groups map[groupKey]*group
	counts map[groupKey]*atomic.Uint64 // group.seq of the groups of the same members, whatever the ring
	ipus   map[int]*ipus               // this replica's own, by how many
	closed bool                        // closeIPUs has run: from then on, errors within the replica are ErrClosed
	others []*connection               // of the first connection: those of its Dups that are not closed

	withins atomic.Uint64 // collectives within the replica

	flight  *flight.Recorder
	flights *flight.Recorders // the recorders of all lanes of the communicator in this process
	tracing tracing

	shared  shared
	many    many
	alone   job    // of the call in progress, if it is on one operand
	phases  phases // of the call in progress
	runs    []run
	batch   []transport.Transfer
	bases   []uint32    // tags of the first segments of one fold's messages
	tags    [][2]uint32 // by replica: of the next transfer to it and from it, in the batch that is being made
	scratch []byte      // slots of schedules
	staged  [][]byte    // inputs that are staged
	staging []byte      // inputs and outputs in another form than the caller's
	between []byte      // what a phase of Hybrid leaves for the next
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

// group is a set of members as this replica sees it, on one lane.
type group struct {
	members []int // replica ids by rank
	rank    int   // this replica's
	rings   topology.Rings
	id      uint64 // see groupID
	digest  uint64 // of the ring orders
	layout  commgroup.Layout
	split   *split // nil if link domains do not hold equally many members
	uneven  string // then it says so

	// Used by whoever has the lane's turn.
	plans   map[planKey]*plan
	stepped map[planKey]*stepped

	seq    *atomic.Uint64 // calls made; taken in turn, but by a refused call that has no turn
	passed atomic.Uint64  // the last call with a root, which did not wait for all members, by its number: see lane.unheard
}

// newGroup makes a group without an id and without a count of calls.
func newGroup(members []int, rank int, rings topology.Rings) *group {
	return &group{
		members: members, rank: rank, rings: rings,
		digest:  wire.FNV(wire.FNV(wire.FNVOffset, rings.First...), rings.Second...),
		plans:   map[planKey]*plan{},
		stepped: map[planKey]*stepped{},
	}
}

// planKey is what decides on a plan, given the group.
type planKey struct {
	method     methods.Method
	collective schedule.Collective
	root       int
	pieces     int
	inPlace    bool
	rankOrder  bool
	barriers   bool
}
