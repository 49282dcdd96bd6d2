package handshake

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"gogcl.dev/internal/leaktest"
)

// TestServe: honest replicas get through among silent strangers, who are gone when Serve returns. On a busy machine the
// gate takes an honest one for a stranger, after its grace: it dials again, as those of package tcp do.
func TestServe(t *testing.T) {
	leaktest.Check(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const replicas, strangers = 100, 200
	var joined, refused, again atomic.Int64
	server := &Server{
		Secret: secret,
		Job:    "job",
		Check: func(conn net.Conn, h Hello) error {
			if h.Rank == 0 {
				return fmt.Errorf("%v may not be replica 0", conn.RemoteAddr())
			}
			return nil
		},
		Joined: func(conn net.Conn, h Hello) {
			joined.Add(1)
			conn.Close()
		},
		Refused: func(net.Conn, Hello, error) { refused.Add(1) },
	}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()

	dial := func() net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Error(err)
		}
		return conn
	}
	for range strangers {
		conn := dial()
		defer conn.Close()
	}
	var dialers sync.WaitGroup
	for rank := range replicas {
		dialers.Go(func() {
			var err error
			for range 100 {
				conn := dial()
				err = Dial(conn, secret, Hello{Job: "job", Rank: rank, Peer: 0, Role: Control})
				conn.Close()
				if !isA[*ClosedError](err) {
					break
				}
				again.Add(1)
			}
			if rank == 0 != isA[*RefusedError](err) || rank != 0 && err != nil {
				t.Errorf("replica %d: %v", rank, err)
			}
		})
	}
	dialers.Wait()
	l.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
	if joined.Load() != replicas-1 || refused.Load() != strangers+1+again.Load() {
		t.Errorf("%d joined, %d refused, %d dialed again", joined.Load(), refused.Load(), again.Load())
	}
}

// breaking is a listener whose Accept fails a few times.
type breaking struct {
	net.Listener
	errs []error
}

func (b *breaking) Accept() (net.Conn, error) {
	err := b.errs[0]
	b.errs = b.errs[1:]
	return nil, err
}

// TestServeGoesOn: what passes does not end the loop; what does not pass, does.
func TestServeGoesOn(t *testing.T) {
	passing := &net.OpError{Op: "accept", Err: syscall.EMFILE}
	reset := &net.OpError{Op: "accept", Err: syscall.ECONNABORTED}
	forGood := errors.New("for good")
	l := &breaking{errs: []error{passing, reset, passing, forGood, passing}}
	if err := new(Server).Serve(l); err != forGood || len(l.errs) != 1 {
		t.Errorf("%v, %d errors left", err, len(l.errs))
	}
}
