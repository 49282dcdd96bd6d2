package sim

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/methods/cost"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// endpoint is one replica's end of one lane.
type endpoint struct {
	n       *Net
	lane    *lane
	replica *replica
	rank    int

	busy   sync.Mutex // held by the Exchange in progress
	closed atomic.Bool
	wake   chan struct{} // a token for each time that idle is taken back

	checker transport.Checker // guarded by busy

	// Guarded by n.mu.
	dups      int
	left      bool // closed and out of its last Exchange
	called    bool // call has been set
	torn      bool // the last call has failed
	call      transport.Call
	history   calls.History
	exchanges uint64 // begun so far

	// The Exchange in progress. Guarded by n.mu.
	active   bool
	batch    []transport.Transfer
	states   []state
	open     int     // transfers that are not done
	work     float64 // seconds of the processor, when all are
	inbox    []int   // transfers that have arrived, in the order in which to take them
	reading  []letterIn
	late     bool // it is a slow replica's, and its time to begin has not come
	idle     bool
	roused   bool // since it was idle
	finished bool
	err      error
	pinned   int // messages that others read from its buffers
}

// state is how far a transfer is.
type state struct {
	phase phase
	flow  *flow // underway
	peer  half  // from underway on
}

type phase uint8

const (
	waiting  phase = iota // for its peer
	underway              // both ends have come
	arrived               // all of it, and its turn in a chain of folds has not come
	taken                 // it is in the inbox, or being read
	done
)

// historyLength is how many calls an endpoint remembers one by one.
const historyLength = 16

func newHistory() calls.History { return calls.NewHistory(historyLength) }

// Rank implements transport.Endpoint.
func (e *endpoint) Rank() int { return e.rank }

// Size implements transport.Endpoint.
func (e *endpoint) Size() int { return len(e.n.replicas) }

// Done implements transport.Endpoint.
func (e *endpoint) Done() <-chan struct{} { return e.replica.done }

// Shared implements transport.Shared.
func (e *endpoint) Shared() *sync.Map { return &e.n.shared }

// Model is that of the network's Config.
func (e *endpoint) Model() cost.Model { return e.n.config.Model }

// Err implements transport.Endpoint.
func (e *endpoint) Err() error {
	if err := e.replica.aborted.Load(); err != nil {
		return err
	}
	if e.closed.Load() {
		return &transport.ClosedError{Replica: e.rank}
	}
	return nil
}

// Dup implements transport.Endpoint. It never waits.
func (e *endpoint) Dup(ctx context.Context) (transport.Endpoint, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	n := e.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.closed.Load() {
		return nil, &transport.ClosedError{Replica: e.rank}
	}
	if err := e.replica.aborted.Load(); err != nil {
		e.replica.told.Store(true)
		return nil, err
	}
	k := e.dups
	e.dups++
	child := e.lane.children[k]
	if child == nil {
		child = newLane(e.Size())
		child.parent, child.number, child.id = e.lane, k, mix(e.lane.id+uint64(k))
		e.lane.children[k] = child
	}
	if child.taken++; child.taken == e.Size() {
		delete(e.lane.children, k)
	}
	return n.open(child, e.replica), nil
}

// Abort implements transport.Endpoint.
func (e *endpoint) Abort(cause error) {
	e.replica.told.Store(true)
	e.n.mu.Lock()
	defer e.n.mu.Unlock()
	e.n.abort(e.replica, cause)
	e.n.settle()
}

// Close implements transport.Endpoint. Closing an endpoint that New returned closes all lanes of its replica. It must
// not be called from a Fold. The error is that replicas disagree, which has ended the network, and of which no call of
// this replica has told.
func (e *endpoint) Close() error {
	n := e.n
	n.mu.Lock()
	lanes := []*endpoint{e}
	if e.lane == n.root {
		lanes = slices.Clone(e.replica.lanes)
	}
	for _, l := range lanes {
		if !l.closed.Swap(true) && l.active && l.err == nil && !l.finished {
			l.fail(l.unfinished(), &transport.ClosedError{Replica: l.rank})
		}
	}
	n.mu.Unlock()
	for _, l := range lanes {
		l.busy.Lock() // until its Exchange is over
		n.mu.Lock()
		if !l.left {
			l.left = true
			l.desert()
		}
		n.mu.Unlock()
		l.busy.Unlock()
	}
	defer n.awaitDriver()
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.lane == n.root {
		n.leave(e.replica)
	} else if i := slices.Index(e.replica.lanes, e); i >= 0 {
		e.replica.lanes = slices.Delete(e.replica.lanes, i, i+1)
	}
	n.settle()
	if aborted := e.replica.aborted.Load(); aborted != nil && calls.Disagree(aborted) && !e.replica.told.Swap(true) {
		return aborted
	}
	return nil
}

// Host implements transport.Linked. Nothing is known of hosts.
func (e *endpoint) Host(int) int { return -1 }

// Link implements transport.Linked. All links are said to be as the slowest.
func (e *endpoint) Link(a, b int) transport.Link {
	if size := e.Size(); a == b || a < 0 || b < 0 || a >= size || b >= size {
		return transport.Link{}
	}
	return e.n.link()
}

// sources bounds the replicas from which slowest looks.
const sources = 64

// slowest is the worst that the ways between replicas have, field by field, from up to 64 replicas to all others.
func slowest(network cost.Network) transport.Link {
	worst := transport.Link{Class: transport.NetworkLink, Transport: "sim"}
	size := network.Replicas()
	var route []int
	for from := 0; from < size; from += max((size+sources-1)/sources, 1) {
		for to := range size {
			if to == from {
				continue
			}
			var err error
			if route, err = network.Route(route[:0], from, to); err != nil {
				continue
			}
			var latency time.Duration
			for _, number := range route {
				l := network.Link(number)
				latency += min(l.Latency, math.MaxInt64-latency)
				if worst.BytesPerSecond == 0 || l.BytesPerSecond < worst.BytesPerSecond {
					worst.BytesPerSecond = l.BytesPerSecond
				}
			}
			worst.Latency = max(worst.Latency, latency)
		}
	}
	return worst
}
