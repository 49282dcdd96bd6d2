package handshake

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

// process is one whose descriptors are counted: it listens, and Accept and a spare take one each.
type process struct {
	left    chan struct{} // the descriptors that are left
	waiting chan net.Conn // connections that have not been accepted
	over    chan struct{} // closed with the listener
}

func (p *process) take() error {
	select {
	case <-p.left:
		return nil
	default:
		return &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
}

// Close gives back the descriptor of a spare.
func (p *process) Close() error {
	p.left <- struct{}{}
	return nil
}

func (p *process) spare() (io.Closer, error) {
	if err := p.take(); err != nil {
		return nil, err
	}
	return p, nil
}

// counted is a connection with a descriptor of a process.
type counted struct {
	net.Conn
	of   *process
	once *sync.Once
}

func (c counted) Close() error {
	c.once.Do(func() { c.of.Close() })
	return c.Conn.Close()
}

// listening is the listener of a process. Like the kernel's it takes the descriptor first.
type listening struct{ *process }

func (l listening) Accept() (net.Conn, error) {
	if err := l.take(); err != nil {
		select {
		case <-l.over:
			return nil, net.ErrClosed
		default:
			return nil, err
		}
	}
	select {
	case conn := <-l.waiting:
		return counted{conn, l.process, new(sync.Once)}, nil
	case <-l.over:
		l.process.Close()
		return nil, net.ErrClosed
	}
}

func (l listening) Close() error   { close(l.over); return nil }
func (l listening) Addr() net.Addr { return &net.UnixAddr{} }

// dial connects to the process and shakes hands.
func (p *process) dial(rank int) error {
	mine, theirs := net.Pipe()
	p.waiting <- theirs
	defer mine.Close()
	return Dial(mine, secret, Hello{Job: "job", Rank: rank, Role: Control})
}

// TestServeShort: a process without descriptors refuses replicas, and says so to both sides; when it has some again, it
// takes them. A shortage that passes soon delays them only.
func TestServeShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const few = 3 // a spare, and two connections
		p := &process{left: make(chan struct{}, few), waiting: make(chan net.Conn, 10), over: make(chan struct{})}
		for range few {
			p.left <- struct{}{}
		}
		kept := make(chan net.Conn, 10)
		refused := make(chan error, 10)
		server := &Server{Secret: secret, Job: "job", Spare: p.spare,
			Joined:  func(conn net.Conn, _ Hello) { kept <- conn },
			Refused: func(_ net.Conn, _ Hello, err error) { refused <- err },
		}
		served := make(chan error)
		go func() { served <- server.Serve(listening{p}) }()
		for rank := range few - 1 {
			if err := p.dial(rank); err != nil {
				t.Fatalf("replica %d: %v", rank, err)
			}
		}
		synctest.Wait()
		time.AfterFunc(shortLimit/2, func() { (<-kept).Close() })
		if err := p.dial(2); err != nil {
			t.Errorf("in a shortage that passes: %v", err)
		}
		for rank := range 3 { // one after the other
			err := p.dial(rank)
			if short, ok := errors.AsType[*ShortError](err); !ok || short.Err != nil ||
				!strings.Contains(err.Error(), fmt.Sprintf("no file descriptor is left in process %d (", os.Getpid())) {
				t.Errorf("replica %d of a process without descriptors: %v", rank, err)
			}
			err = <-refused
			if short, ok := errors.AsType[*ShortError](err); !ok || !errors.Is(short, syscall.EMFILE) {
				t.Errorf("the process itself: %v", err)
			}
		}
		(<-kept).Close()
		if err := p.dial(7); err != nil {
			t.Errorf("after a shortage: %v", err)
		}
		listening{p}.Close()
		if err := <-served; err != net.ErrClosed {
			t.Errorf("Serve: %v", err)
		}
		synctest.Wait()
		close(kept)
		for conn := range kept {
			conn.Close()
		}
		if len(p.left) != few {
			t.Errorf("%d descriptors are left of %d", len(p.left), few)
		}
	})
}

// lastListener has no descriptor until the spare one is given back. Then nobody dials for an hour, and in the moment in
// which somebody does there is none.
type lastListener struct {
	net.Listener
	given chan bool // closed by Close of the spare one
	peace bool      // has been
	stop  chan bool
}

func (l *lastListener) Accept() (net.Conn, error) {
	short := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", syscall.EMFILE)}
	select {
	case <-l.given:
	default:
		return nil, short
	}
	if !l.peace {
		l.peace = true
		time.Sleep(time.Hour)
		return nil, short
	}
	<-l.stop
	return nil, net.ErrClosed
}

func (l *lastListener) Close() error { close(l.given); return nil }

// TestServeInPeace: a moment without a descriptor after an hour in which nobody has dialled is not a shortage of an
// hour, and Serve has a descriptor to spare again.
func TestServeInPeace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lastListener{given: make(chan bool), stop: make(chan bool)}
		spares := []io.Closer{l, io.NopCloser(nil)}
		server := &Server{
			Spare: func() (spare io.Closer, err error) {
				spare, spares = spares[0], spares[1:]
				return spare, nil
			},
			Short: func(_ *ShortError, lasts time.Duration) { t.Errorf("short for %v", lasts) },
		}
		time.AfterFunc(2*time.Hour, func() { close(l.stop) })
		if err := server.Serve(l); err != net.ErrClosed {
			t.Error(err)
		}
		if len(spares) > 0 {
			t.Error("no descriptor was taken to spare")
		}
	})
}

// TestServeTellsAgain: that there is no descriptor is told again as long as it lasts.
func TestServeTellsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &process{over: make(chan struct{})}
		var told []time.Duration
		server := &Server{Spare: l.spare, Short: func(_ *ShortError, lasts time.Duration) {
			told = append(told, lasts.Round(Limit))
		}}
		time.AfterFunc(7*Limit/2, func() { listening{l}.Close() })
		server.Serve(listening{l})
		if want := []time.Duration{Limit, 2 * Limit, 3 * Limit}; !slices.Equal(told, want) {
			t.Errorf("told after %v, want %v", told, want)
		}
	})
}
