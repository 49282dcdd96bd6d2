package tcp

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketPair is a socket, and a connection at its other end.
func socketPair(t *testing.T) (*socket, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSocket(dialled)
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	return s, peer
}

// fill sends until the socket has no room, and returns how many bytes that took.
func fill(t *testing.T, s *socket) (sent int) {
	t.Helper()
	for block := make([]byte, 1<<20); ; {
		n, err := s.Send(nil, block, nil)
		if err != nil {
			t.Fatal(err)
		}
		if sent += n; n == 0 {
			return sent
		}
	}
}

// TestLoops: what is on its way over loopback is bounded, so that it stays in a cache, and over a network it is not.
func TestLoops(t *testing.T) {
	s, _ := socketPair(t)
	defer s.Close()
	asked, err := net.Listen("tcp", "127.0.0.1:0") // a socket of which the kernel is asked what loopSend comes to
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	raw, err := asked.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		set := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, loopSend)
		want, asked := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
		got, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
		if err := errors.Join(set, asked, err); err != nil || got != want && roomToSend() {
			t.Errorf("a socket over loopback holds %d bytes, %v, want %d", got, err, want)
		}
	}); err != nil {
		t.Fatal(err)
	}
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip)} }
	for _, c := range []struct {
		here, there net.Addr
		want        bool
	}{
		{at("127.0.0.1"), at("127.0.0.1"), true},
		{at("127.0.0.1"), at("127.0.0.2"), true},
		{at("::1"), at("::1"), true},
		{at("10.0.0.1"), at("10.0.0.1"), true},
		{at("10.0.0.1"), at("::ffff:10.0.0.1"), true},
		{at("10.0.0.1"), at("10.0.0.2"), false},
		{at("127.0.0.1"), at("10.0.0.2"), false},
		{&net.UnixAddr{}, &net.UnixAddr{}, false},
	} {
		if got := loops(c.here, c.there); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.here, c.there, got, c.want)
		}
	}
}

// TestSocketEnds: a socket that has nothing yet says so, and one that has ended says that, after all that has come.
func TestSocketEnds(t *testing.T) {
	s, peer := socketPair(t)
	defer s.Close()
	if b, err := s.Peek(1); b != nil || err != nil {
		t.Fatalf("of nothing: %d bytes, %v", len(b), err)
	}
	const size = 100
	if _, err := peer.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	peer.Close()
	got := 0
	for until := time.Now().Add(10 * time.Second); ; {
		n, err := s.ReadInto(make([]byte, 7))
		got += n
		if err == io.EOF {
			break
		}
		if err != nil || time.Now().After(until) {
			t.Fatalf("after %d bytes: %v", got, err)
		}
	}
	if got != size {
		t.Errorf("%d bytes, want %d", got, size)
	}
}

// TestSocketAligned: where a socket shows bytes, their addresses are those of the stream modulo 64, whatever was read
// past its memory.
func TestSocketAligned(t *testing.T) {
	s, peer := socketPair(t)
	defer s.Close()
	sent := make(chan error)
	const size = 10 << 20
	go func() {
		_, err := peer.Write(make([]byte, size))
		sent <- err
	}()
	dst := make([]byte, 100_000)
	for at, k := 0, 0; at < size; k++ {
		if k%3 == 0 {
			n, err := s.ReadInto(dst[:min(directRead+k%97, size-at)])
			if err != nil {
				t.Fatal(err)
			}
			at += n
			continue
		}
		b, err := s.Peek(1)
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			continue
		}
		if address := uintptr(unsafe.Pointer(&b[0])); address&63 != uintptr(at)&63 {
			t.Fatalf("byte %d is at address %#x", at, address)
		}
		n := min(len(b), 1+k%5000)
		s.Skip(n)
		at += n
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// TestParkForRoom: who parks with a socket that is full is woken when there is room.
func TestParkForRoom(t *testing.T) {
	s, peer := socketPair(t)
	defer s.Close()
	parker, err := newParker()
	if err != nil {
		t.Fatal(err)
	}
	defer parker.Close()
	fill(t, s)
	if err := parker.Watch(s); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, peer)
	for {
		n, err := s.Send(nil, make([]byte, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		parker.Park(-1)
	}
}

// TestCloseDelivers: a socket that is closed delivers what Send has taken, though the peer goes on sending what nobody
// will read, and reads late.
func TestCloseDelivers(t *testing.T) {
	s, peer := socketPair(t)
	sent := fill(t, s)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for range 20 {
		if _, err := peer.Write(make([]byte, 1000)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
	}
	got, err := io.Copy(io.Discard, peer)
	if err != nil || got != int64(sent) {
		t.Errorf("%d bytes have come, want %d; %v", got, sent, err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// ringer is a stream.Parker that is only rung.
type ringer struct {
	poller
	rung chan struct{}
}

func (b *ringer) Wake() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// TestPumpWakes: a pump wakes the lane when bytes have come, when there is room again, and at the end.
func TestPumpWakes(t *testing.T) {
	mine, peer := net.Pipe()
	defer peer.Close()
	p := newPump(mine, 0)
	defer p.Close()
	b := &ringer{rung: make(chan struct{}, 1)}
	p.wakes(b)
	<-b.rung // there may be something already
	if _, err := peer.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	<-b.rung
	if got, err := p.Peek(64); len(got) != 100 || err != nil {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if n, err := p.Send(make([]byte, pumpRing), []byte{1}, nil); n != pumpRing || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	read := make(chan error)
	go func() {
		_, err := io.CopyN(io.Discard, peer, pumpRing)
		read <- err
	}()
	<-b.rung
	if err := <-read; err != nil {
		t.Error(err)
	}
	for n := 0; n == 0; {
		var err error
		if n, err = p.Send([]byte{1}, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.CopyN(io.Discard, peer, 1); err != nil {
		t.Error(err)
	}
}

// Bytes for a peer that has reset the connection are not waited for. Close took flushTime with each such peer: one
// whose process has died, one that has closed with bytes unread.
func TestResetIsNotUnsent(t *testing.T) {
	s, peer := socketPair(t)
	defer s.Close()
	for !s.unsent() {
		fill(t, s) // with more than the peer's host takes
	}
	peer.Close()
	for until := time.Now().Add(10 * time.Second); s.unsent(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("bytes still count as unsent when the connection is reset")
		}
	}
}
