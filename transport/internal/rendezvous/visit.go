package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/user"
)

// visit is Meet of any other replica over sockets.
func visit(ctx context.Context, c Config, at place) (Met, error) {
	conn, err := connect(ctx, c, at)
	if err != nil {
		return Met{}, err
	}
	defer conn.Close()
	// A handshake clears deadlines, so only now may the end of the context be one. At the end of its time a replica
	// says so, and hears from replica 0 who is missing, which all others hear, too.
	var says sayingHere
	stop := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Now().Add(c.linger)) // for what is being written, too
		says.mu.Lock()
		defer says.mu.Unlock()
		if ctx.Err() != context.DeadlineExceeded || !says.here {
			_ = conn.SetDeadline(time.Unix(1, 0))
			return
		}
		_, _ = conn.Write(appendMessage(nil, tagFailed, appendError(nil, outOfTime(ctx, c, at, ""))))
	})
	defer stop()

	local := ipOf(conn.LocalAddr())
	var blobs [][]byte
	blob, failed := c.blob(local)
	if failed == nil {
		blobs, failed = converse(ctx, c, at, conn, blob, &says)
	}
	if failed == nil {
		return Met{Blobs: blobs, Local: local}, nil
	}
	if failed.Kind == GaveUp && slices.Equal(failed.Replicas, []int{c.Rank}) {
		_ = conn.SetWriteDeadline(time.Now().Add(linger))
		_, _ = conn.Write(appendMessage(nil, tagFailed, appendError(nil, failed)))
	}
	return Met{}, failed
}

// sayingHere has what comes behind here wait until that is written.
type sayingHere struct {
	mu   sync.Mutex // guards here
	here bool       // it is written
}

// write says here. Where a Write fails, replica 0 may have said why. So the error is that of the next Read.
func (s *sayingHere) write(conn net.Conn, said []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := conn.Write(appendMessage(nil, tagHere, said))
	s.here = err == nil
}

// converse says here and returns the table when replica 0 says begin.
func converse(ctx context.Context, c Config, at place, conn net.Conn, blob []byte, says *sayingHere) ([][]byte,
	*Error) {
	says.write(conn, appendHere(nil, here{size: c.Size, left: timeLeft(ctx), self: self(), blob: blob}))
	var blobs [][]byte
	for {
		t, body, err := readMessage(conn, limitAtVisitor(c.Size))
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, outOfTime(ctx, c, at, "; replica 0 had taken it in and says nothing")
		case err != nil:
			return nil, hostGone(at, err)
		case t == tagFailed:
			e, err := parseError(body)
			if err != nil {
				return nil, hostGone(at, err)
			}
			return nil, e
		case t == tagTable && blobs == nil:
			if blobs, err = parseTable(body, c.Size); err != nil {
				return nil, hostGone(at, err)
			}
			_, _ = conn.Write(appendMessage(nil, tagGot, nil))
		case t == tagBegin && blobs != nil:
			return blobs, nil
		default:
			return nil, hostGone(at, errMalformed(fmt.Sprintf("message %d out of turn", t)))
		}
	}
}

// hostGone is the error when replica 0 ends in the middle.
func hostGone(at place, why error) *Error {
	return &Error{Kind: Gone, Replicas: []int{0}, Err: why, Reason: fmt.Sprintf(
		"replica 0 at %s is gone in the middle of the rendezvous (%v): see why its process ended", at.text, why)}
}

// outOfTime is the error of a replica whose own context has ended.
func outOfTime(ctx context.Context, c Config, at place, more string) *Error {
	e := gaveUp(ctx, c.Rank, more)
	if ctx.Err() == context.DeadlineExceeded {
		e.Kind, e.Replicas, e.Err = Missing, []int{0}, context.DeadlineExceeded
		e.Reason = fmt.Sprintf("replica %d has not met replica 0 of %d at %s in time%s", c.Rank, c.Size, at.text, more)
	}
	return e
}

// attemptLimit is how long one attempt to connect may take. A host that is down is tried again after that.
const attemptLimit = 5 * time.Second

// connect dials until replica 0 is there and the handshake is done.
func connect(ctx context.Context, c Config, at place) (net.Conn, error) {
	var strangerSince, shortSince time.Time
	last := errors.New("no attempt was made") // a stranger's, if there was one
	for wait := newBackoff(); ; {
		conn, err := attempt(ctx, c, at)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() == nil && (isStranger(err) || !isStranger(last)) {
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
				"replica %d cannot dial replica 0: %v", c.Rank, short)}
		case !isStranger(err):
			strangerSince = time.Time{}
		case strangerSince.IsZero():
			strangerSince = time.Now()
		case time.Since(strangerSince) >= c.patience:
			return nil, &Error{Kind: Stranger, Replicas: []int{0}, Err: err, Reason: fmt.Sprintf(
				"replica %d finds no replica 0 of job %q at %s: %v", c.Rank, c.Job, at.text, err)}
		}
		if !wait.pause(ctx) {
			return nil, outOfTime(ctx, c, at, fmt.Sprintf(" (%v): start replica 0 there; "+
				"if the others run, the job has begun without you", last))
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
	over, err := c.Channel.Dial(conn, c.Secret, handshake.Hello{Job: c.Job, Rank: c.Rank, Role: handshake.Rendezvous})
	if err == nil && c.ownUser() {
		err = user.Check(over)
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

// isStranger reports whether an attempt has reached somebody who is not replica 0 of this job.
func isStranger(err error) bool {
	return is[*handshake.ProtocolError](err) || is[*handshake.VersionError](err) || is[*handshake.SecretError](err) ||
		is[*handshake.JobError](err) || is[*handshake.WrongPeerError](err) || is[*handshake.RefusedError](err) ||
		is[*user.Error](err) || is[*handshake.TLSError](err) || errors.Is(err, handshake.ErrTampered)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
