package inproc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
	"gogcl.dev/transport/internal/crowd"
	"gogcl.dev/transport/internal/meeting"
)

// maxReplicas bounds the memory of a network, which grows with the square of their number: 72 bytes a pair, 4.8 GB in
// all. Beyond that New would sooner end the program for want of memory than return.
const maxReplicas = 1 << 13

// New connects n replicas of this process, 1 to 8,192, and returns their endpoints, in the order of their ranks.
func New(n int) ([]transport.Endpoint, error) {
	if n < 1 || n > maxReplicas {
		return nil, fmt.Errorf("inproc: cannot connect %d replicas, want 1 to %d", n, maxReplicas)
	}
	Link() // the first allocates: see machine.Name
	nw := connected(n)
	eps := make([]transport.Endpoint, n)
	for i, e := range nw.root.eps {
		eps[i] = e
	}
	return eps, nil
}

// connected makes a network of n replicas.
func connected(n int) *network {
	processors := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	nw := &network{
		told: make([]atomic.Bool, n), done: make(chan struct{}),
		rejoin:   rejoin{members: make([]member, n)},
		spacious: n <= processors, spins: meeting.MaxSpins, every: patrolEvery,
	}
	nw.crowd.Init(crowd.Taken)
	nw.timer = time.AfterFunc(time.Hour, nw.patrol)
	nw.timer.Stop()
	nw.mu.Lock()
	nw.root = nw.open(n, nil)
	nw.mu.Unlock()
	return nw
}

// network is what all lanes between the same replicas share.
type network struct {
	aborted  atomic.Pointer[transport.AbortError] // set once
	done     chan struct{}                        // closed right after
	told     []atomic.Bool                        // by rank: an error of a call has said so
	spacious bool                                 // every replica can have a processor
	expired  atomic.Bool                          // a Close has waited for settleTime
	spins    int                                  // how often to look in vain at a meeting, at most
	crowd    crowd.Watch

	armed atomic.Bool   // the timer runs, or patrol does
	timer *time.Timer   // calls patrol
	every time.Duration // how soon

	shared sync.Map // not the network's: see transport.Shared

	generation int            // how many networks there were before
	tune       func(*network) // a test's change of this network and of those after, or nil

	mu     sync.Mutex // guards what follows, and who is a member of which lane
	root   *lane
	lanes  []*lane // those on which somebody has not closed
	rejoin rejoin
}

// lane is one independent set of endpoints. What is not atomic is guarded by nw.mu.
type lane struct {
	nw     *network
	eps    []*endpoint  // by rank
	closed atomic.Int32 // how many of eps are closed
	gone   int          // how many of them are closed and have left their last Exchange

	children map[int]*lane // made by Dup, by its number, until every replica has its end
	taken    int           // how many replicas have their end of this lane

	tables  map[uint64]*table // by group
	blocked register
	waiters int // how many of eps the last patrol saw parked
	turn    int // which of eps the next patrol looks at first
}

// open makes a lane. Where a replica's end of the parent is closed it is born closed. The caller holds nw.mu.
func (nw *network) open(n int, parent *lane) *lane {
	l := &lane{nw: nw, eps: make([]*endpoint, n), children: map[int]*lane{}}
	for i := range l.eps {
		l.eps[i] = newEndpoint(l, i, n)
	}
	nw.lanes = append(nw.lanes, l)
	if parent != nil {
		for i, p := range parent.eps {
			if p.closed.Load() {
				l.forgo(i)
			}
		}
	}
	return l
}

// shut marks one end of the lane as closed and tells the others. The caller holds nw.mu.
func (l *lane) shut(rank int) {
	e := l.eps[rank]
	if e.closed.Load() {
		return
	}
	e.closed.Store(true)
	l.closed.Add(1)
	for _, other := range l.eps {
		other.rouse(byEvent)
	}
	for k, child := range l.children {
		if k >= e.dups { // which this replica can no longer ask for
			child.forgo(rank)
		}
	}
}

// forgo closes an end of the lane on which there will be no call. The caller holds nw.mu.
func (l *lane) forgo(rank int) {
	l.eps[rank].left.CompareAndSwap(nil, &parting{})
	l.shut(rank)
	l.retire(rank)
}

// retire counts one end, shut and idle, as gone, and forgets the lane with the last. The caller holds nw.mu.
func (l *lane) retire(rank int) {
	if e := l.eps[rank]; e.gone {
		return
	} else {
		e.gone = true
	}
	if l.gone++; l.gone < len(l.eps) {
		return
	}
	nw := l.nw
	nw.lanes = slices.DeleteFunc(nw.lanes, func(o *lane) bool { return o == l })
	if len(nw.lanes) == 0 {
		nw.timer.Stop()
	}
}

// abort makes all lanes fail with the cause, unless that has happened already, and returns with what they fail.
func (nw *network) abort(rank int, cause error) *transport.AbortError {
	if cause == nil {
		cause = errors.New("no cause given")
	}
	if nw.aborted.CompareAndSwap(nil, &transport.AbortError{Replica: rank, Cause: cause}) {
		close(nw.done)
		nw.mu.Lock()
		for _, l := range nw.lanes {
			for _, e := range l.eps {
				e.rouse(byEvent)
			}
		}
		nw.mu.Unlock()
	}
	return nw.aborted.Load()
}

// Dup implements transport.Endpoint. It never waits.
func (e *endpoint) Dup(ctx context.Context) (transport.Endpoint, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	nw := e.lane.nw
	nw.mu.Lock()
	defer nw.mu.Unlock()
	if e.closed.Load() {
		return nil, &transport.ClosedError{Replica: e.rank}
	}
	if err := nw.aborted.Load(); err != nil {
		nw.told[e.rank].Store(true)
		return nil, err
	}
	k := e.dups
	e.dups++
	child := e.lane.children[k]
	if child == nil {
		child = nw.open(len(e.lane.eps), e.lane)
		e.lane.children[k] = child
	}
	if child.taken++; child.taken == len(child.eps) {
		delete(e.lane.children, k)
	}
	return child.eps[e.rank], nil
}

// Abort implements transport.Endpoint.
func (e *endpoint) Abort(cause error) {
	e.lane.nw.told[e.rank].Store(true)
	e.lane.nw.abort(e.rank, cause)
}

// Close implements transport.Endpoint. Closing an endpoint that New returned closes all lanes of its replica. It must
// not be called from a Fold. It is closed even if there is an error: that somebody has not made, or not in the same
// way, a Broadcast that this replica or another did not wait for, or that replicas disagree, which has ended the
// network and of which no call of this replica has told. A disagreement about a Broadcast that Close finds on a lane
// made by Dup ends the network, too. So that it can know, Close of an endpoint that New returned waits for those who
// have not come to its last Broadcast, for settleTime at most.
func (e *endpoint) Close() error {
	nw := e.lane.nw
	nw.mu.Lock()
	lanes := []*lane{e.lane}
	if e.lane == nw.root {
		lanes = slices.Clone(nw.lanes)
		nw.depart(e.rank, &transport.ClosedError{Replica: e.rank})
	}
	for _, l := range lanes {
		l.shut(e.rank)
	}
	nw.mu.Unlock()
	for _, l := range lanes {
		l.eps[e.rank].drain()
	}
	if e.lane == nw.root {
		nw.linger(e.rank, lanes)
	}
	var err error
	for _, l := range lanes {
		if unsettled := l.eps[e.rank].settle(); err == nil {
			err = unsettled
		}
	}
	if e.lane != nw.root && calls.Disagree(err) {
		// A replica that has left the Dup before hears of it on leaving the first connection.
		e.Abort(err)
	}
	if err == nil {
		err = nw.untold(e.rank)
	}
	nw.mu.Lock()
	for _, l := range lanes {
		l.retire(e.rank)
	}
	nw.mu.Unlock()
	return err
}
