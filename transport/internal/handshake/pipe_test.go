package handshake

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var secret = []byte("0123456789abcdef")

// hello is what dialers of the tests say.
var hello = Hello{Job: "job", Rank: 1, Peer: 2, Role: Data, Lane: 7}

// outcome is what the two sides of a handshake returned.
type outcome struct {
	dialed   error
	accepted error
	hello    Hello
}

// both runs two sides on two ends, each of which closes its end.
func both(dialer, acceptor net.Conn, dial func(net.Conn) error, accept func(net.Conn) (Hello, error)) outcome {
	var o outcome
	var sides sync.WaitGroup
	sides.Go(func() {
		defer dialer.Close()
		o.dialed = dial(dialer)
	})
	sides.Go(func() {
		defer acceptor.Close()
		o.hello, o.accepted = accept(acceptor)
	})
	sides.Wait()
	return o
}

// honestly are the two sides as they should be.
func honestly(conn net.Conn) error { return Dial(conn, secret, hello) }

func honestlyAccept(conn net.Conn) (Hello, error) { return Accept(conn, secret, "job", nil) }

// wire is a net.Conn that changes and records what goes through it.
type wire struct {
	net.Conn
	out, in       func(at int, b []byte) // called with what goes out and has come in, and its place in the direction
	outAt, inAt   int
	sent, arrived bytes.Buffer
	cutOut, cutIn int // where the direction ends; 0: nowhere
}

func (w *wire) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	if w.out != nil {
		w.out(w.outAt, b)
	}
	cut := w.cutOut > 0 && w.outAt+len(b) >= w.cutOut
	if cut {
		b = b[:w.cutOut-w.outAt]
	}
	w.outAt += len(b)
	w.sent.Write(b)
	n, err := w.Conn.Write(b)
	if cut {
		w.Conn.Close()
	}
	return n, err
}

func (w *wire) Read(b []byte) (int, error) {
	if w.cutIn > 0 {
		if w.inAt == w.cutIn {
			w.Conn.Close()
			return 0, io.EOF
		}
		b = b[:min(len(b), w.cutIn-w.inAt)]
	}
	n, err := w.Conn.Read(b)
	if w.in != nil {
		w.in(w.inAt, b[:n])
	}
	w.inAt += n
	w.arrived.Write(b[:n])
	return n, err
}

// flip returns a function for wire that inverts one bit of the byte at k.
func flip(k int, bit byte) func(int, []byte) {
	return func(at int, b []byte) {
		if k >= at && k < at+len(b) {
			b[k-at] ^= bit
		}
	}
}

// script is a net.Conn whose other side has said everything already.
type script struct {
	net.Conn
	said    io.Reader
	written bytes.Buffer
}

func scripted(said []byte) *script { return &script{said: bytes.NewReader(said)} }

func (s *script) Read(b []byte) (int, error)  { return s.said.Read(b) }
func (s *script) Write(b []byte) (int, error) { return s.written.Write(b) }
func (s *script) SetDeadline(time.Time) error { return nil }
func (s *script) Close() error                { return nil }

// kinds are the connections that a handshake is tried on.
var kinds = []struct {
	name string
	make func(t testing.TB) (dialer, acceptor net.Conn)
}{
	{"pipe", func(testing.TB) (net.Conn, net.Conn) { return net.Pipe() }},
	{"tcp", func(t testing.TB) (net.Conn, net.Conn) { return connect(t, "tcp", "127.0.0.1:0") }},
	{"unix", func(t testing.TB) (net.Conn, net.Conn) { return connect(t, "unix", t.TempDir()+"/s") }},
}

func connect(t testing.TB, network, address string) (dialer, acceptor net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialer, err = net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	acceptor, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dialer.Close()
		acceptor.Close()
	})
	return dialer, acceptor
}
