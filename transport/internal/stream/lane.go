package stream

import (
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// Lane is one replica's end of one lane: the transport.Endpoint. Its goroutine is the one that is in Exchange.
type Lane struct {
	node   *Node
	number uint64
	dups   uint64 // under node.mu: made of this lane
	parker Parker
	poller Poller // the parker, if it is one
	looker Looker // the same
	peers  []peer // by replica

	procs int64 // on which the goroutines of this process run

	busy    sync.Mutex // held by the Exchange in progress
	closed  atomic.Bool
	boards  Boards                                                      // nil: there are messages only
	answers atomic.Pointer[func(transport.Call) (transport.Call, bool)] // see AnswerBy
	events  atomic.Uint64                                               // of what others have told: seen before a park
	parked  atomic.Bool

	// Guarded by busy.
	checker   transport.Checker
	history   calls.History
	call      transport.Call // the last one that has begun
	batch     []transport.Transfer
	active    []int // the peers of the batch
	progress  []int // by transfer: bytes of a receive that are in Buf
	pending   int   // transfers that are not done
	asides    []*aside
	unused    []*aside
	spare     [][]byte // memory for asides
	ctx       context.Context
	done      <-chan struct{}
	watched   <-chan struct{}
	stopWatch func() bool
	onDone    func()
	stops     func() bool // stopped, from the first call on
	settled   bool        // Exchange leaves in the ordinary way
	through   bool        // Close has told the others, and looks at nothing any more; under node.mu
	engaged   bool        // the call in progress has no messages: see Enter
	goal      Awaited     // what it waits for, if there is something to ask
	heardOf   uint64      // events, before the last look
	pause     pause
	ended     uint          // calls that have ended
	crowded   time.Time     // until when the processors count as crowded
	dear      time.Time     // until when a wait parks at once
	draft     [64]byte      // of a control message
	parted    chan struct{} // closed when Close has told the others and let the links go
	chase     chased
}

// historyLength is how many calls a lane remembers one by one. A message may be of a call that began MaxUnread calls
// with its sender ago; calls without that sender lie between.
const historyLength = 4 * transport.MaxUnread

// partingLength is how many of them a replica that leaves tells the others.
const partingLength = 16

// peer is a lane's side of its link to one replica. What is not atomic belongs to the lane's goroutine.
type peer struct {
	link    atomic.Pointer[linkBox]
	sent    atomic.Uint64 // messages that have begun to be sent
	acked   atomic.Uint64 // messages sent that the peer is known to have read
	read    atomic.Uint64 // messages of the peer that have been read
	told    atomic.Uint64 // of these, those that the peer has been told of
	put     atomic.Uint64 // bytes that the link has taken
	theirs  atomic.Uint64 // bytes that the peer's link had taken, by its last answer to an inquiry
	closing atomic.Bool   // the peer waits in Close for its messages to be read
	blind   atomic.Bool   // the peer does not see credit in the link
	left    atomic.Pointer[parting]
	waits   notice
	answer  atomic.Pointer[transport.Call] // the last one: see Settle

	answered  atomic.Uint32 // number of the last inquiry that the peer has answered
	inquiries inquiries

	last      int    // bytes of the last message that has begun to be sent
	lastGroup uint64 // of its call
	lastSeq   uint64 // of its call; 0: it has none
	hidden    bool   // the peer has been told that this lane does not see its credit
	sought    bool   // the link, by the lane
	asked     bool   // under node.mu: the link is being made
	watched   bool   // the parker watches the link
	mute      ending // the link takes no more
	deaf      ending // the link brings no more

	// Sending.
	sends  []int  // of the batch
	turn   int    // sends[:turn] have been taken by the link
	begun  bool   // frames from sends[turn] on are on their way
	frames int    // how many
	length int    // bytes of them
	out    int    // bytes of them that the link has taken
	stage  []byte // they, if they are short
	header [frameAlign]byte
	tail   [2 * frameAlign]byte
	tailed int // bytes of tail
	sum    uint32

	// Receiving.
	recvs  int     // of the batch that have not begun to be read, or are being read
	byTag  []int32 // by tag: 1 + the index in the batch of a receive that is awaited
	seen   bool    // frame is the header that the link shows next, or whose payload it shows
	frame  frame
	at     int // the receive of the batch whose payload comes next, or -1
	got    int // bytes of payload that have been read
	insum  uint32
	beside *aside // where the payload goes, if not into the buffers of the batch
}

// ending is how one direction of a link has ended, if err is not nil, and the inquiry to the peer about that.
type ending struct {
	err     error
	inquiry uint32 // 0: not sent
}

// linkBox holds a Link, for an atomic pointer.
type linkBox struct{ Link }

// posts reports whether a link is a Poster.
func posts(link Link) bool {
	if box, ok := link.(*linkBox); ok {
		link = box.Link
	}
	_, ok := link.(Poster)
	return ok
}

func newLane(n *Node, number uint64) (*Lane, error) {
	p, err := n.Host.Parker(number)
	if err != nil {
		return nil, err
	}
	l := &Lane{node: n, number: number, parker: p, peers: make([]peer, n.Size), parted: make(chan struct{}),
		history: calls.NewHistory(historyLength)}
	l.poller, _ = p.(Poller)
	l.looker, _ = p.(Looker)
	for i := range l.peers {
		l.peers[i].at = -1
	}
	l.onDone = l.wake
	l.procs = int64(runtime.GOMAXPROCS(0))
	if l.IsRoot() {
		replicas.Add(1)
	}
	return l, nil
}

// Rank implements transport.Endpoint.
func (l *Lane) Rank() int { return l.node.Rank }

// Size implements transport.Endpoint.
func (l *Lane) Size() int { return l.node.Size }

// Number tells the lanes of a node apart. It is the same at all replicas.
func (l *Lane) Number() uint64 { return l.number }

// IsRoot reports whether it is the lane that its node began with.
func (l *Lane) IsRoot() bool { return l.number == l.node.root() }

// IsClosed reports whether Close has been called.
func (l *Lane) IsClosed() bool { return l.closed.Load() }

// Done implements transport.Endpoint.
func (l *Lane) Done() <-chan struct{} { return l.node.done }

// Dup implements transport.Endpoint.
func (l *Lane) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := l.node.dup(ctx, l)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Abort implements transport.Endpoint.
func (l *Lane) Abort(cause error) { l.node.Abort(cause) }

// Err implements transport.Endpoint.
func (l *Lane) Err() error {
	if err := l.node.aborted.Load(); err != nil {
		return err
	}
	if l.closed.Load() {
		return &transport.ClosedError{Replica: l.node.Rank}
	}
	return nil
}

// attach gives the lane its link to a replica, unless it has one or is closed. The caller holds node.mu.
func (l *Lane) attach(peer int, link Link) bool {
	if l.closed.Load() || !l.peers[peer].link.CompareAndSwap(nil, &linkBox{link}) {
		return false
	}
	l.wake()
	return true
}

// wantsLink reports whether the lane has no link to a replica. The caller holds node.mu.
func (l *Lane) wantsLink(peer int) bool { return !l.closed.Load() && l.peers[peer].link.Load() == nil }

// leftBy notes that a replica has left the lane, and reports whether it makes sense.
func (l *Lane) leftBy(peer int, p *parting) bool {
	if l.peers[peer].left.Load() != nil {
		return true
	}
	if !l.peers[peer].heard(p.read) {
		return false
	}
	l.peers[peer].left.CompareAndSwap(nil, p)
	l.wake()
	return true
}

// heard notes how many messages the peer has read, and reports whether so many were sent.
func (p *peer) heard(read uint64) bool {
	if read > p.sent.Load() {
		return false
	}
	for {
		known := p.acked.Load()
		if read <= known || p.acked.CompareAndSwap(known, read) {
			return true
		}
	}
}

// heardLow is heard for the low bits of the number. A number that is less than what is known has been overtaken.
func (p *peer) heardLow(read uint16) bool {
	known := p.acked.Load()
	more := read - uint16(known)
	return more > transport.MaxUnread || p.heard(known+uint64(more))
}

// wake has the lane look at what others have told.
func (l *Lane) wake() {
	l.events.Add(1)
	if l.parked.Load() {
		l.parker.Wake()
	}
}

// tellRead tells a replica how many of its messages have been read. The message is made in draft, if that is long
// enough.
func (l *Lane) tellRead(peer int, draft []byte) {
	p := &l.peers[peer]
	read := p.read.Load()
	p.told.Store(read)
	b := appendLane(draft[:0], credit, l.number)
	l.node.Host.Tell(peer, binary.LittleEndian.AppendUint64(b, read))
}

// replicas is how many there are in this process. Where they outnumber its processors a lane that waits lets other
// goroutines run at each look, and no other threads: what it waits for is done by a goroutine. With sched_yield after
// each look, and a turn for the others in every 256, an all-reduce of 8 B among eight on two cores took 4.6 ms, and
// takes 0.2 (AMD EPYC, 2026-11-26; beside a busy loop 4.6 and 0.9).
var replicas atomic.Int64

// pause is a wait of an Exchange for progress.
type pause struct {
	looks   int // in vain
	began   time.Time
	last    time.Time // of the last look
	parks   int       // in this Exchange
	noticed bool      // the others have been told, in this Exchange

	probe    time.Time     // when the next probe is due, once the others have been told
	interval time.Duration // until the one after
}

// inquiries is a lane's side of the inquiries to a replica.
type inquiries struct {
	sent uint32 // number of the last one

	come  uint64    // what had come at the last look, by Gauge.Come's second result
	moved time.Time // of the first look that found as much; zero: no look yet in this Exchange
	next  time.Time // when to ask again, or to look again
	short time.Time // since when it is known that not all has come; zero: it is not known
	late  bool      // Config.Silence is over, and the lane looks a last time
}

// aside is the rest of a message whose turn in its chain of folds has not come, put aside so that what is behind it in
// the stream can be read: a peer may not be able to go on before this replica has read that.
type aside struct {
	at    int // the receive of the batch
	from  int // where in its Buf the bytes belong, a multiple of frameAlign
	bytes []byte
	come  int // of bytes: have arrived
	taken int // of bytes: have been folded
}
