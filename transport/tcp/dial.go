package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/user"
)

// The pauses between two attempts to dial.
const (
	minDialPause = 20 * time.Millisecond
	maxDialPause = 250 * time.Millisecond
)

// takeSilences is how many times Silence a replica may take nobody. Where this replica alone dials it, five handshakes
// in a row that are too slow would make up one Silence, as they did among 64 replicas on two cores beside other work.
const takeSilences = 6

// shortLimit is how long a replica that has no descriptor for a connection waits for one.
const shortLimit = time.Second

// dial makes a connection to a replica and shakes hands.
func (m *mesh) dial(ctx context.Context, peer int, role handshake.Role, lane uint64) (net.Conn, error) {
	return m.persist(ctx, peer, role, func() (net.Conn, error) {
		if role == handshake.Control {
			lane = m.attempts.Add(1)
		}
		return m.dialOnce(ctx, peer, role, lane)
	})
}

// persist calls once, which dials, until that succeeds or there is no hope. It tries again where the other side does
// not answer, or ends the connection within the handshake: so does one whose places strangers or other replicas have
// taken up, one that leaves, which does not listen any more the next time, and one that is stopped or overloaded. If it
// is lost, the control connection says so. A replica that takes nobody for takeSilences times Silence, while it says
// that it is there, is lost too. While there is no control connection, ctx alone says for how long to try.
func (m *mesh) persist(ctx context.Context, peer int, role handshake.Role, once func() (net.Conn, error)) (net.Conn,
	error) {
	pause, done := minDialPause, m.now.Load().node.Done()
	if role == handshake.Control {
		done = nil // who meets the others after a failure tells them of it
	}
	var last error
	ended := func() error {
		if last == nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w; the last attempt: %w", context.Cause(ctx), last)
	}
	since := time.Now()   // since when the peer has taken nobody
	var without time.Time // when the first of the attempts in a row has failed for want of a descriptor
	for {
		now := time.Now()
		conn, err := once()
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, ended()
		}
		last = err
		var timeout *handshake.TimeoutError
		var closed *handshake.ClosedError
		switch short := handshake.Shortage(err); {
		case short != nil:
			if without.IsZero() {
				without = now
			}
			if time.Since(without) >= shortLimit {
				return nil, short
			}
		case !errors.As(err, &timeout) && !errors.As(err, &closed) && !errors.Is(err, syscall.EAGAIN):
			return nil, err
		default:
			without = time.Time{}
			silence := m.config.silence()
			if role == handshake.Control || silence == 0 {
				break
			}
			if took := m.at(peer).lastTook(); took.After(since) {
				since = took
			}
			if limit := takeSilences * silence; time.Since(since) >= limit {
				return nil, fmt.Errorf("it has taken no connection for %v: %w", limit, err)
			}
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxDialPause)
		case <-done:
			return nil, err
		case <-ctx.Done():
			return nil, ended()
		}
	}
}

// dialOnce is dial without a second try.
func (m *mesh) dialOnce(ctx context.Context, peer int, role handshake.Role, lane uint64) (net.Conn, error) {
	here, there := m.address, m.at(peer).address
	network, address := "tcp", there.TCP
	if here.Host == there.Host && here.Unix != "" && there.Unix != "" {
		network, address = "unix", there.Unix
	}
	if address == "" {
		return nil, errors.New("it is on another host and does not listen on TCP")
	}
	stack, _ := m.config.stack()
	dialling, cancel := context.WithTimeout(ctx, handshake.Limit)
	defer cancel()
	conn, err := stack.Dial(dialling, network, address)
	if errors.Is(err, syscall.ECONNREFUSED) && network == "unix" && there.TCP != "" {
		// See HostName. If the replica has left, it does not listen on TCP either.
		address = there.TCP
		conn, err = stack.Dial(dialling, "tcp", address)
	}
	if isTimeout(err) {
		return nil, fmt.Errorf("%s: %w", address, &handshake.TimeoutError{Stage: "a connection", Err: err})
	}
	if err != nil {
		return nil, err
	}
	hello := handshake.Hello{Job: m.config.Job, Rank: m.config.Rank, Peer: peer, Role: role, Lane: lane}
	over, err := m.shake(ctx, conn, hello)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return over, nil
}

// shake shakes hands over a new connection, and closes it if that fails. It does not outlast ctx.
func (m *mesh) shake(ctx context.Context, conn net.Conn, hello handshake.Hello) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	over, err := m.listener.channel.Dial(conn, m.config.Secret, hello)
	if err == nil && m.listener.ownUser {
		err = user.Check(over)
	}
	if err == nil {
		first := byte(started)
		if hello.Role == handshake.Control && m.shares(hello.Peer) {
			first = startedNear
		}
		if _, err = over.Write([]byte{first}); err != nil {
			err = &handshake.ClosedError{Stage: "the byte that starts it", Err: err}
		}
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return over, nil
}
