package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/transport"
)

// Host is what a transport does for its node.
type Host interface {
	// Tell sends a control message to a replica, after those before. It does not wait, copies the message, and drops it
	// where there is no connection any more.
	Tell(peer int, message []byte)

	// Connect makes a link to a replica with a greater number and gives it to Node.Attach. If there can be none it
	// gives a Link whose methods fail: the lane waits a bounded time for a word why. Connect does not wait.
	Connect(peer int, lane uint64)

	// Parker makes a Parker for a lane, given by its number.
	Parker(lane uint64) (Parker, error)

	// Leave is called once, after the last message of a node that is closed: it sends what Tell has taken, in a bounded
	// time, and lets the connections go.
	Leave()
}

// Sharer is a Host whose replicas share memory.
type Sharer interface {
	Host

	// Aborting is called when the node aborts, or has heard of an abort, before any of its calls fails for that.
	Aborting()

	// Forget says that this replica and all others have left a lane.
	Forget(lane uint64)
}

// Scheduler is a Host that decides which goroutine of a replica runs, one at a time: it has to know of a wait that ends
// neither by a Parker nor by the time.
type Scheduler interface {
	Host

	// Await calls ready until that returns true, which it may do once, and lets other goroutines run between calls.
	Await(ready func() bool)
}

// Config says what a node is.
type Config struct {
	Rank, Size int
	Host       Host

	// Spin is how long a lane that waits looks for progress before it parks, letting others have the processor between
	// looks. Zero: not at all. A lane with a Looker parks when that has looked in vain, and has it look no more after
	// Spin.
	Spin time.Duration

	// Crowded says that other processes want the processor: a lane then gives it away after each look, to other threads
	// where this process has no more replicas than processors.
	Crowded bool

	// Silence is for how long nothing may come of what a peer has sent until the link to it counts as lost. Zero: for
	// ever.
	Silence time.Duration

	// Processes are where the replicas run, for errors: "pid 4711 on node1", or "". nil: nobody knows.
	Processes []string

	// Generation is which of several nodes of the same replicas this is, 0 or more, below 1 << 16. The numbers of its
	// lanes say so: see GenerationOf.
	Generation int

	// Checksum is whether this replica's payloads to a peer carry a checksum. nil: never.
	Checksum func(peer int) bool
}

// rootLane is the number of the lane that a node of generation 0 begins with.
const rootLane = 1

// The numbers of lanes have the generation in their topmost bits.
const generationShift = 48

// GenerationOf is the generation of the node that a lane belongs to, by the lane's number.
func GenerationOf(lane uint64) int { return int(lane >> generationShift) }

// root is the number of the lane that the node begins with.
func (n *Node) root() uint64 { return uint64(n.Generation)<<generationShift | rootLane }

// Node is one replica's part of a transport: what its lanes share.
type Node struct {
	Config
	aborted atomic.Pointer[transport.AbortError] // set once
	done    chan struct{}                        // closed right after
	told    atomic.Bool                          // an error of a call has said so
	expired atomic.Bool                          // a Close has waited for settleTime
	reports reports

	stopping sync.Mutex // held by stop

	mu      sync.Mutex // guards what follows
	closed  bool
	leaving bool                // no report begins to be made any more
	lanes   map[uint64]*Lane    // those that are not closed, and those closed that others have not left
	early   map[earlyKey]*early // what others have said of lanes that this replica has not opened
	ahead   []int               // by replica: how many entries of early it has
	gone    []bool              // by replica: it has left all lanes
	draft   [64]byte            // of a control message
}

// maxEarly bounds how many lanes a replica may use that this replica has not opened: early has an entry for each, with
// a connection in most.
const maxEarly = 1024

// earlyKey is a lane that is not open here, and a replica that uses it.
type earlyKey struct {
	lane uint64
	peer int
}

// early is what a replica has said of a lane before it is opened.
type early struct {
	link  Link
	asked bool // the link is being made
	left  *parting
	waits *transport.Call
}

// parting is what a replica says of a lane when it leaves.
type parting struct {
	calls []transport.Call // its last, the newest first
	sent  uint64           // messages to this replica that it has begun to send; see explained
	read  uint64           // messages of this replica that it has read
}

// through reports whether the replica has gone through a round of a call. If the round had failed there, word of the
// abort would have come first.
func (p *parting) through(call *transport.Call) bool {
	return len(p.calls) > 0 && call.Seq != 0 && p.calls[0] == *call
}

// over reports whether the replica has gone through a call: all its rounds, or it has begun another call since.
func (p *parting) over(call *transport.Call) bool {
	for i := range p.calls {
		if i > 0 && p.calls[i].Same(*call) {
			return true
		}
	}
	return p.through(call)
}

// instead is the call that the replica has made in place of another, or nil.
func (p *parting) instead(of *transport.Call) *transport.Call {
	for i := range p.calls {
		if c := &p.calls[i]; c.Group == of.Group && c.Seq == of.Seq && !c.Same(*of) {
			return c
		}
	}
	return nil
}

// NewNode makes a node and returns it with its first lane. The replicas must be able to Tell each other.
func NewNode(c Config) (*Node, *Lane, error) {
	n := &Node{Config: c, done: make(chan struct{}), lanes: map[uint64]*Lane{},
		early: map[earlyKey]*early{}, ahead: make([]int, c.Size), gone: make([]bool, c.Size)}
	n.mu.Lock()
	defer n.mu.Unlock()
	l, err := n.open(n.root())
	return n, l, err
}

// open makes a lane. The caller holds n.mu.
func (n *Node) open(number uint64) (*Lane, error) {
	l, err := newLane(n, number)
	if err != nil {
		return nil, err
	}
	n.lanes[number] = l
	for peer, gone := range n.gone {
		if e := n.early[earlyKey{number, peer}]; e != nil {
			delete(n.early, earlyKey{number, peer})
			n.ahead[peer]--
			if e.link != nil {
				l.attach(peer, e.link)
			}
			l.peers[peer].asked = e.asked
			l.peers[peer].left.Store(e.left)
			if e.waits != nil {
				l.peers[peer].waits.set(*e.waits)
			}
		}
		if gone {
			l.peers[peer].left.CompareAndSwap(nil, &parting{})
		}
	}
	return l, nil
}

// before returns what a replica has said of a lane that is not open. The error is that of a replica that uses too many
// of them. The caller holds n.mu.
func (n *Node) before(peer int, number uint64) (*early, error) {
	key := earlyKey{number, peer}
	if e := n.early[key]; e != nil {
		return e, nil
	}
	if n.ahead[peer] >= maxEarly {
		return nil, fmt.Errorf("it uses more than %d lanes that replica %d has not opened: "+
			"all replicas must call Dup alike", maxEarly, n.Rank)
	}
	e := &early{}
	n.early[key] = e
	n.ahead[peer]++
	return e, nil
}

// Attach gives a lane its link to a replica. A lane has one to each replica: a second one is closed, and so is one that
// comes too late.
func (n *Node) Attach(peer int, number uint64, link Link) {
	n.mu.Lock()
	l := n.lanes[number]
	taken := false
	var err error
	switch {
	case n.closed:
	case l != nil:
		taken = l.attach(peer, link)
	default:
		var e *early
		if e, err = n.before(peer, number); err == nil && e.link == nil {
			e.link, taken = link, true
		}
	}
	n.mu.Unlock()
	if !taken {
		link.Close()
	}
	if err != nil {
		n.Lost(peer, err)
	}
}

// connect has the link of a lane to a replica made, once: by this replica if its number is the lower one. The error is
// that of before. The caller holds n.mu.
func (n *Node) connect(peer int, number uint64) error {
	if l := n.lanes[number]; l != nil {
		if l.peers[peer].asked || !l.wantsLink(peer) {
			return nil
		}
		l.peers[peer].asked = true
	} else {
		e, err := n.before(peer, number)
		if err != nil || e.asked || e.link != nil {
			return err
		}
		e.asked = true
	}
	if n.Rank < peer {
		n.Host.Connect(peer, number)
	} else {
		n.Host.Tell(peer, appendLane(nil, dial, number))
	}
	return nil
}

// Expects reports whether a lane waits for a link that a replica with a lower number makes, one of those given.
func (n *Node) Expects(of func(peer int) bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lanes {
		for peer := range n.Rank {
			if p := &l.peers[peer]; of(peer) && p.asked && l.wantsLink(peer) && p.left.Load() == nil {
				return true
			}
		}
	}
	return false
}

// Lost says that the connection to a replica has ended, and why. It aborts, if this node misses the replica.
func (n *Node) Lost(peer int, err error) {
	if n.Misses(peer) {
		n.Abort(n.lost(peer, err))
	}
}

// Misses reports whether the end of the connection to a replica matters: neither has left.
func (n *Node) Misses(peer int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.gone[peer] && !n.closed
}

// lost is the error that a replica is lost.
func (n *Node) lost(peer int, err error) *transport.LostError {
	e := &transport.LostError{Replica: peer, Err: err}
	if n.Processes != nil {
		e.Process = n.Processes[peer]
	}
	return e
}

// Done is closed when the node is aborted. Err then says why.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is the *transport.AbortError, or nil.
func (n *Node) Err() error {
	if err := n.aborted.Load(); err != nil {
		return err
	}
	return nil
}

// Abort makes all lanes of all replicas fail with the cause, unless that has happened already.
func (n *Node) Abort(cause error) { n.abort(cause) }

// abort is Abort, and returns what the lanes fail with.
func (n *Node) abort(cause error) *transport.AbortError {
	if cause == nil {
		cause = errors.New("no cause given")
	}
	n.stop(&transport.AbortError{Replica: n.Rank, Cause: cause}, n.Rank)
	return n.aborted.Load()
}

// stop makes the lanes of this replica fail, unless they do already. All others are told, but for the replica that this
// one has heard it from. So a replica hears of an abort no later than of the leaving of one that knows of the abort.
// The others are told first: as soon as lanes fail, their users may close them, and Close says that the replica leaves.
func (n *Node) stop(why *transport.AbortError, from int) {
	n.stopping.Lock()
	defer n.stopping.Unlock()
	if n.aborted.Load() != nil {
		return
	}
	message := appendAbort(nil, why)
	for peer := range n.Size {
		if peer != n.Rank && peer != from && peer != why.Replica {
			n.Host.Tell(peer, message)
		}
	}
	if s, ok := n.Host.(Sharer); ok {
		s.Aborting()
	}
	n.aborted.Store(why)
	close(n.done)
	n.sendReport()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lanes {
		l.wake()
	}
}

// stopped is the abort, or nil. An abort of which others may have been told already counts.
func (n *Node) stopped() *transport.AbortError {
	n.stopping.Lock()
	defer n.stopping.Unlock()
	return n.aborted.Load()
}

// dup opens the k-th lane that is made from another.
func (n *Node) dup(ctx context.Context, from *Lane) (*Lane, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if from.closed.Load() {
		return nil, &transport.ClosedError{Replica: n.Rank}
	}
	if err := n.aborted.Load(); err != nil {
		n.told.Store(true)
		return nil, err
	}
	l, err := n.open(child(from.number, from.dups+1))
	if err == nil {
		from.dups++
	}
	return l, err
}

// child numbers the k-th lane made from another, the same at all replicas: a mixture of both numbers by SplitMix64, in
// the generation of the other.
func child(parent, k uint64) uint64 {
	x := parent + k*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	const mixed = 1<<generationShift - 1
	return parent&^mixed | (x^x>>31)&mixed
}

// forget drops a lane that this replica and all others have left. The caller holds n.mu.
func (n *Node) forget(l *Lane) {
	if !l.through {
		return
	}
	for peer := range l.peers {
		if peer != n.Rank && l.peers[peer].left.Load() == nil {
			return
		}
	}
	delete(n.lanes, l.number)
	if s, ok := n.Host.(Sharer); ok {
		s.Forget(l.number)
	}
}
