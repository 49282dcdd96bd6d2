package tcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/agree"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/stream"
	"gogcl.dev/transport/internal/user"
)

// mesh is one replica's connections to the others, for as long as the job lasts. The replicas have the numbers of the
// first generation: a replica's place.
type mesh struct {
	config   Config
	listener *Listener
	address  Address // of this replica

	waiting  atomic.Bool                // some newcomer waits with all members
	controls atomic.Pointer[[]*control] // by place; nil for its own, and for those that this replica never knew
	now      atomic.Pointer[generation]

	life    sync.Mutex // guards what follows, what a generation has agreed on, and that controls grow
	council *agree.Member
	unsure  time.Time     // when the kernel was asked first who has ended; zero: not in this generation
	open    []*generation // whose node is not closed
	leaves  bool          // this replica leaves the job
	desk    bool          // this replica answers newcomers: it is the first of those that are left

	ctx    context.Context // ends with the mesh; dials in progress have it
	cancel context.CancelFunc
	work   sync.WaitGroup // dials, heartbeats, the listeners' loops

	working sync.Mutex // guards left, and that work grows; nothing else is locked within it
	left    bool       // this replica has left

	began   time.Time
	beaten  atomic.Int64 // when heartbeats were told last, since began
	stopped atomic.Bool  // for so long that others may have held this replica for gone

	joined chan int // replicas that have dialled a control connection

	shm     *shared  // nil: messages go over sockets
	arrival *arrival // nil: this replica began the job

	taken    atomic.Uint64 // connections of others that have started
	attempts atomic.Uint64 // the last of this replica's attempts to dial a control connection: see attemptBits

	mu      sync.Mutex // guards refusal
	refusal string     // the last connection that was not taken, and why
}

// spin is how long a replica that waits keeps looking. With 60 us both sides may come to park for every message, which
// takes 93 to 217 us instead of 6.6. With 0.5 ms and sched_yield it takes 6.5 to 8, and on a busy machine 35, where
// looking without end takes 1,600 (a spike, 2026-11-22, four cores, 8 B between two). Eight replicas on four cores that
// yield after each look take 90 us for an all-reduce of 8 B, and 200 if they park at once.
const spin = 500 * time.Microsecond

// Connect connects the replica to all others, whose addresses are by rank, and returns its endpoint, which closes the
// Listener. All replicas must call it. The error names the replicas that cannot be reached, or have not come when ctx
// is done, which alone bounds how long they are waited for; then the Listener is closed.
func (l *Listener) Connect(ctx context.Context, addresses []Address) (transport.Endpoint, error) {
	c := l.config
	c.form = c.segmentForm()
	if len(addresses) != c.Size {
		l.Close()
		return nil, fmt.Errorf("tcp: %d addresses of %d replicas", len(addresses), c.Size)
	}
	m, err := l.newMesh(c, addresses[c.Rank])
	if err != nil {
		return nil, err
	}
	controls := make([]*control, c.Size)
	for r := range controls {
		if r != c.Rank {
			controls[r] = newControl(m, r)
			controls[r].isAt(addresses[r])
		}
	}
	m.controls.Store(&controls)
	g, err := m.found()
	if err != nil {
		m.cancel()
		l.Close()
		m.shm.close(m.all())
		return nil, err
	}
	if c.meets != nil {
		c.meets(m)
	}
	m.serve()
	m.beat()
	if err := m.meet(ctx); err != nil {
		g.lane.Abort(err)
		g.lane.Close()
		return nil, fmt.Errorf("tcp: replica %d: %w", c.Rank, err)
	}
	return g.newEndpoint(g.lane, g.where), nil
}

// newMesh makes what connections of a replica are kept in. Its controls are set by who connects.
func (l *Listener) newMesh(c Config, at Address) (*mesh, error) {
	m := &mesh{config: c, listener: l, address: at, joined: make(chan int, c.Size)}
	if c.Network.memory() {
		var err error
		m.shm, l.shm = l.shm, nil
		if m.shm == nil {
			m.shm, err = newShared(c.Rank, c.form)
		}
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("tcp: replica %d: network %q: %w", c.Rank, c.Network, err)
		}
	}
	if m.shm != nil && c.Crowded {
		m.shm.crowd.Force(true)
	}
	m.address.Where = handshake.Bounded(m.address.Where, maxWhere)
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.attempts.Store(uint64(rand.Uint32()) << attemptBits)
	return m, nil
}

// all are the control connections, by place.
func (m *mesh) all() []*control { return *m.controls.Load() }

// at is the control connection to a replica, or nil: it is this one, or one that it never knew.
func (m *mesh) at(place int) *control {
	if all := m.all(); place < len(all) {
		return all[place]
	}
	return nil
}

// addressOf is where a replica is.
func (m *mesh) addressOf(place int) Address {
	if place == m.config.Rank {
		return m.address
	}
	return m.at(place).address
}

// maxEarly bounds how many connections of a replica wait for a generation.
const maxEarly = 1 << 10

// found begins the first generation, of all.
func (m *mesh) found() (*generation, error) {
	all := make([]int, m.config.Size)
	for place := range all {
		all[place] = place
	}
	m.council = agree.New(m.config.Rank, all, m.most(), council{m})
	return m.begin(0, all)
}

// abort has the calls of all members fail.
func (m *mesh) abort(err error) { m.now.Load().node.Abort(err) }

// serve takes the connections of others.
func (m *mesh) serve() {
	stack, _ := m.config.stack()
	for _, l := range m.listener.listeners {
		server := &handshake.Server{Secret: m.config.Secret, Job: m.config.Job, Channel: m.listener.channel,
			Check: m.admit, Joined: m.join, Refused: m.refused, Spare: stack.Spare, Short: m.short}
		m.work.Go(func() { server.Serve(l) })
	}
}

// admit says what is wrong with a connection that has the secret.
func (m *mesh) admit(conn net.Conn, h handshake.Hello) error {
	if m.listener.ownUser {
		if err := user.Check(conn); err != nil {
			return err
		}
	}
	switch me := m.config.Rank; {
	case h.Peer != me:
		return &handshake.WrongPeerError{Wanted: h.Peer, Reached: me}
	case h.Rank > me && h.Role == handshake.Control && m.config.Most > 0:
		return m.admitNewcomer(conn, h)
	case h.Rank >= me:
		return fmt.Errorf("replica %d dials replica %d: the lower number dials", h.Rank, me)
	case h.Role == handshake.Control && m.at(h.Rank) == nil:
		return fmt.Errorf("replica %d is not in the job any more", h.Rank)
	case h.Role == handshake.Control:
		return m.at(h.Rank).reserve(conn, h.Lane)
	case h.Role == handshake.Data && m.shm != nil:
		return fmt.Errorf("replica %d dials a connection for data, and this replica shares memory: give all replicas "+
			"transport %q", h.Rank, Shm)
	case h.Role != handshake.Data:
		return fmt.Errorf("a connection for %v: this replica is past that", h.Role)
	case m.at(h.Rank) == nil || !m.at(h.Rank).isReserved():
		return fmt.Errorf("replica %d has no control connection yet: that comes first", h.Rank)
	}
	return nil
}

// short ends the job for want of descriptors, if a replica is to dial this one. Else a stranger has dialled, and the
// job has all the connections that it needs.
func (m *mesh) short(short *handshake.ShortError, _ time.Duration) {
	if m.expects() {
		m.abort(fmt.Errorf("replica %d cannot take connections of others: %w", m.me(), short))
	}
}

// expects reports whether this replica waits for another one to dial.
func (m *mesh) expects() bool {
	for _, c := range m.all() { // of a newcomer they may be fewer than its number
		if c != nil && c.peer < m.config.Rank && !c.isReserved() && m.arrival == nil {
			return true
		}
	}
	return m.shm == nil && m.now.Load().node.Expects()
}

// refused gives back what admit has reserved for a connection that failed after it, and notes why, for the error if a
// replica does not come.
func (m *mesh) refused(conn net.Conn, h handshake.Hello, err error) {
	m.mu.Lock()
	m.refusal = fmt.Sprintf("; a connection from %v was refused: %v", conn.RemoteAddr(), err)
	m.mu.Unlock()
	if short, ok := errors.AsType[*handshake.ShortError](err); ok && m.now.Load().has(h.Rank) { // no newcomer
		m.abort(fmt.Errorf("replica %d cannot take a connection of replica %d: %w", m.me(), m.number(h.Rank), short))
	}
	if h.Role == handshake.Control && m.at(h.Rank) != nil {
		m.at(h.Rank).release(conn)
	}
}

// missing says which replicas have not come.
func (m *mesh) missing(replicas map[int]bool, why error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Errorf("replicas %v have not come: %w%s", slices.Sorted(maps.Keys(replicas)), why, m.refusal)
}

// started is the byte that a dialer sends when it has read that it is accepted. Without it a connection that the dialer
// has given up in the last moment would count as one, and stand in the way of the dialer's next.
const started = 1

// startLimit is how long that byte is waited for. The dialer has proved the secret, and may be short of processors.
const startLimit = 4 * handshake.Limit

// join takes over a connection that a replica has dialled.
func (m *mesh) join(conn net.Conn, h handshake.Hello) {
	stop := context.AfterFunc(m.ctx, func() { conn.Close() })
	var b [1]byte
	conn.SetReadDeadline(time.Now().Add(startLimit))
	_, err := conn.Read(b[:])
	conn.SetReadDeadline(time.Time{})
	if !stop() || err != nil || b[0] != started {
		conn.Close()
		if h.Role == handshake.Control {
			m.at(h.Rank).release(handshake.Bare(conn))
		}
		return
	}
	m.taken.Add(1)
	if h.Role == handshake.Control {
		near, err := m.near(m.ctx, conn, h.Rank)
		if err != nil {
			if m.ctx.Err() == nil && h.Rank < m.config.Rank {
				m.abort(fmt.Errorf("replica %d cannot connect with replica %d: %w", m.me(), m.number(h.Rank), err))
			}
			conn.Close()
			m.at(h.Rank).release(handshake.Bare(conn))
			return
		}
		if m.at(h.Rank).start(conn, handshake.Bare(conn), near) && h.Rank < m.config.Rank && m.arrival == nil {
			m.joined <- h.Rank
		}
		return
	}
	if g := m.await(h.Rank, h.Lane); g != nil {
		g.attach(h.Rank, h.Lane, conn)
	} else {
		conn.Close()
	}
}

// await waits for the generation of a lane that another replica has opened, which may have learnt of the generation
// first. nil: it is over, or never comes.
func (m *mesh) await(peer int, lane uint64) *generation {
	defer m.at(peer).early.Add(-1)
	if m.at(peer).early.Add(1) > maxEarly {
		return nil
	}
	for {
		now := m.now.Load() // before the look
		g := m.of(lane)
		if g != nil || stream.GenerationOf(lane) != now.number+1 && !m.arrival.waits() {
			return g
		}
		select {
		case <-now.over:
			if m.now.Load() == now { // it is the last one
				return nil
			}
		case <-m.ctx.Done():
			return nil
		}
	}
}

// near is what a replica gives of its memory over a new control connection, nil where messages go over sockets.
func (m *mesh) near(ctx context.Context, conn net.Conn, peer int) (*neighbour, error) {
	if m.shm == nil {
		return nil, nil
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(startLimit))
	near, err := m.shm.swap(conn, peer, m.config.form)
	conn.SetDeadline(time.Time{})
	if !stop() && err == nil {
		near.close()
		return nil, context.Cause(ctx)
	}
	return near, err
}

// attach gives a connection to its lane.
func (g *generation) attach(place int, lane uint64, conn net.Conn) {
	// No tune: a replica that computes reads nothing for as long as it likes, while heartbeats say that it is there.
	// The lane finds a connection that is silent: stream.Config.Silence.
	link, err := newLink(conn, g.config.ring)
	if short := handshake.Shortage(err); short != nil {
		g.node.Abort(g.cannotConnect(place, short))
		return
	}
	if err != nil {
		g.lost(place, fmt.Errorf("replica %d cannot use a connection to it: %w", g.me(), err))
		return
	}
	g.give(place, lane, link)
}

// give gives a link to its lane.
func (g *generation) give(place int, lane uint64, link stream.Link) {
	if !g.has(place) {
		link.Close()
		return
	}
	g.node.Attach(g.numbers[place], lane, link)
}

// tune has a host that does not answer end a control connection to it.
func (m *mesh) tune(conn net.Conn) {
	c, ok := handshake.Bare(conn).(*net.TCPConn)
	silence := m.config.silence()
	if !ok || silence == 0 {
		return
	}
	c.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: max(silence/2, time.Second), Interval: max(silence/8, time.Second), Count: 4,
	})
	limitSilence(c, silence)
}

// wordTime is how long a replica goes on to meet the others after one of them has failed or is lost. In a job whose
// others all come, it is the first call that tells of the failure.
const wordTime = 2 * time.Second

// meet dials the control connections to replicas with greater numbers and waits for those of the others.
func (m *mesh) meet(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var dials errgroup.Group
	missing := map[int]bool{}
	come := make(chan error, 1)
	done := m.now.Load().node.Done()
	var late <-chan time.Time // when those who are still there have had the time to come
	me, size := m.config.Rank, m.config.Size
	for r := range me {
		missing[r] = true
	}
	go func() {
		for r := me + 1; r < size; r++ {
			dials.Go(func() error {
				err := m.meetOne(ctx, r)
				if err != nil && ctx.Err() == nil {
					m.abort(err) // those who come still hear why, and look no further
				}
				return err
			})
		}
		come <- dials.Wait()
	}()
	look := time.NewTicker(endTime)
	defer look.Stop()
	var failed error
	for dialled := false; !dialled || len(missing) > 0; {
		select {
		case r := <-m.joined:
			delete(missing, r)
		case failed = <-come:
			dialled = true
			if f := m.config.dialled; f != nil && failed == nil {
				f(me)
			}
		case <-look.C:
			ended := m.ended(missing)
			if len(ended) == 0 {
				break
			}
			m.abort(endedError(ended)) // those who come still hear why; it may be a consequence of what is known
			if dialled && len(ended) == len(missing) {
				return m.failure()
			}
		case <-done: // one has come and failed, or is lost
			done = nil
			late = time.After(cmp.Or(m.config.word, wordTime))
		case <-late:
			lost := m.failure()
			cancel()
			if !dialled {
				<-come
			}
			return lost
		case <-ctx.Done():
			if !dialled {
				failed = <-come
			}
			if failed == nil {
				failed = m.missing(missing, context.Cause(ctx))
			}
			return failed
		}
	}
	if known := m.failure(); failed != nil && known != nil { // which came first
		return known
	}
	return failed
}

// failure is the abort of which this replica knows, or nil: in its own words if it is this one's.
func (m *mesh) failure() error {
	err := m.now.Load().node.Err()
	if own, ok := err.(*transport.AbortError); ok && own.Replica == m.config.Rank {
		return own.Cause
	}
	return err
}

// meetOne dials the control connection to a replica.
func (m *mesh) meetOne(ctx context.Context, r int) error {
	conn, err := m.dial(ctx, r, handshake.Control, 0)
	if err != nil {
		if short := (*handshake.ShortError)(nil); errors.As(err, &short) && short.Err != nil {
			return m.cannotConnect(r, short)
		}
		return fmt.Errorf("replica %d: %w", r, err)
	}
	near, err := m.near(ctx, conn, r)
	if err != nil {
		conn.Close()
		return err
	}
	m.at(r).start(conn, nil, near)
	return nil
}

// ended are the replicas that have not come and never will, ascending: their processes have ended.
func (m *mesh) ended(missing map[int]bool) (ended []int) {
	for _, r := range slices.Sorted(maps.Keys(missing)) {
		if c := m.at(r); c.process.ended(0) && !c.isReserved() { // in this order: it may come, and end then
			ended = append(ended, r)
		}
	}
	return ended
}

// endedError names all of them: one may have ended for another.
func endedError(replicas []int) error {
	if len(replicas) == 1 {
		return fmt.Errorf("replica %d has not come: its process has ended", replicas[0])
	}
	return fmt.Errorf("replicas %v have not come: their processes have ended", replicas)
}

// connect makes the link of a lane to a replica.
func (g *generation) connect(place int, lane uint64) {
	m := g.mesh
	m.goes(func() {
		if m.shm != nil {
			g.connectRings(place, lane)
			return
		}
		conn, err := m.dial(m.ctx, place, handshake.Data, lane)
		if err == nil {
			g.attach(place, lane, conn)
			return
		}
		var timeout *handshake.TimeoutError
		var closed *handshake.ClosedError
		short, isShort := errors.AsType[*handshake.ShortError](err)
		switch {
		case isShort && short.Err != nil:
			g.node.Abort(m.cannotConnect(place, short))
		case isShort, errors.As(err, &timeout), errors.As(err, &closed):
			g.lost(place, err)
		default:
			// The word of a replica that cannot be reached, which may have left or aborted, is on its way: the lane
			// waits for it.
			g.give(place, lane, brokenLink{err})
		}
	})
}

// cannotConnect is the error of a replica that has no descriptor for a connection.
func (m *mesh) cannotConnect(peer int, short *handshake.ShortError) error {
	return fmt.Errorf("replica %d cannot connect with replica %d: %w", m.me(), m.number(peer), short)
}

// parker makes a Parker for a lane.
func (m *mesh) parker(lane uint64) (p stream.Parker, err error) {
	switch _, system := m.config.stack(); {
	case m.shm != nil:
		p, err = m.shm.newSleeper(lane)
	case !system: // links are pumps, and a bubble does not see a thread that waits
		p = newBell()
	default:
		p, err = newParker()
	}
	if err != nil {
		return nil, fmt.Errorf("tcp: replica %d cannot open a lane, which takes two descriptors, "+
			"and one for each replica that it speaks to: %w", m.me(), err)
	}
	return p, nil
}

// leave ends all connections, when what is to be told is told.
func (m *mesh) leave() {
	m.life.Lock()
	m.leaves = true // no newcomer is added any more
	m.life.Unlock()
	m.bid()
	m.cancel()
	m.listener.Close()
	for _, c := range m.all() {
		if c != nil {
			<-c.written
		}
	}
	m.working.Lock()
	m.left = true
	m.working.Unlock()
	m.work.Wait()
}

// goes has something done on a goroutine of the mesh, unless this replica has left.
func (m *mesh) goes(f func()) {
	m.working.Lock()
	defer m.working.Unlock()
	if !m.left {
		m.work.Go(f)
	}
}

// wasStopped reports whether this replica has told no heartbeat for nearly as long as others wait for one, now or at
// any time before.
func (m *mesh) wasStopped() bool {
	silence := m.config.silence()
	return m.stopped.Load() || silence > 0 && time.Since(m.began)-time.Duration(m.beaten.Load()) > silence*3/4
}

// beat has the replica say something to all others, again and again.
func (m *mesh) beat() {
	silence := m.config.silence()
	if silence == 0 {
		return
	}
	m.began = time.Now()
	m.work.Go(func() {
		// A pause of four fifths of Silence, after the longest time without a word, is still within Silence.
		t := time.NewTicker(max(silence/8, time.Millisecond))
		defer t.Stop()
		var beat []byte
		for {
			select {
			case <-t.C:
				if hooks := m.config.tests; hooks != nil {
					hooks.runs()
				}
				m.stopped.Store(m.wasStopped())
				m.beaten.Store(int64(time.Since(m.began)))
				beat = appendHeartbeat(beat[:0], m.taken.Load())
				for _, c := range m.all() {
					if c != nil {
						c.tell(beat)
					}
				}
			case <-m.ctx.Done():
				return
			}
		}
	})
}
