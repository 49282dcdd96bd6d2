package tcp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/agree"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/stream"
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

	shm     *shared  // nil: all messages go over sockets
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

// newMesh makes what connections of a replica are kept in. Its controls are set by who connects. It has memory to share
// if it goes by memory alone, or shares it with one of all, or may with newcomers.
func (l *Listener) newMesh(c Config, at Address, all []Address) (*mesh, error) {
	m := &mesh{config: c, listener: l, address: at, joined: make(chan int, c.Size)}
	sharing := 0 // with itself, and others
	for _, a := range all {
		if at.shares(a) {
			sharing++
		}
	}
	shares := c.Network.memory() || sharing > 1 || c.Most > 0 && at.Memory != ""
	if m.shm, l.shm = l.shm, nil; !shares {
		m.shm.close(nil)
		m.shm = nil
	} else if m.shm == nil {
		var err error
		if m.shm, err = newShared(c.Rank, c.form); err != nil {
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

// shares reports whether this replica and another one give each other their memory.
func (m *mesh) shares(place int) bool {
	return m.config.Network.memory() || m.shm != nil && m.address.shares(m.addressOf(place))
}

// addressOf is where a replica is.
func (m *mesh) addressOf(place int) Address {
	if place == m.config.Rank {
		return m.address
	}
	return m.at(place).address
}

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

// failure is the abort of which this replica knows, or nil: in its own words if it is this one's.
func (m *mesh) failure() error {
	err := m.now.Load().node.Err()
	if own, ok := err.(*transport.AbortError); ok && own.Replica == m.config.Rank {
		return own.Cause
	}
	return err
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
