package stream

import (
	"io"
	"sync"
	"testing"
	"time"
	"unsafe"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/transporttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// ring carries bytes in one direction within a process.
type ring struct {
	mu     sync.Mutex // guards what follows
	bytes  []byte
	read   int // in all
	wrote  int
	closed bool
	reader Parker // woken when bytes come
	writer Parker // woken when there is room
}

// aligned returns n bytes at an address that is a multiple of 64.
func aligned(n int) []byte {
	b := make([]byte, n+frameAlign)
	at := int(-uintptr(unsafe.Pointer(&b[0])) & (frameAlign - 1))
	return b[at : at+n : at+n]
}

func wake(p Parker) {
	if p != nil {
		p.Wake()
	}
}

// put takes what there is room for.
func (r *ring) put(b []byte) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(b) > 0 && r.wrote-r.read < len(r.bytes) {
		at := r.wrote % len(r.bytes)
		k := copy(r.bytes[at:min(len(r.bytes), at+len(r.bytes)-(r.wrote-r.read))], b)
		b = b[k:]
		n += k
		r.wrote += k
	}
	if n > 0 {
		wake(r.reader)
	}
	return n
}

// ringLink is a Link of two rings.
type ringLink struct{ in, out *ring }

// rings is the link itself, also within another that is around it.
func (l *ringLink) rings() *ringLink { return l }

func (l *ringLink) Send(head, body, tail []byte) (n int, err error) {
	l.out.mu.Lock()
	closed := l.out.closed
	l.out.mu.Unlock()
	if closed {
		return 0, io.ErrClosedPipe
	}
	for _, b := range [][]byte{head, body, tail} {
		k := l.out.put(b)
		if n += k; k < len(b) {
			break
		}
	}
	return n, nil
}

func (l *ringLink) Peek(n int) ([]byte, error) {
	r := l.in
	r.mu.Lock()
	defer r.mu.Unlock()
	at, have := r.read%len(r.bytes), r.wrote-r.read
	switch {
	case have >= n:
		return r.bytes[at:min(len(r.bytes), at+have)], nil
	case r.closed:
		return nil, io.EOF
	}
	return nil, nil
}

func (l *ringLink) Skip(n int) {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	l.in.read += n
	wake(l.in.writer)
}

func (l *ringLink) ReadInto(dst []byte) (n int, err error) {
	for len(dst) > 0 {
		b, err := l.Peek(1)
		if b == nil {
			if n > 0 {
				err = nil
			}
			return n, err
		}
		k := copy(dst, b)
		l.Skip(k)
		dst = dst[k:]
		n += k
	}
	return n, nil
}

func (l *ringLink) Come() (bytes, moved uint64) {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	return uint64(l.in.wrote), uint64(l.in.wrote)
}

func (l *ringLink) Ends() string { return "one end to another" }

func (l *ringLink) Close() error {
	for _, r := range []*ring{l.in, l.out} {
		r.mu.Lock()
		r.closed = true
		wake(r.reader)
		wake(r.writer)
		if r == l.in {
			r.reader = nil
		} else {
			r.writer = nil
		}
		r.mu.Unlock()
	}
	return nil
}

// chanParker parks on a channel.
type chanParker struct{ token chan struct{} }

func (p *chanParker) Watch(l Link) error {
	around, ok := l.(interface{ rings() *ringLink })
	if !ok { // all that will come has come
		return nil
	}
	r := around.rings()
	r.in.mu.Lock()
	r.in.reader = p
	r.in.mu.Unlock()
	r.out.mu.Lock()
	r.out.writer = p
	r.out.mu.Unlock()
	p.Wake()
	return nil
}

func (p *chanParker) Park(limit time.Duration) {
	if limit < 0 {
		<-p.token
		return
	}
	select {
	case <-p.token:
	case <-time.After(limit):
	}
}

func (p *chanParker) Wake() {
	select {
	case p.token <- struct{}{}:
	default:
	}
}

func (p *chanParker) Close() error { return nil }

// ringHost connects nodes of one process. A goroutine for each ordered pair of them carries control messages.
type ringHost struct {
	rank  int
	size  int // of rings
	nodes []*Node
	boxes []chan []byte        // by peer
	wrap  func(*ringLink) Link // nil: as it is

	mu   sync.RWMutex // guards left; read-locked while a box is used
	left bool
}

func (h *ringHost) Tell(peer int, message []byte) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.left {
		return
	}
	h.boxes[peer] <- append([]byte(nil), message...)
}

func (h *ringHost) Connect(peer int, lane uint64) {
	go func() {
		a, b := &ring{bytes: aligned(h.size)}, &ring{bytes: aligned(h.size)}
		wrap := h.wrap
		if wrap == nil {
			wrap = func(l *ringLink) Link { return l }
		}
		h.nodes[peer].Attach(h.rank, lane, wrap(&ringLink{a, b}))
		h.nodes[h.rank].Attach(peer, lane, wrap(&ringLink{b, a}))
	}()
}

func (h *ringHost) Parker(uint64) (Parker, error) {
	return &chanParker{make(chan struct{}, 1)}, nil
}

func (h *ringHost) Leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = true
	for _, b := range h.boxes {
		if b != nil {
			close(b)
		}
	}
}

// openRings connects n nodes by rings of so many bytes.
func openRings(t testing.TB, n, size int, checksum bool) []transport.Endpoint {
	return openHosts(t, n, size, checksum, 20*time.Microsecond, nil, nil)
}

// openRingsHeld is openRings, where each control message waits until hold returns.
func openRingsHeld(t testing.TB, n, size int, hold func(from, to int)) []transport.Endpoint {
	return openHosts(t, n, size, false, 20*time.Microsecond, nil, hold)
}

// openHosts is openRings with a time to spin, with links that are wrapped, and with control messages that are held.
func openHosts(t testing.TB, n, size int, checksum bool, spin time.Duration, wrap func(*ringLink) Link,
	hold func(from, to int)) (eps []transport.Endpoint) {
	nodes := make([]*Node, n)
	eps = make([]transport.Endpoint, n)
	for i := range n {
		h := &ringHost{rank: i, size: size, nodes: nodes, boxes: make([]chan []byte, n), wrap: wrap}
		for k := range h.boxes {
			if k != i {
				h.boxes[k] = make(chan []byte, 1000)
			}
		}
		var err error
		c := Config{Rank: i, Size: n, Host: h, Spin: spin}
		if checksum {
			c.Checksum = func(int) bool { return true }
		}
		nodes[i], eps[i], err = NewNode(c)
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, node := range nodes {
		for k, box := range node.Host.(*ringHost).boxes {
			if box != nil {
				go func() {
					for m := range box {
						if hold != nil {
							hold(i, k)
						}
						if err := nodes[k].Handle(i, m); err != nil {
							t.Errorf("replica %d: %v", k, err)
						}
					}
				}()
			}
		}
	}
	return eps
}

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("transport/tcp runs the suite over the rings of its connections")
	}
	transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint { return openRings(t, n, 16<<10, false) },
		transporttest.Buffers, transporttest.Brief)
}

// TestConformanceSmall runs the suite over rings that hold one header and little more, with checksums.
func TestConformanceSmall(t *testing.T) {
	transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint { return openRings(t, n, 192, true) },
		transporttest.Buffers, transporttest.Brief)
}
