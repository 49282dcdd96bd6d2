package inproc

import (
	"context"
	"sync"
	"sync/atomic"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
	"gogcl.dev/transport/internal/crowd"
)

// endpoint is one replica's end of one lane. Its goroutine is the one that is in Exchange.
type endpoint struct {
	lane *lane
	rank int
	dups int  // under nw.mu: calls of Dup
	gone bool // under nw.mu: closed, and out of its last Exchange

	busy   sync.Mutex // held by the Exchange in progress
	closed atomic.Bool
	left   atomic.Pointer[parting] // set once the endpoint is closed and out of its last call

	// Guarded by busy, and by lane.blocked.mu as well while the endpoint stands in the register.
	checker transport.Checker
	called  bool // call has been set
	torn    bool // it has failed
	call    transport.Call
	batch   []transport.Transfer
	// where each transfer of the batch meets its peer; nil for a receive whose sender has not come so far
	slots   []*slot
	chains  []chain // the receives that are not done
	sent    int     // the sends of batch[:sent] have been taken
	in, out []mailbox
	visit   *visit // instead of a batch: the meeting that the endpoint is at
	wanted  wanted // in the register

	// Guarded by busy.
	ctx       context.Context
	done      <-chan struct{}
	offered   int   // the sends of batch[:offered] have been posted
	copied    int   // bytes of the plain receives of the batch
	claims    []int // transfers whose slots this endpoint has claimed
	overdue   bool  // the last park was long
	watched   <-chan struct{}
	stopWatch func() bool
	onDone    func()
	parks     uint64
	spins     int // how often to look for progress before yielding
	window    crowd.Window
	settled   bool // the call leaves in the ordinary way
	exchanged calls.History
	visits    map[uint64]*visit
	last      *visit // the one before

	// Peers look at these, on lines of their own.
	_       [64]byte
	waiting atomic.Pointer[slot]    // what the endpoint is parked for: nil, arrival, or a slot that it has posted
	park    atomic.Uint64           // the number of the park, or 0 when patrol should leave it alone
	heads   []atomic.Pointer[block] // by sender: the slots of the messages to this endpoint
	wake    chan reason             // one token for each time that somebody swaps waiting to nil
	seen    uint64                  // under nw.mu: patrol's last sight of park
	_       [64]byte
}

// chain is a receive and the folds that go on with it: batch[at:end] is not done.
type chain struct{ at, end int }

func newEndpoint(l *lane, rank, n int) *endpoint {
	e := &endpoint{
		lane: l, rank: rank,
		in: make([]mailbox, n), out: make([]mailbox, n), heads: make([]atomic.Pointer[block], n),
		wake: make(chan reason, 1), exchanged: calls.NewHistory(historyLength),
	}
	if l.nw.spacious {
		e.spins, e.window = minSpins, l.nw.crowd.Window()
	}
	e.onDone = func() { e.rouse(byEvent) }
	return e
}

// Rank implements transport.Endpoint.
func (e *endpoint) Rank() int { return e.rank }

// Size implements transport.Endpoint.
func (e *endpoint) Size() int { return len(e.lane.eps) }

// Shared implements transport.Shared.
func (e *endpoint) Shared() *sync.Map { return &e.lane.nw.shared }

// parting is what a closed endpoint leaves for the others to compare: its last call, on this lane, if it made any, and
// what it has done by messages. A broadcast by messages may have ended without some of the others, and calls may have
// followed. No other call does, but a Broadcast, whose notice stays.
type parting struct {
	called bool
	torn   bool // the last call has failed
	call   transport.Call
	sent   calls.History
}

// Instead implements meeting.Parting.
func (p *parting) Instead(of *transport.Call) *transport.Call {
	differs := func(c *transport.Call) bool { return c.Group == of.Group && c.Seq == of.Seq && !c.Same(*of) }
	if p.called && differs(&p.call) {
		return &p.call
	}
	if theirs, how := p.sent.Find(of); how == calls.Other {
		return &theirs
	}
	return nil
}

// historyLength is how many calls by messages a parting holds, whatever their groups.
const historyLength = 16

// drain waits until a closed endpoint is out of its last Exchange, and then tells the others.
func (e *endpoint) drain() {
	e.busy.Lock()
	defer e.busy.Unlock()
	e.watch(context.Background())
	if e.left.CompareAndSwap(nil, &parting{e.called, e.torn, e.call, e.exchanged}) {
		for _, other := range e.lane.eps {
			if other != e {
				other.rouse(byEvent)
			}
		}
	}
}

// outgoing is the slot for a message to the peer.
func (e *endpoint) outgoing(peer int, tag uint32) *slot {
	m := &e.out[peer]
	if int(tag) < len(m.slots) {
		return m.slots[tag]
	}
	return m.grow(&e.lane.eps[peer].heads[e.rank], tag)
}

// incoming is the slot for a message from the peer, or nil when the peer has not made it yet.
func (e *endpoint) incoming(peer int, tag uint32) *slot {
	m := &e.in[peer]
	if int(tag) < len(m.slots) {
		return m.slots[tag]
	}
	return m.find(&e.heads[peer], tag)
}
