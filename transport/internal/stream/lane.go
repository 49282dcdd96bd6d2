package stream

import (
	"context"
	"errors"
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
	peers  []peer // by replica

	procs int64 // on which the goroutines of this process run

	busy    sync.Mutex // held by the Exchange in progress
	closed  atomic.Bool
	answers atomic.Pointer[func(transport.Call) (transport.Call, bool)] // see AnswerBy
	events  atomic.Uint64                                               // of what others have told: seen before a park
	parked  atomic.Bool

	// Guarded by busy.
	checker   transport.Checker
	history   calls.History
	call      transport.Call
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
	settled   bool   // Exchange leaves in the ordinary way
	torn      bool   // Close has come in the middle of a call; under node.mu
	engaged   bool   // the call in progress is an Engage
	heardOf   uint64 // events, before the last look
	pause     pause
	ended     uint          // calls that have ended
	crowded   time.Time     // until when the processors count as crowded
	room      [64]byte      // for a control message
	parted    chan struct{} // closed when Close has told the others and let the links go
	chase     chased
}

// historyLength is how many calls a lane remembers one by one. A message may be of a call that began MaxUnread calls
// with its sender ago; calls without that sender lie between.
const historyLength = 4 * transport.MaxUnread

// partingLength is how many of them a replica that leaves tells the others.
const partingLength = 16

// chased is what a lane knows of probes.
type chased struct {
	number uint32         // of its own last one
	still  bool           // nothing has moved since
	passed map[int]uint32 // by replica: the last of its probes that this one has passed on

	any   atomic.Bool // come is not empty
	come  []probe     // under node.mu
	spare []probe     // those before them, whose memory serves again

	path, message []byte // memory for probes that are sent
}

// room is memory for the path of the next probe that comes. The caller holds node.mu.
func (c *chased) room() []stationCall {
	if n := len(c.come); n < cap(c.come) {
		return c.come[:n+1][n].path[:0]
	}
	return nil
}

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

	last    int    // bytes of the last message that has begun to be sent
	hidden  bool   // the peer has been told that this lane does not see its credit
	sought  bool   // the link, by the lane
	asked   bool   // under node.mu: the link is being made
	watched bool   // the parker watches the link
	mute    ending // the link takes no more
	deaf    ending // the link brings no more

	// Sending.
	sends  []int  // of the batch
	turn   int    // sends[:turn] have been taken by the link
	begun  bool   // frames from sends[turn] on are on their way
	frames int    // how many
	length int    // bytes of them
	out    int    // bytes of them that the link has taken
	stage  []byte // they, if they are short
	bounds []int  // where each ends on the stage
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

// notice is the call in which a peer has said that it waits. It is memory of its own, so that a machine on which all
// waits are long allocates nothing.
type notice struct {
	any atomic.Bool

	mu   sync.Mutex // guards call
	call transport.Call
}

// set notes that the peer waits in a call.
func (n *notice) set(call transport.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.call = call
	n.any.Store(true)
}

// read returns the call, if there is one.
func (n *notice) read() (call transport.Call, any bool) {
	if !n.any.Load() {
		return call, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.call, true
}

// clear forgets the call, unless another one has come.
func (n *notice) clear(call transport.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.call == call {
		n.any.Store(false)
	}
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
	for i := range l.peers {
		l.peers[i].at = -1
	}
	l.onDone = l.wake
	l.procs = int64(runtime.GOMAXPROCS(0))
	if number == rootLane {
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

var errUnwound = errors.New("a Fold panicked or ended its goroutine")

// Exchange implements transport.Endpoint.
func (l *Lane) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	if !l.busy.TryLock() {
		return l.refuse(&call)
	}
	if err := l.checker.Check(l.node.Rank, l.node.Size, batch); err != nil {
		l.busy.Unlock()
		return err
	}
	if l.closed.Load() {
		l.busy.Unlock()
		return l.refuse(&call)
	}
	l.begin(ctx, call, batch)
	defer l.end()
	err := l.run()
	if err != nil {
		l.retract()
	}
	l.settled = true
	return err
}

// refuse is the error of a call on a lane that is closed, or in another call.
func (l *Lane) refuse(call *transport.Call) error {
	err := transport.ErrBusy
	if l.closed.Load() {
		err = &transport.ClosedError{Replica: l.node.Rank}
		if aborted := l.node.aborted.Load(); aborted != nil {
			err = aborted
		}
	}
	return &transport.RoundError{Replica: l.node.Rank, Round: call.Round, Peer: -1, Err: err}
}

// begin sets out what is to be done. It sends nothing.
func (l *Lane) begin(ctx context.Context, call transport.Call, batch []transport.Transfer) {
	l.ctx, l.done, l.call, l.batch = ctx, ctx.Done(), call, batch
	l.history.Add(&call)
	l.settled, l.pending, l.active = false, len(batch), l.active[:0]
	l.progress = append(l.progress[:0], make([]int, len(batch))...)
	l.pause, l.asides, l.chase.still = pause{}, l.asides[:0], false
	for i := range batch {
		t := &batch[i]
		p := &l.peers[t.Peer]
		if len(p.sends) == 0 && p.recvs == 0 {
			l.active = append(l.active, t.Peer)
		}
		if t.Kind == transport.Send {
			p.sends = append(p.sends, i)
			continue
		}
		p.recvs++
		if more := int(t.Tag) + 1 - len(p.byTag); more > 0 {
			p.byTag = append(p.byTag, make([]int32, more)...)
		}
		p.byTag[t.Tag] = int32(i) + 1
	}
}

// end lets go of the batch. After a Fold that did not return it does first what run would have done.
func (l *Lane) end() {
	if !l.settled {
		l.fail(nil, errUnwound)
		l.retract()
	}
	for i := range l.batch {
		if t := &l.batch[i]; t.Kind != transport.Send {
			l.peers[t.Peer].byTag[t.Tag] = 0
		}
	}
	for _, r := range l.active {
		p := &l.peers[r]
		p.sends, p.turn, p.recvs = p.sends[:0], 0, 0
	}
	l.ctx, l.done, l.batch = nil, nil, nil
	shares := l.shares()
	l.busy.Unlock()
	if shares {
		runtime.Gosched()
	}
}

// run carries out the batch.
func (l *Lane) run() error {
	if err := l.interruption(); err != nil {
		return l.fail(nil, err)
	}
	for {
		l.heardOf = l.events.Load()
		moved, err := l.step()
		if err == nil && l.poller != nil {
			moved = l.poll(moved)
		}
		switch {
		case err != nil:
			return err
		case l.pending == 0:
			return nil
		case moved:
			l.pause.looks, l.chase.still = 0, false
			continue
		}
		if err := l.interrupted(); err != nil {
			return err
		}
		if err := l.wait(); err != nil {
			return err
		}
	}
}

// poll has the parker start what the step has given to links, and look for what is next: for a while if nothing has
// moved.
func (l *Lane) poll(moved bool) bool {
	limit := pollTime
	if moved || l.pending == 0 {
		limit = 0
	}
	return l.poller.Poll(limit) || moved
}

// retract has the links let go of the memory of the batch, which has failed.
func (l *Lane) retract() {
	for _, r := range l.active {
		if link := l.peers[r].link.Load(); link != nil {
			if p, ok := link.Link.(Poster); ok {
				p.Retract()
			}
		}
	}
}

// step does what can be done without waiting. It sends first: others wait for that.
func (l *Lane) step() (moved bool, err error) {
	for _, r := range l.active {
		p := &l.peers[r]
		if p.turn == len(p.sends) || p.mute.err != nil {
			continue
		}
		link := p.link.Load()
		if link == nil {
			l.seekLink(r)
			continue
		}
		pushed, err := l.push(r, link)
		if err != nil {
			return moved, err
		}
		moved = moved || pushed
	}
	for _, r := range l.active {
		p := &l.peers[r]
		link := p.link.Load()
		if link == nil && p.recvs > 0 {
			l.seekLink(r)
		} else if p.recvs > 0 && p.deaf.err == nil {
			pulled, err := l.pull(r, link)
			if err != nil {
				return moved, err
			}
			moved = moved || pulled
		}
	}
	if len(l.asides) > 0 {
		moved = l.applyAsides() || moved
	}
	return moved, nil
}

// seekLink has the link to a replica made.
func (l *Lane) seekLink(r int) {
	p := &l.peers[r]
	if p.sought || p.left.Load() != nil {
		return
	}
	p.sought = true
	l.node.mu.Lock()
	defer l.node.mu.Unlock()
	l.node.connect(r, l.number) // the lane is open, so there is no error
}
