package fabric

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// queueBytes is how many bytes may be on their way in one direction of a connection, or have arrived and not been read.
const queueBytes = 32 << 10

// pair is a connection.
type pair struct {
	mu      sync.Mutex    // guards what follows, and both ends
	changed chan struct{} // closed at the next change; nil: nobody waits
}

// conn is one end of a connection: a net.Conn that can end its outward half.
type conn struct {
	*pair
	p             *Process
	other         *conn
	local, remote net.Addr
	in            queue // what the other end has sent

	chances *rand.Rand // of writes
	risky   bool       // a write may break the connection

	closed, half            bool      // by Close, by CloseWrite
	broken                  error     // of writes
	readUntil, writtenUntil time.Time // deadlines; zero: none
}

// queue is one direction of a connection.
type queue struct {
	segments []segment
	bytes    int       // in segments, or vanished
	last     time.Time // when the last byte arrives
	end      error     // behind the segments; nil: more may come
	ends     time.Time // when the end arrives
	waits    bool      // the end does until the network is whole
	cut      bool      // something has vanished, so nothing arrives any more
}

// segment is bytes that arrive together.
type segment struct {
	at    time.Time
	waits bool // until the network is whole
	bytes []byte
}

// arrived reports whether it is there.
func (s *segment) arrived(now time.Time) bool { return !s.waits && !s.at.After(now) }

// join makes a connection of two ends.
func join(near, far *conn, chances *rand.Rand) {
	both := &pair{}
	lossy := near.p.f.faults.Lossy
	for c, other := range map[*conn]*conn{near: far, far: near} {
		c.pair, c.other = both, other
		c.risky = lossy == "" || lossy == near.p.name || lossy == far.p.name
	}
	near.chances = rand.New(rand.NewPCG(chances.Uint64(), 1))
	far.chances = rand.New(rand.NewPCG(chances.Uint64(), 2))
}

// notify wakes all that wait. The caller holds mu.
func (p *pair) notify() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// wait waits for a change, until a time unless that is zero. The caller holds mu.
func (p *pair) wait(until time.Time) {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	if until.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

// earlier is the earlier one of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// over reports whether a deadline is over.
func over(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }

// fails is an error of this end, as package net has them.
func (c *conn) fails(op string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for in := &c.in; ; {
		c.thaw()
		switch {
		case c.closed:
			return 0, c.fails("read", net.ErrClosed)
		case over(c.readUntil):
			return 0, c.fails("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		}
		n, now, next := 0, time.Now(), time.Time{}
		for n < len(b) && len(in.segments) > 0 && in.segments[0].arrived(now) {
			first := &in.segments[0]
			k := copy(b[n:], first.bytes)
			n += k
			if first.bytes = first.bytes[k:]; len(first.bytes) == 0 {
				in.segments = in.segments[1:]
			}
		}
		if n > 0 {
			in.bytes -= n
			c.notify()
			return n, nil
		}
		switch {
		case len(in.segments) > 0:
			if !in.segments[0].waits {
				next = in.segments[0].at
			}
		case in.end == nil, in.waits:
		case !in.ends.After(now) && in.end == io.EOF:
			return 0, io.EOF
		case !in.ends.After(now):
			return 0, c.fails("read", in.end)
		default:
			next = in.ends
		}
		c.wait(earlier(next, c.readUntil))
	}
}

// Write implements net.Conn. The network may do its harm.
func (c *conn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.thaw(); c.p.spent() {
		return 0, c.fails("write", syscall.ECONNRESET)
	}
	faults, breaks, resets := &c.p.f.faults, false, false
	if c.risky && len(b) > 0 {
		breaks, resets = one(c.chances, faults.Break), one(c.chances, faults.Reset)
	}
	whole := len(b)
	if breaks || resets {
		b = b[:c.chances.IntN(len(b))]
	}
	for n < len(b) {
		c.thaw()
		if err := c.unwritable(); err != nil {
			return n, err
		}
		if c.other.closed || c.other.p.Dead() { // the other side answers by a reset, which comes later
			c.broken = syscall.EPIPE
			return whole, nil
		}
		out := &c.other.in
		room := min(queueBytes-out.bytes, len(b)-n)
		if room <= 0 {
			c.wait(c.writtenUntil)
			continue
		}
		if room > 1 && c.chances.IntN(2) == 0 {
			room = 1 + c.chances.IntN(room)
		}
		c.send(b[n:][:room])
		n += room
	}
	if breaks || resets {
		if err := c.unwritable(); err != nil {
			return n, err
		}
		how, kind := error(io.EOF), "broken"
		if resets {
			how, kind = syscall.ECONNRESET, "reset"
		}
		c.harm(how, kind)
		return n, c.fails("write", c.broken)
	}
	if len(b) == 0 {
		return 0, c.unwritable()
	}
	return n, nil
}

// unwritable says why nothing can be written, if so. The caller holds mu.
func (c *conn) unwritable() error {
	switch {
	case c.closed:
		return c.fails("write", net.ErrClosed)
	case over(c.writtenUntil):
		return c.fails("write", os.ErrDeadlineExceeded)
	case c.broken != nil:
		return c.fails("write", c.broken)
	case c.half:
		return c.fails("write", syscall.EPIPE)
	}
	return nil
}

// send puts bytes on their way. The caller holds mu.
func (c *conn) send(b []byte) {
	out := &c.other.in
	out.bytes += len(b)
	if out.cut = out.cut || !c.p.reaches(c.other.p); out.cut {
		return
	}
	at := time.Now().Add(delay(c.chances, c.p.f.faults.Delay))
	if at.Before(out.last) {
		at = out.last
	}
	out.last = at
	out.segments = append(out.segments, segment{at, c.p.parted(c.other.p), append([]byte(nil), b...)})
	c.notify()
}

// finish ends a direction behind what is on its way. The caller holds the mutex of the pair.
func (q *queue) finish(end error) {
	if q.end == nil && !q.cut {
		q.end, q.ends = end, q.last
	}
}

// harm breaks the connection in both directions. A reset loses what is on its way. The caller holds mu.
func (c *conn) harm(how error, kind string) {
	for _, end := range []*conn{c, c.other} {
		in := &end.in
		if in.end == nil {
			now := time.Now()
			for i, s := range in.segments {
				if s.waits || how != io.EOF && s.at.After(now) {
					in.segments = in.segments[:i]
					break
				}
			}
			if how != io.EOF {
				in.last = now
			}
		}
		in.finish(how)
		if end.broken = syscall.EPIPE; how != io.EOF {
			end.broken = how
		}
	}
	c.notify()
	f := c.p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note("the connection of process %s from %v to process %s at %v is %s", c.p.name, c.local, c.other.p.name, c.remote,
		kind)
}

// reset ends a connection that nobody has accepted.
func (c *conn) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.p.reaches(c.other.p) {
		c.other.in.finish(syscall.ECONNRESET)
		c.other.broken = syscall.ECONNRESET
	}
	c.notify()
}

// CloseWrite ends the outward half.
func (c *conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fails("close", net.ErrClosed)
	}
	c.half = true
	c.ends(io.EOF)
	return nil
}

// ends ends the outward half, if that arrives. The caller holds mu.
func (c *conn) ends(how error) {
	if in := &c.other.in; c.p.reaches(c.other.p) {
		in.waits = in.waits || in.end == nil && c.p.parted(c.other.p)
		in.finish(how)
	}
	c.notify()
}

// Close implements net.Conn. What nobody has read makes it a reset, behind what was written.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.fails("close", net.ErrClosed)
	}
	c.closed = true
	how := error(io.EOF)
	if c.in.bytes > 0 {
		how = syscall.ECONNRESET
		c.other.broken = how
	}
	c.ends(how)
	c.mu.Unlock()
	f := c.p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	c.p.used--
	delete(f.conns, c)
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.limit(&t, &t) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.limit(&t, nil) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.limit(nil, &t) }

// limit sets deadlines; nil leaves one as it is.
func (c *conn) limit(read, written *time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fails("set", net.ErrClosed)
	}
	if read != nil {
		c.readUntil = *read
	}
	if written != nil {
		c.writtenUntil = *written
	}
	c.notify()
	return nil
}
