package handshake

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"gogcl.dev/internal/netstack"
)

// Server is what a listener does with its connections.
type Server struct {
	Secret  []byte
	Job     string
	Channel *Channel // nil: no TLS

	// Check is the check of [Accept], with the connection that the hello came by. Nil refuses nothing.
	Check func(net.Conn, Hello) error

	// Joined takes over an authenticated connection. It runs on the connection's own goroutine.
	Joined func(net.Conn, Hello)

	// Refused is told why a connection was not taken; see [Accept] for hello. The connection is closed afterwards. It
	// may be nil.
	Refused func(conn net.Conn, hello Hello, err error)

	// Short is told that no connection has been taken for [Limit] for want of a descriptor, with none left to say so to
	// those who dial, and is told again after each Limit more. lasts is how long that has gone on. Who dials may be a
	// stranger. Short may be nil.
	Short func(short *ShortError, lasts time.Duration)

	// Spare takes a file descriptor; see Serve. Nil: one of the operating system.
	Spare func() (io.Closer, error)
}

// Serve accepts connections and shakes hands with each on a goroutine of its own, at most [MaxUnauthenticated] at a
// time. It returns when the listener is closed, or fails for good, with the listener's error. By then it has ended the
// handshakes in progress, and every call of Joined has returned.
//
// It keeps a descriptor to spare. When Accept has had none for shortLimit, the next connection gets that one, and is
// refused by a *[ShortError] once it is authenticated: so the dialer hears whose limit it is, and Refused does. Where
// something else of the process has taken that one too, Short does.
func (s *Server) Serve(l net.Listener) error {
	gate := NewGate(MaxUnauthenticated)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer gate.closeAll()
	take := s.Spare
	if take == nil {
		take = netstack.System{}.Spare
	}
	spare, _ := take()
	defer func() {
		if spare != nil {
			spare.Close()
		}
	}()
	var without time.Time  // when Accept began to fail for want of a descriptor
	var told time.Duration // how long that had lasted when Short was told last
	for pause := minPause; ; {
		began := time.Now()
		conn, err := l.Accept()
		switch {
		case err == nil:
			pause = minPause
			if spare == nil { // conn may have the last descriptor
				spare, err = take()
			}
			short := Shortage(err)
			if short == nil {
				without, told = time.Time{}, 0
			}
			leave := gate.Enter(conn)
			conns.Go(func() { s.shake(conn, leave, short) })
		case isPassing(err):
			if short := Shortage(err); short != nil {
				if now := time.Now(); without.IsZero() || now.Sub(began) > maxPause { // before that it waited in peace
					without, told = now, 0
					if spare == nil {
						spare, _ = take()
					}
				}
				switch lasts := time.Since(without); {
				case spare != nil && lasts >= shortLimit:
					spare.Close()
					spare = nil
				case spare == nil && lasts >= told+Limit && s.Short != nil:
					told = lasts
					s.Short(short, lasts)
				}
			}
			time.Sleep(pause)
			pause = min(2*pause, maxPause)
		default:
			return err
		}
	}
}

// shortLimit is how long Serve waits for a descriptor before it refuses who comes. The dialer waits for Limit.
const shortLimit = Limit / 2

// errCrowded says why the gate has closed a connection.
var errCrowded = errors.New("too many connections are in a handshake")

// The pauses of Serve while Accept fails for a passing reason. They bound how late a closed listener is seen.
const (
	minPause = time.Millisecond
	maxPause = 100 * time.Millisecond
)

// isPassing reports whether an Accept may do better next time: a process out of descriptors, a connection that was
// reset before it was accepted.
func isPassing(err error) bool {
	passing, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && passing.Temporary() && !errors.Is(err, net.ErrClosed)
}

// shake runs the handshake of one connection. short is why it is refused, if it has the last descriptor.
func (s *Server) shake(conn net.Conn, leave func() bool, short *ShortError) {
	// An authenticated dialer gives its place back before it is told that it is accepted: the gate cannot close its
	// connection after that.
	check := func(h Hello) error {
		switch {
		case !leave():
			return errCrowded
		case short != nil:
			return short
		case s.Check == nil:
			return nil
		}
		err := s.Check(conn, h)
		if short := Shortage(err); short != nil {
			return short
		}
		return err
	}
	over, hello, err := s.Channel.Accept(conn, s.Secret, s.Job, check)
	leave()
	if err == nil {
		s.Joined(over, hello)
		return
	}
	if s.Refused != nil {
		s.Refused(conn, hello, err)
	}
	conn.Close()
}
