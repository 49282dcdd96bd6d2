package gcl

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/lane"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/cheapest"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// connection is one replica's connection and all that belongs to it and not to one Comm: what calls are carried out
// with, whose turn it is, the groups and their counters. Everything but turns, mu, works and spares is used only by
// whoever has the turn.
type connection struct {
	carry.Carrier
	topology topology.Topology
	prices   *cheapest.Prices // of methods on the network; nil: it is not known
	turns    lane.Turns
	first    *connection    // that of the first connection; nil for itself
	number   uint64         // the same at all replicas: 0 is the first connection's
	dups     uint64         // made of this connection; used by whoever has the turn
	works    sync.WaitGroup // functions given to Start; for the first connection, those of its Dups too
	allocs   allocations    // what Alloc has given out; the first connection's, for its Dups too

	body           context.Context // of the first connection: that of the body of Run or RunProcess; nil: there is none
	ipusPerReplica int             // 0: not known
	override       overrides       // of options, by the environment
	own            []ownMethod     // of WithMethod

	made   *config               // of the first connection: what the communicator was made with
	newest *atomic.Pointer[Comm] // of the first connection: the last that Rejoin made of it; its successors share it
	steps  steps                 // of the first connection: those of Commit
	change *Change               // that the first connection began with; nil: with none

	mu     sync.Mutex // guards what follows, up to the empty line
	groups map[groupKey]*membership
	counts map[uint64]*tally // membership.made by wire.GroupID: of the same group, whatever the ring
	ipus   map[int]*ipus     // this replica's own, by how many
	closed bool              // closeIPUs has run: from then on, errors within the replica are ErrClosed
	others []*connection     // of the first connection: those of its Dups that are not closed

	withins atomic.Uint64 // collectives within the replica

	flights    *flight.Recorders // the recorders of all connections of the communicator in this process
	tracing    tracing
	following  following
	alone      job.Job         // of the call in progress, if it is on one operand
	parts      pack.Parts      // of the same, if it has counts
	moved      rounds.Messages // of the call in progress, if it moves messages
	spares     spares
	crossing   crossing
	comparison comparison

	warned map[warning]bool // only who has the connection's turn uses it; nil: of IPUs, which say nothing
}

// root is the connection of the first connection.
func (l *connection) root() *connection {
	if l.first != nil {
		return l.first
	}
	return l
}

// part is told that the connection is closed. The first connection forgets a Dup.
func (l *connection) part() {
	if l.first == nil {
		return
	}
	l.first.mu.Lock()
	defer l.first.mu.Unlock()
	l.first.others = slices.DeleteFunc(l.first.others, func(o *connection) bool { return o == l })
}

// newConnection makes a connection, a Dup of another unless that is nil. Its flight recorder is one of all; nil: it has
// none.
func newConnection(endpoint transport.Endpoint, t topology.Topology, from *connection,
	all *flight.Recorders) *connection {
	l := &connection{
		topology: t,
		groups:   map[groupKey]*membership{}, counts: map[uint64]*tally{}, flights: all,
		warned: map[warning]bool{},
	}
	if from != nil {
		from.dups++
		l.first, l.number = from.root(), wire.FNV(wire.FNVOffset, int(from.number), int(from.dups))
		l.first.mu.Lock()
		l.first.others = append(l.first.others, l)
		l.first.mu.Unlock()
	}
	l.Carrier.Open(endpoint, all.Open(endpoint.Rank(), l.number))
	l.Flight.FailsBy(l.failure)
	l.ProverOf = l.prover
	if e, ok := endpoint.(transport.Settler); ok {
		e.AnswerBy(l.Flight.Made)
	}
	return l
}

// Dup opens an independent connection between all replicas, each of which must call it, and returns a Comm on it with
// c's group and options. It does not wait for the others. What runs on one connection does not wait for the other. An
// error on either aborts both.
//
// Replicas which disagree get an error and never wait for ever: this is a promise for each connection by itself. A
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
	endpoint, err := c.conn.Endpoint.Dup(ctx)
	if err != nil {
		return nil, c.otherFailure(ctx, "dup", err)
	}
	out := *c
	out.conn = newConnection(endpoint, c.conn.topology, c.conn, c.conn.flights)
	out.conn.prices = c.conn.prices
	out.conn.ipusPerReplica, out.conn.override, out.conn.own = c.conn.ipusPerReplica, c.conn.override, c.conn.own
	return out.settle(c.group.layout)
}

// Close leaves the communicator, on all Comms that share the connection; closing the first connection closes its Dups
// and forgets what Alloc gave out. Functions given to Start are waited for, so none may call it. Peers that wait for
// this replica get a *PeerError, or ErrMismatch if they are in another call than its last in the group; what was
// complete stays good. Comms made by Run are closed by it. It is closed even if there is an error: ErrMismatch when
// replicas disagree, which has ended the communicator and of which no call of this replica has told; a *PeerError when
// one has left without a call that did not wait for it, of a collective with a root (see Broadcast).
//
// So that it can know, Close of the first connection waits, for a second at most, for members that are not done with
// the last call of a group that did not wait for all: one with a root, one by counts, or Execute. It compares their
// call with its own, and asks those in other processes for theirs. What they find later is their error alone. Close of
// a Dup waits for nobody, and tells what is known by then.
func (c *Comm) Close() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.started != nil {
		return newError("Close inside a function given to Start")
	}
	if err := c.conn.close(c.conn.steps.state.Load() != rejoined); err != nil {
		return c.otherFailure(context.Background(), "close", err)
	}
	return nil
}

// close is Close. Where replicas have all aborted the communicator, none is asked which calls it has made.
func (l *connection) close(ask bool) (err error) {
	l.works.Wait()
	l.allocs.close()
	l.closeIPUs()
	if ask {
		err = l.settle()
	}
	l.Flight.BeginClose()
	if left := l.Endpoint.Close(); err == nil {
		err = left
	}
	if err == nil && ask {
		err = l.unheard()
	}
	for _, l := range l.all() { // Dups are closed with the first connection
		l.Flight.Close()
	}
	l.part()
	return err
}
