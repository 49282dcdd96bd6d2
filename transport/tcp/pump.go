package tcp

import (
	"cmp"
	"io"
	"net"
	"sync"
	"time"
	"unsafe"

	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/stream"
)

// pumpRing is how many bytes a pump holds in each direction, if nothing else is said.
const pumpRing = 256 << 10

// pump is a stream.Link over any connection: two goroutines move its bytes into a ring and out of another one. It is
// slower than a socket by what it takes to wake them, and by a copy.
type pump struct {
	conn    net.Conn
	in, out ring
	filled  sync.WaitGroup // the goroutine of fill
	drained sync.WaitGroup // the goroutine of drain
}

// ring holds bytes on their way between a lane and a goroutine.
type ring struct {
	mu          sync.Mutex // guards what follows
	moved       sync.Cond  // read or wrote has changed, or err
	bytes       []byte
	read, wrote uint64 // bytes of the stream
	err         error  // there will be no more bytes, or there is no use for more
	parker      stream.Parker
}

// newPump makes a pump over a connection, with rings of so many bytes; 0: pumpRing.
func newPump(conn net.Conn, bytes int) *pump {
	p := &pump{conn: conn}
	for _, r := range []*ring{&p.in, &p.out} {
		r.bytes = aligned(cmp.Or(bytes, pumpRing))
		r.moved.L = &r.mu
	}
	p.filled.Go(p.fill)
	p.drained.Go(p.drain)
	return p
}

// free is where the next bytes go, as far as it lies in one place. The caller holds r.mu.
func (r *ring) free() []byte {
	at := int(r.wrote % uint64(len(r.bytes)))
	return r.bytes[at:min(len(r.bytes), at+len(r.bytes)-r.length())]
}

// full is the next bytes that are there, as far as they lie in one place. The caller holds r.mu.
func (r *ring) full() []byte {
	at := int(r.read % uint64(len(r.bytes)))
	return r.bytes[at:min(len(r.bytes), at+r.length())]
}

// length is how many bytes the ring holds. The caller holds r.mu.
func (r *ring) length() int { return int(r.wrote - r.read) }

// aligned returns n bytes at an address that is a multiple of 64, as stream.Link wants.
func aligned(n int) []byte {
	b := make([]byte, n+63)
	return b[-uintptr(unsafe.Pointer(&b[0]))&63:][:n]
}

// wakes has the parker woken whenever the lane can do something that it could not do before.
func (p *pump) wakes(parker stream.Parker) {
	for _, r := range []*ring{&p.in, &p.out} {
		r.mu.Lock()
		r.parker = parker
		r.mu.Unlock()
	}
	parker.Wake()
}

// advance lets somebody know that the ring has changed. The caller holds r.mu.
func (r *ring) advance() {
	r.moved.Signal()
	if r.parker != nil {
		r.parker.Wake()
	}
}

// fill reads from the connection into the ring.
func (p *pump) fill() {
	r := &p.in
	for {
		r.mu.Lock()
		for r.length() == len(r.bytes) && r.err == nil {
			r.moved.Wait()
		}
		free, err := r.free(), r.err
		r.mu.Unlock()
		for err != nil { // closed, and nobody uses the ring
			if _, failed := p.conn.Read(r.bytes); failed != nil {
				return
			}
		}
		n, err := p.conn.Read(free)
		r.mu.Lock()
		r.wrote += uint64(n)
		if err != nil {
			r.err = err
		}
		r.advance()
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// drain writes from the ring to the connection, and ends the connection's outward half when the ring ends.
func (p *pump) drain() {
	r := &p.out
	for {
		r.mu.Lock()
		for r.wrote == r.read && r.err == nil {
			r.moved.Wait()
		}
		full := r.full()
		r.mu.Unlock()
		if len(full) == 0 {
			if half, ok := p.conn.(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			}
			return
		}
		n, err := p.conn.Write(full)
		r.mu.Lock()
		r.read += uint64(n)
		if err != nil {
			r.err, r.read = err, r.wrote
		}
		r.advance()
		r.mu.Unlock()
	}
}

// Send implements stream.Link.
func (p *pump) Send(head, body, tail []byte) (n int, err error) {
	r := &p.out
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	for _, b := range [3][]byte{head, body, tail} {
		for len(b) > 0 && r.length() < len(r.bytes) {
			k := copy(r.free(), b)
			b = b[k:]
			r.wrote += uint64(k)
			n += k
		}
	}
	if n > 0 {
		r.moved.Signal()
	}
	return n, nil
}

// Peek implements stream.Link.
func (p *pump) Peek(n int) ([]byte, error) {
	r := &p.in
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.length() < n {
		return nil, r.err
	}
	return r.full(), nil
}

// Skip implements stream.Link.
func (p *pump) Skip(n int) {
	r := &p.in
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read += uint64(n)
	r.moved.Signal()
}

// ReadInto implements stream.Link.
func (p *pump) ReadInto(dst []byte) (n int, err error) {
	for n < len(dst) {
		b, err := p.Peek(1)
		if b == nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		k := copy(dst[n:], b)
		p.Skip(k)
		n += k
	}
	return n, nil
}

// Come implements stream.Gauge.
func (p *pump) Come() (bytes, moved uint64) {
	moved, counted := handshake.Arrived(p.conn)
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if !counted {
		moved = p.in.wrote
	}
	return p.in.wrote, moved
}

// Ends implements stream.Gauge.
func (p *pump) Ends() string { return ends(p.conn) }

// Close implements stream.Link. Until what Send has taken has arrived, what arrives is read and dropped: two sides that
// both close would wait for each other, and bytes that nobody has read would reset the connection.
func (p *pump) Close() error {
	until := time.Now().Add(flushTime)
	p.conn.SetWriteDeadline(until)
	for _, r := range []*ring{&p.out, &p.in} {
		r.mu.Lock()
		if r.err == nil {
			r.err = io.ErrClosedPipe
		}
		r.advance()
		r.parker = nil
		r.mu.Unlock()
	}
	p.drained.Wait()
	flush(handshake.Bare(p.conn), until)
	p.conn.SetReadDeadline(time.Now())
	p.filled.Wait()
	return p.conn.Close()
}

// flushTime bounds how long Close waits until the other side has what was sent.
const flushTime = time.Second
