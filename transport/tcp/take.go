package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/stream"
	"gogcl.dev/transport/internal/user"
)

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
	case h.Role != handshake.Data:
		return fmt.Errorf("a connection for %v: this replica is past that", h.Role)
	case m.at(h.Rank) == nil || !m.at(h.Rank).isReserved():
		return fmt.Errorf("replica %d has no control connection yet: that comes first", h.Rank)
	case m.shares(h.Rank):
		return fmt.Errorf("replica %d dials a connection for data, and the two share memory: give all replicas "+
			"transport %q, or none", h.Rank, Shm)
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
	g := m.now.Load()
	return g.node.Expects(func(peer int) bool { return !m.shares(g.members[peer]) })
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

// started and startedNear are the byte that a dialer sends when it has read that it is accepted. Without it a
// connection that the dialer has given up in the last moment would count as one, and stand in the way of the dialer's
// next. startedNear says that both give each other their memory: see swap. Of a newcomer only that tells.
const (
	started     = 1
	startedNear = 3
)

// startLimit is how long that byte is waited for. The dialer has proved the secret, and may be short of processors.
const startLimit = 4 * handshake.Limit

// join takes over a connection that a replica has dialled.
func (m *mesh) join(conn net.Conn, h handshake.Hello) {
	stop := context.AfterFunc(m.ctx, func() { conn.Close() })
	var b [1]byte
	conn.SetReadDeadline(time.Now().Add(startLimit))
	_, err := conn.Read(b[:])
	conn.SetReadDeadline(time.Time{})
	near := b[0] == startedNear
	if !stop() || err != nil || b[0] != started && !near || near && h.Role != handshake.Control {
		conn.Close()
		if h.Role == handshake.Control {
			m.at(h.Rank).release(handshake.Bare(conn))
		}
		return
	}
	m.taken.Add(1)
	if h.Role == handshake.Control {
		near, err := m.given(conn, h.Rank, near)
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

// maxEarly bounds how many connections of a replica wait for a generation.
const maxEarly = 1 << 10

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

// given is what a replica that has dialled gives of its memory, if it says that it does.
func (m *mesh) given(conn net.Conn, peer int, says bool) (*neighbour, error) {
	switch newcomer := peer > m.config.Rank; {
	case says && m.shm == nil, !newcomer && says != m.shares(peer):
		conn.Write([]byte{started}) // which is no descriptor: the other side says what to do
		return nil, fmt.Errorf("one of the two is to share memory with the other, and the other is not: give all "+
			"replicas transport %q, or none", Shm)
	case !says:
		return nil, nil
	}
	return m.swap(m.ctx, conn, peer)
}

// swap gives a replica this one's memory over a new control connection, and takes what it gives. It is a process of the
// same user.
func (m *mesh) swap(ctx context.Context, conn net.Conn, peer int) (*neighbour, error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("replica %d seems to be on this host and does not answer on its unix socket: if it is another "+
			"machine, started from the same snapshot, give all replicas transport %q", peer, TCP)
	}
	if err := user.Check(conn); err != nil {
		return nil, fmt.Errorf("the shared memory of replica %d: %w", peer, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(startLimit))
	near, err := m.shm.swap(u, peer, m.config.form)
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
