package streamsim

import (
	"encoding/binary"
	"io"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/stream"
)

// The layout of a header, written once more: of it the world needs to know where messages begin and end.
const (
	headerBytes = 64
	magic       = 0x6c67
	summedFlag  = 1 << 0
	creditsFlag = 1 << 1
	flagsAt     = 3
	tagAt       = 4
	readAt      = 6
	lengthAt    = 8
	callAt      = 16
	crcAt       = 60
)

// pipe is one direction of a link: read <= arrived <= sent <= read+len(ring). The numbers count from the first byte on.
type pipe struct {
	w                   *world
	ring                []byte
	read, arrived, sent int
	lastAt              time.Time // when the last of what is under way arrives
	from, to            *end
	err                 error // a reset has come
	eof                 bool  // the sender has closed, and that has arrived
	shut                bool  // the receiver has
	lost                bool  // what is not there yet does not come any more, but for the end
	mute                bool  // not even that does

	frames []span // those that have not been read
	unread int    // messages among them
	whole  int    // messages that have been read
	next   int    // where the next header begins
	liar   *liar  // changes what is sent
	spoil  int    // where the checksum that it changes lies; 0: nowhere
}

// span is a frame in a pipe.
type span struct {
	start, end int
	message    bool
	lie        string // how its header lies, if a receiver must find that
	sum        bool   // its checksum is changed
}

// end is one replica's end of a link: a stream.Link.
type end struct {
	out, in *pipe
	node    *node
	parker  *parker
	closing atomic.Bool // Close has been called
	closed  bool
	dropped atomic.Bool
}

// pair makes a link.
func (w *world) pair(x, y *node) (a, b *end) {
	mk := func(from *node) *pipe {
		return &pipe{w: w, ring: aligned(w.caps[w.rng.IntN(len(w.caps))]), liar: from.liar}
	}
	p, q := mk(x), mk(y)
	a, b = &end{out: p, in: q, node: x}, &end{out: q, in: p, node: y}
	p.from, p.to, q.from, q.to = a, b, b, a
	x.ends, y.ends = append(x.ends, a), append(y.ends, b)
	return a, b
}

// aligned is memory whose address is a multiple of 64.
func aligned(n int) []byte {
	b := make([]byte, n+63)
	return b[-uintptr(unsafe.Pointer(&b[0]))&63:][:n]
}

func (e *end) wake() {
	if e.parker != nil {
		e.parker.Wake()
	}
}

// later plans what happens to the pipe after all that is under way.
func (p *pipe) later(what string, do func()) {
	p.lastAt = latest(p.lastAt, time.Now().Add(p.w.delay(p.w.dataDelay)))
	p.w.at(p.lastAt, p.w.name("%d > %d: %s", p.from.node.rank, p.to.node.rank, what), do)
}

// reset breaks the pipe.
func (p *pipe) reset(err error) {
	p.later("reset", func() {
		p.err = err
		p.to.wake()
		p.from.wake()
	})
}

func (e *end) Send(head, body, tail []byte) (int, error) {
	p := e.out
	p.w.called()
	switch {
	case p.err != nil:
		return 0, p.err
	case p.shut:
		return 0, syscall.EPIPE
	}
	room := len(p.ring) - (p.sent - p.read)
	if room > 1 && p.w.rng.IntN(4) == 0 {
		room = 1 + p.w.rng.IntN(room)
	}
	n := 0
	for _, b := range [...][]byte{head, body, tail} {
		for len(b) > 0 && n < room {
			at := p.sent % len(p.ring)
			k := copy(p.ring[at:min(len(p.ring), at+room-n)], b)
			b, n = b[k:], n+k
			p.sent += k
			p.framed()
			if p.spoil > 0 && p.sent > p.spoil { // no byte of it has arrived
				p.ring[p.spoil%len(p.ring)] ^= 1
				p.spoil = 0
			}
		}
	}
	if n > 0 {
		upto := p.sent
		if n > 1 && p.w.rng.IntN(2) == 0 {
			part := upto - 1 - p.w.rng.IntN(n-1)
			p.later("a part", func() { p.arrive(part) })
		}
		p.later("bytes", func() { p.arrive(upto) })
	}
	return n, nil
}

// framed looks at the headers that have been sent. Rings are multiples of 64 bytes, so a header lies in one place.
func (p *pipe) framed() {
	for p.sent >= p.next+headerBytes {
		at := p.next % len(p.ring)
		b := p.ring[at : at+headerBytes]
		if binary.LittleEndian.Uint16(b) != magic {
			p.w.fail("replica %d sends replica %d what is no header, after %d bytes", p.from.node.rank, p.to.node.rank,
				p.next)
			p.next = p.sent
			return
		}
		flags, length := b[flagsAt], int(binary.LittleEndian.Uint64(b[lengthAt:]))
		s := span{start: p.next, end: p.next + headerBytes + (length+63)&^63, message: flags&creditsFlag == 0}
		if flags&summedFlag != 0 {
			s.end += headerBytes
		}
		if s.message {
			p.unread++
			if p.unread > transport.MaxUnread && p.to.node.liar == nil { // a liar may say that it has read more
				p.w.fail("replica %d has sent replica %d %d messages that are unread, want at most %d",
					p.from.node.rank, p.to.node.rank, p.unread, transport.MaxUnread)
			}
		}
		if p.liar != nil {
			s.lie, s.sum = p.liar.changeHeader(p, b)
			if s.sum {
				p.spoil = s.end - headerBytes
			}
		}
		p.next = s.end
		p.frames = append(p.frames, s)
	}
}

// arrive has bytes come. A header that a liar may still change waits until it is whole.
func (p *pipe) arrive(upto int) {
	if p.err != nil || p.lost || p.mute {
		return
	}
	if p.liar != nil && upto > p.next {
		upto = p.next
	}
	p.arrived = max(p.arrived, upto)
	p.to.wake()
}

func (e *end) Peek(n int) ([]byte, error) {
	p := e.in
	p.w.called()
	if p.arrived-p.read < n {
		switch {
		case p.err != nil:
			return nil, p.err
		case p.eof:
			return nil, io.EOF
		}
		return nil, nil
	}
	at := p.read % len(p.ring)
	return p.ring[at:min(len(p.ring), at+p.arrived-p.read)], nil
}

func (e *end) Skip(n int) {
	p := e.in
	if p.read+n > p.arrived {
		panic("skips what has not come")
	}
	p.read += n
	for len(p.frames) > 0 && p.read > p.frames[0].start {
		f := &p.frames[0]
		if f.lie != "" {
			p.w.fail("replica %d takes a frame of replica %d that lies: %s", e.node.rank, p.from.node.rank, f.lie)
		}
		if p.read < f.end {
			break
		}
		if f.message {
			p.unread--
			p.whole++
		}
		if f.sum {
			p.w.fail("replica %d takes a message of replica %d whose checksum is wrong", e.node.rank, p.from.node.rank)
		}
		p.frames = p.frames[1:]
	}
	if !p.shut {
		p.from.wake()
	}
}

func (e *end) ReadInto(dst []byte) (n int, err error) {
	for n < len(dst) {
		b, err := e.Peek(1)
		if b == nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		k := copy(dst[n:], b)
		e.Skip(k)
		n += k
	}
	return n, nil
}

// Come implements stream.Gauge.
func (e *end) Come() (bytes, moved uint64) { return uint64(e.in.arrived), uint64(e.in.arrived) }

// Ends implements stream.Gauge.
func (e *end) Ends() string { return "a simulated link" }

func (e *end) Close() error {
	if !e.closing.Swap(true) {
		e.out.w.closing.Add(1)
	}
	return nil
}

// Drop implements stream.Dropper.
func (e *end) Drop() error {
	e.dropped.Store(true)
	return e.Close()
}

// close does what Close has asked for.
func (e *end) close() {
	if e.closed || !e.closing.Load() {
		return
	}
	e.closed = true
	out, in := e.out, e.in
	if e.dropped.Load() && out.w.rng.IntN(2) == 0 {
		out.lost = true
	}
	out.later("the end", func() {
		if !out.mute {
			out.eof = true
			out.to.wake()
		}
	})
	in.later("no room any more", func() {
		if !out.mute { // as that takes the way of what is sent
			in.shut = true
			in.from.wake()
		}
	})
}

// brokenLink is the link that a dial without success gives.
type brokenLink struct{ err error }

func (l brokenLink) Send(_, _, _ []byte) (int, error) { return 0, l.err }
func (l brokenLink) Peek(int) ([]byte, error)         { return nil, l.err }
func (l brokenLink) Skip(int)                         {}
func (l brokenLink) ReadInto([]byte) (int, error)     { return 0, l.err }
func (l brokenLink) Close() error                     { return nil }

var _ interface {
	stream.Gauge
	stream.Dropper
} = (*end)(nil)
