package sim

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods/cost"
	"gogcl.dev/transport"
)

// Net is a simulated network and its time. Any goroutine may call its methods at any time.
type Net struct {
	config Config
	slow   []time.Duration // by replica
	shared sync.Map        // not the network's: see transport.Shared
	link   func() transport.Link

	kick   chan struct{} // with Config.Wait: tells drive to look again
	driven chan struct{} // with Config.Wait: closed when drive has returned

	mu        sync.Mutex // guards what follows, and of replicas, lanes and endpoints all that is not atomic
	unpinned  sync.Cond  // an endpoint's buffers are read no more
	simulator simulator
	root      *lane
	replicas  []*replica
	posts     []*endpoint // whose Exchange has begun and is not matched
	silences  int         // that have begun and are not over
	matches   []match     // scratch
	cuts      []cut
	busy      int  // without Config.Wait: replicas that do not wait and have not left
	left      int  // replicas that have
	over      bool // all calls fail, since time cannot go on
	changes   uint64
	looked    uint64 // with Config.Wait: changes when drive last looked for a circle through lanes

	watch    *time.Timer // without Config.Wait: has look look
	watching bool        // it will
	seen     uint64      // changes at the last look
	quiet    time.Duration
}

// replica is what the endpoints of a replica share.
type replica struct {
	rank    int
	aborted atomic.Pointer[transport.AbortError] // set once
	done    chan struct{}                        // closed right after
	told    atomic.Bool                          // an error of a call has said so

	lanes  []*endpoint // that are open
	calls  int         // of Exchange
	dies   int         // in which of them; 0: in none
	dead   bool
	closed bool
	away   bool // it has been long outside of calls
	idle   int  // Exchanges that wait
	awake  int  // Exchanges that have been woken and do not wait again
	busy   bool
}

// lane is one independent set of endpoints.
type lane struct {
	parent   *lane
	number   int // of the parent's
	id       uint64
	eps      []*endpoint     // by rank; nil: not made so far
	children map[int]*lane   // by number, until all replicas have their ends
	taken    int             // how many replicas have
	waiting  map[letter]half // messages of which one end has come
	active   int             // Exchanges in progress
}

// letter is what tells messages of a lane apart that are on their way at once.
type letter struct {
	from, to int32
	tag      uint32
}

// half is one end of a message: a transfer of the batch of an endpoint.
type half struct {
	e     *endpoint
	index int
}

// match is both ends of a message.
type match struct{ send, recv half }

// New makes a network and its endpoints, in the order of their ranks. Its time begins at 0 and goes on while endpoints
// are open. Errors: those of a Config that cannot be, and of a Config.Wait that panics, as synctest.Wait does outside
// of a bubble.
func New(c Config) (*Net, []transport.Endpoint, error) {
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	if err := c.tryWait(); err != nil {
		return nil, nil, err
	}
	size := c.Network.Replicas()
	n := &Net{config: c, slow: make([]time.Duration, size), kick: make(chan struct{}, 1), busy: size}
	n.config.Faults.Silence = cmp.Or(c.Faults.Silence, DefaultSilence)
	n.link = sync.OnceValue(func() transport.Link { return slowest(c.Network) })
	n.unpinned.L = &n.mu
	n.simulator = newSimulator(c.Network, c.Queued, n.arrived)
	n.root = newLane(size)
	out := make([]transport.Endpoint, size)
	for rank := range out {
		r := &replica{rank: rank, done: make(chan struct{}), busy: true}
		n.replicas = append(n.replicas, r)
		out[rank] = n.open(n.root, r)
	}
	n.plan()
	if c.Wait != nil {
		n.driven = make(chan struct{})
		undo := ticks.FollowTime() // so that the times that package gcl notes are the bubble's
		began := time.Now()
		go func() {
			defer close(n.driven)
			defer undo()
			n.drive(began)
		}()
	} else {
		n.watch = time.AfterFunc(time.Hour, n.look)
		n.watch.Stop()
	}
	return n, out, nil
}

func newLane(size int) *lane {
	return &lane{eps: make([]*endpoint, size), children: map[int]*lane{}, waiting: map[letter]half{}}
}

// Now is the time: how long ago the network was made.
func (n *Net) Now() time.Duration {
	if n == nil {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return duration(n.simulator.now)
}

// Messages is how many messages have been sent.
func (n *Net) Messages() int {
	if n == nil {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.simulator.messages
}

// Hash is a number made of all instants so far at which something happened. Two runs that have the same have gone the
// same way: those of the same program, Config and seed.
func (n *Net) Hash() uint64 {
	if n == nil {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.simulator.hash
}

// Model is that of the Config.
func (n *Net) Model() cost.Model {
	if n == nil {
		return cost.Model{}
	}
	return n.config.Model
}

// open makes an endpoint of a lane.
func (n *Net) open(l *lane, r *replica) *endpoint {
	e := &endpoint{n: n, lane: l, replica: r, rank: r.rank, wake: make(chan struct{}, 1), history: newHistory()}
	l.eps[r.rank] = e
	r.lanes = append(r.lanes, e)
	return e
}

// account notes whether a replica waits, after that may have changed.
func (n *Net) account(r *replica) {
	busy := !r.closed && !r.away && (r.awake > 0 || r.idle == 0 && !r.dead)
	if busy == r.busy {
		return
	}
	r.busy = busy
	if busy {
		n.busy++
	} else {
		n.busy--
	}
}

// settle has time pass if nobody has anything to do before. The caller holds n.mu, and has changed something.
func (n *Net) settle() {
	n.changes++
	if n.config.Wait != nil {
		select {
		case n.kick <- struct{}{}:
		default:
		}
		return
	}
	for n.busy == 0 && n.left < len(n.replicas) && n.advance() {
	}
	if !n.watching && n.left < len(n.replicas) {
		n.watching, n.seen, n.quiet = true, n.changes, 0
		n.watch.Reset(awayAfter)
	}
}

// look is called now and then while some wait. Time does not stand still for a replica that is away: for a while it has
// begun no call, and nobody else has got on.
//
// Nor do calls that wait for each other through several lanes wait for ever, though it may be that a replica makes
// calls on several goroutines, and that one is still to come.
func (n *Net) look() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watching = false
	if n.left == len(n.replicas) || !n.waits() {
		return
	}
	if n.quiet += awayAfter; n.seen != n.changes {
		n.quiet = 0
	}
	switch {
	case n.quiet == 0:
	case n.busy > 0:
		for _, r := range n.replicas {
			r.away = r.away || r.busy
			n.account(r)
		}
		n.settle()
	case n.quiet >= patience && n.circle(true):
		n.settle()
	}
	n.seen, n.watching = n.changes, true
	n.watch.Reset(awayAfter)
}

// missing reports whether a replica is away and may come back.
func (r *replica) missing() bool { return r.away && !r.dead && !r.closed }

// awayAfter is how long all wait for a replica that makes no call.
var awayAfter = time.Second

// patience is how long nothing has to change until a circle through several lanes ends the calls.
const patience = time.Minute

// advance does what can be done while nobody else does anything: it matches what has been posted, or goes on to the
// next instant. It reports whether there was anything.
func (n *Net) advance() bool {
	switch {
	case len(n.posts) > 0:
		n.matchPosts()
		return true
	case n.simulator.pending == 0 && n.circle(false): // nobody will go on
		return true
	case n.simulator.pending == 0 && n.silences == 0 && slices.ContainsFunc(n.replicas, (*replica).missing):
		return false // until the replica comes, or the first fault that is planned, which may be hours ahead
	}
	return n.simulator.step() || n.ended()
}

// ended has all calls fail, once, when time cannot go on. It reports whether it did.
func (n *Net) ended() bool {
	if n.simulator.err == nil || n.over {
		return false
	}
	n.over = true
	for _, r := range n.replicas {
		n.abort(r, fmt.Errorf("sim: %w", n.simulator.err))
	}
	return true
}

// drive has time pass in a bubble, until all endpoints are closed.
func (n *Net) drive(began time.Time) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		n.config.Wait()
		n.mu.Lock()
		if n.left == len(n.replicas) {
			n.mu.Unlock()
			return
		}
		// The bubble's time is whole nanoseconds. It is ahead if others have let it go on.
		passed, sleep, changes := time.Since(began), time.Duration(-1), n.changes
		at, ok := n.simulator.next()
		due := ok && duration(at) <= passed
		if !due && passed > duration(n.simulator.now) {
			n.simulator.now = passed.Seconds()
		}
		switch {
		case n.ended():
		case due:
			n.simulator.step()
		case len(n.posts) > 0:
			n.matchPosts()
		case n.simulator.pending == 0 && n.circle(false):
		case ok:
			sleep = duration(at) - passed
		case n.looked != changes && n.waits():
			sleep = patience
		default: // what is to come comes from outside of calls, where synctest finds a deadlock
			sleep = 0
		}
		n.mu.Unlock()
		if sleep < 0 {
			continue
		}
		timer.Stop()
		if sleep > 0 {
			timer.Reset(sleep)
		}
		select {
		case <-n.kick:
		case <-timer.C:
			n.mu.Lock()
			if _, ok := n.simulator.next(); !ok && n.changes == changes {
				n.looked = changes
				n.circle(true)
			}
			n.mu.Unlock()
		}
	}
}

// awaitDriver returns when drive has, if all replicas have left. Then nobody calls Config.Wait, and the next network of
// the bubble may.
func (n *Net) awaitDriver() {
	n.mu.Lock()
	last := n.left == len(n.replicas)
	n.mu.Unlock()
	if last && n.driven != nil {
		<-n.driven
	}
}

// waits reports whether any replica waits in a call.
func (n *Net) waits() bool {
	return slices.ContainsFunc(n.replicas, func(r *replica) bool { return r.idle > 0 })
}

// leave notes that a replica has closed its first endpoint.
func (n *Net) leave(r *replica) {
	if r.closed {
		return
	}
	r.closed = true
	n.left++
	n.account(r)
	if n.left == len(n.replicas) && n.watch != nil {
		n.watch.Stop()
	}
	n.settle()
}

// sorted brings endpoints in an order that does not hang on who came first.
func sorted(list []*endpoint) {
	slices.SortFunc(list, func(a, b *endpoint) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.lane.compare(b.lane))
	})
}

// compare orders lanes by the numbers of their Dups.
func (l *lane) compare(o *lane) int {
	if l == o {
		return 0
	}
	return slices.Compare(l.path(), o.path())
}

func (l *lane) path() []int {
	if l.parent == nil {
		return nil
	}
	return append(l.parent.path(), l.number)
}
