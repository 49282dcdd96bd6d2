package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/user"
)

// attemptLimit is how long one attempt to connect may take. A host that is down is tried again after that.
const attemptLimit = 5 * time.Second

// connect dials until the host is there and the handshake is done.
func connect(ctx context.Context, c Config, at place) (net.Conn, error) {
	var strangerSince, shortSince time.Time
	last := errors.New("no attempt was made") // one that says more than that nobody is there, if there was one
	for wait := newBackoff(); ; {
		conn, err := attempt(ctx, c, at)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() == nil && (tells(err) || !tells(last)) {
			last = err
		}
		short := handshake.Shortage(err)
		if short == nil {
			shortSince = time.Time{}
		} else if shortSince.IsZero() {
			shortSince = time.Now()
		}
		switch {
		case short != nil && time.Since(shortSince) >= c.patience:
			return nil, &Error{Kind: GaveUp, Replicas: []int{c.Rank}, Err: short, Reason: fmt.Sprintf(
				"replica %d cannot dial replica %d: %v", c.Rank, c.host, short)}
		case !isStranger(err):
			strangerSince = time.Time{}
		case strangerSince.IsZero():
			strangerSince = time.Now()
		case time.Since(strangerSince) >= c.patience:
			return nil, &Error{Kind: Stranger, Replicas: []int{c.host}, Err: err, Reason: fmt.Sprintf(
				"replica %d finds no replica %d of job %q at %s: %v", c.Rank, c.host, c.Job, at.text, err)}
		}
		if isStranger(err) && ctx.Err() == nil {
			c.speaker.once(fmt.Sprintf("replica %d has met somebody at %s who is no replica %d of the job, and tries again: %v",
				c.Rank, at.text, c.host, err))
		}
		c.speaker.waits(func() string {
			return fmt.Sprintf("replica %d has not met replica %d at %s: %v", c.Rank, c.host, at.text, last)
		})
		if !wait.pause(ctx) {
			return nil, outOfTime(ctx, c, at.text, fmt.Sprintf(" (%v): start replica %d there; "+
				"if the others run, the job has begun without you", last, c.host))
		}
	}
}

// attempt dials once and shakes hands.
func attempt(ctx context.Context, c Config, at place) (net.Conn, error) {
	dialing, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	conn, err := dialOnce(dialing, at)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	over, err := c.Channel.Dial(conn, c.Secret,
		handshake.Hello{Job: c.Job, Rank: c.Rank, Peer: c.host, Role: handshake.Rendezvous})
	if err == nil && c.guard(at.kind) == byUser {
		err = user.Check(conn)
	}
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return over, nil
}

// isStranger reports whether an attempt has reached somebody who is not the host of this job.
func isStranger(err error) bool {
	return is[*handshake.ProtocolError](err) || is[*handshake.VersionError](err) || is[*handshake.SecretError](err) ||
		is[*handshake.JobError](err) || is[*handshake.WrongPeerError](err) || is[*handshake.RefusedError](err) ||
		is[*user.Error](err) || is[*handshake.TLSError](err) || errors.Is(err, handshake.ErrTampered)
}

// tells reports whether an attempt has heard from somebody why it failed.
func tells(err error) bool { return isStranger(err) || is[*handshake.ShortError](err) }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// dialOnce connects to a place.
func dialOnce(ctx context.Context, at place) (net.Conn, error) {
	stack := netstack.Of(ctx)
	if at.kind == tcpSocket {
		return stack.Dial(ctx, "tcp", net.JoinHostPort(at.host, strconv.Itoa(int(at.port))))
	}
	conn, err := stack.Dial(ctx, "unix", at.path)
	if err != nil {
		return nil, err
	}
	if err := user.Check(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// backoff is the pause before the next attempt. It grows.
type backoff time.Duration

// The pauses of a backoff. At most, a thousand replicas make 4,000 attempts a second.
const (
	minPause = 5 * time.Millisecond
	maxPause = 250 * time.Millisecond
)

func newBackoff() *backoff { return new(backoff(minPause)) }

// pause waits, and reports whether the context goes on.
func (b *backoff) pause(ctx context.Context) bool {
	most := time.Duration(*b)
	*b = backoff(min(most*3/2, maxPause))
	return pause(ctx, most, nil)
}
