package tcp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/stream"
)

// control is the connection to one replica that carries control messages: a head, then the message. A heartbeat
// is a message of its own kind: the replica is there, and has taken so many connections.
//
//	 0        2         4        8
//	┌────────┬─────────┬────────┬─────────┐
//	│ length │ ^length │ CRC32C │ message │   of the lengths and messages of the connection so far, this one included
//	└────────┴─────────┴────────┴─────────┘
//
// The numbers are big endian. A length that has been changed on the way shows at once: nothing more is waited for.
type control struct {
	mesh    *mesh
	peer    int
	address Address
	process kernel         // says whether the peer's process has ended
	left    transport.Gone // if the peer is gone, as this replica has learnt it; guarded by mesh.life
	waits   bool           // the peer is a newcomer that waits with all members; guarded by mesh.life

	ended  atomic.Bool  // the connection has, by the other side
	parted atomic.Bool  // the peer has said that it leaves the job: it does not go on elsewhere
	early  atomic.Int32 // connections of the peer that wait for a generation

	mu       sync.Mutex // guards what follows
	changed  sync.Cond  // queue or leaving
	near     *neighbour // what the peer has given of its memory; nil: none yet
	starting net.Conn   // admitted, without the dialer's word that it has read so; without TLS
	attempt  uint64     // of the dialer by which it has come
	conn     net.Conn
	queue    []byte    // not written yet
	sum      uint32    // of all that has been queued
	leaving  bool      // nothing will be added to queue
	mute     bool      // nothing that is written arrives any more
	broken   error     // why this replica has ended the connection, if it has
	taken    uint64    // how many connections the peer has taken, by its last heartbeat
	moved    time.Time // when a heartbeat said another number than the one before

	written chan struct{} // closed when the last byte is written, or nothing can be
}

// kernel says whether a process has ended: a *process, or in tests one in memory.
type kernel interface {
	// ended asks for as long as given.
	ended(limit time.Duration) bool
}

// maxQueue bounds what waits for a replica that does not read. Beyond it the replica counts as lost: no message may be
// left out.
const maxQueue = 1 << 20

// leaveTime bounds how long a replica that leaves takes to say so, and for how long it goes on to read what others say.
const leaveTime = time.Second

// ends names a connection by the addresses of this side and of the other one. The dialling side of a unix socket has
// none.
func ends(conn net.Conn) string {
	local, remote := conn.LocalAddr().String(), conn.RemoteAddr().String()
	switch {
	case local == "" || local == "@":
		return "to " + remote
	case remote == "" || remote == "@":
		return "at " + local
	}
	return local + " to " + remote
}

// usualQueue is what a queue has room for from the start: what a lane says to one replica in a wait that is long. So a
// call that waits for long allocates no more than others.
const usualQueue = 512

func newControl(m *mesh, peer int) *control {
	c := &control{mesh: m, peer: peer, process: (*process)(nil), written: make(chan struct{}),
		queue: make([]byte, 0, usualQueue)}
	c.changed.L = &c.mu
	return c
}

// isAt says where the peer is, before it is dialled or has started.
func (c *control) isAt(a Address) {
	a.Where = handshake.Bounded(a.Where, maxWhere)
	c.address = a
	if here := c.mesh.address; a.Host == here.Host {
		c.process = newProcess(here.Process, a.Process)
		if hooks := c.mesh.config.tests; hooks != nil {
			c.process = hooks.kernel(a)
		}
	}
}

// reserve is for a connection that is about to start. It ends an earlier attempt of the same process, if that has not
// started: the dialer has given it up. Attempts may be admitted in another order than they were made. The error says
// why there can be no connection.
func (c *control) reserve(conn net.Conn, attempt uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.leaving:
		return fmt.Errorf("replica %d has left the job", c.mesh.config.Rank)
	case c.conn != nil, c.starting != nil && attempt>>attemptBits != c.attempt>>attemptBits:
		return fmt.Errorf("replica %d is here already: another process has its rank", c.peer)
	case c.starting != nil && attempt <= c.attempt:
		return fmt.Errorf("replica %d has given this connection up and come again", c.peer)
	case c.starting != nil:
		c.starting.Close()
	}
	c.starting, c.attempt = conn, attempt
	return nil
}

// attemptBits is how many bits of an attempt count those of a process. The others, at random, are the process's.
const attemptBits = 32

// release undoes reserve for a connection that will not start.
func (c *control) release(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.starting == conn {
		c.starting = nil
	}
}

// isReserved reports whether there is a connection or will be one soon.
func (c *control) isReserved() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn != nil || c.starting != nil
}

// start begins to use a connection, unless this replica has left meanwhile, and reports whether it does. reserved is
// what the connection was reserved as: one that has taken its place ends it. nil: this replica has dialled. near is
// what the peer has given of its memory, or nil.
func (c *control) start(conn, reserved net.Conn, near *neighbour) bool {
	c.mesh.tune(conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.conn != nil || c.starting != reserved {
		conn.Close()
		near.close()
		return false
	}
	c.conn, c.starting, c.near = conn, nil, near
	go c.write(conn)
	go c.read(conn)
	return true
}

// neighbour is what the peer has given of its memory, or nil.
func (c *control) neighbour() *neighbour {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.near
}

// takeNeighbour is neighbour, which the control connection has no longer.
func (c *control) takeNeighbour() *neighbour {
	c.mu.Lock()
	defer c.mu.Unlock()
	near := c.near
	c.near = nil
	return near
}

// tell queues a message.
func (c *control) tell(message []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.mute || c.broken != nil {
		return
	}
	if len(c.queue) > maxQueue {
		c.broken = fmt.Errorf("it has not read what it was told, more than %d bytes", maxQueue)
		if c.conn != nil {
			c.conn.Close() // the reader finds the reason
		}
		return
	}
	c.queue, c.sum = appendMessage(c.queue, c.sum, message)
	c.changed.Signal()
}

const headBytes = 8

// maxMessage bounds a control message: one of package stream in a generation, or one about who is left, which tells a
// number or two of each replica.
const maxMessage = max(stream.MaxMessage+generationBytes, 15*maxReplicas)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errChanged says that a control message is not what was sent.
var errChanged = errors.New("the checksum of a control message is wrong: something has changed it on the way")

// sumOf is the checksum after a message whose lengths are given as they travel.
func sumOf(sum uint32, lengths, message []byte) uint32 {
	return crc32.Update(crc32.Update(sum, castagnoli, lengths), castagnoli, message)
}

// appendMessage appends a message as it travels, after those with the checksum given, and returns the one after it.
func appendMessage(b []byte, sum uint32, message []byte) ([]byte, uint32) {
	at := len(b)
	b = binary.BigEndian.AppendUint16(b, uint16(len(message)))
	b = binary.BigEndian.AppendUint16(b, ^uint16(len(message)))
	sum = sumOf(sum, b[at:], message)
	return append(binary.BigEndian.AppendUint32(b, sum), message...), sum
}

// messages reads control messages.
type messages struct {
	from  *bufio.Reader
	sum   uint32
	bytes []byte
	got   int // bytes of the next message that have come
}

// next returns the next message, until the next call. After an error that is a timeout it may be called again: what has
// come of the message counts.
func (m *messages) next() (message []byte, err error) {
	if m.bytes == nil {
		m.bytes = make([]byte, headBytes+stream.MaxMessage+generationBytes)
	}
	if err := m.fill(headBytes); err != nil {
		return nil, err
	}
	head := m.bytes[:headBytes]
	n := binary.BigEndian.Uint16(head)
	switch {
	case n != ^binary.BigEndian.Uint16(head[2:]):
		return nil, errChanged
	case n > maxMessage:
		return nil, fmt.Errorf("a control message of %d bytes, want at most %d", n, maxMessage)
	case headBytes+int(n) > len(m.bytes): // who is left of thousands
		m.bytes = append(make([]byte, 0, headBytes+int(n)), head...)[:headBytes+int(n)]
		head = m.bytes[:headBytes]
	}
	if err := m.fill(headBytes + int(n)); err != nil {
		return nil, err
	}
	m.got = 0
	message = m.bytes[headBytes:][:n]
	m.sum = sumOf(m.sum, head[:4], message)
	if m.sum != binary.BigEndian.Uint32(head[4:]) {
		return nil, errChanged
	}
	return message, nil
}

// fill reads until so many bytes of a message have come.
func (m *messages) fill(size int) error {
	for m.got < size {
		n, err := m.from.Read(m.bytes[m.got:size])
		m.got += n
		switch {
		case err == nil || m.got == size:
		case err == io.EOF && m.got > 0:
			return io.ErrUnexpectedEOF
		default:
			return err
		}
	}
	return nil
}

// gone reports whether the process of the peer has ended, and touches no memory any more: the kernel closes its sockets
// after it has let its memory go. The end of the connection alone does not say so: a peer that lives ends it too, where
// it has given this replica up. So a process that cannot be asked after is never known to be gone.
func (c *control) gone() bool { return c.ended.Load() && c.process.ended(0) }

// leave ends the queue. What is in it is still written.
func (c *control) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving {
		return
	}
	c.leaving = true
	c.changed.Signal()
	if c.conn == nil { // nor will there be one
		close(c.written)
		return
	}
	c.conn.SetDeadline(time.Now().Add(leaveTime))
}

// write writes what is queued, until the queue ends.
func (c *control) write(conn net.Conn) {
	defer close(c.written)
	batch := make([]byte, 0, usualQueue)
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.leaving {
			c.changed.Wait()
		}
		batch, c.queue = c.queue, batch[:0]
		c.mu.Unlock()
		if len(batch) == 0 {
			if half, ok := conn.(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			}
			return
		}
		if _, err := conn.Write(batch); err != nil {
			// The reader finds out why: it reads what has come before the end.
			c.mu.Lock()
			c.mute = true
			c.mu.Unlock()
			return
		}
	}
}

// read handles the messages of the replica until it leaves or is lost. Then what this replica has to say is written
// first, an abort among it: the other replica may have been stopped, and go on.
func (c *control) read(conn net.Conn) {
	defer conn.Close()
	defer func() { <-c.written }()
	from := &messages{from: bufio.NewReaderSize(conn, stream.MaxMessage)}
	m := c.mesh
	silence := m.config.silence()
	for {
		c.mu.Lock()
		if !c.leaving && silence > 0 {
			conn.SetReadDeadline(time.Now().Add(silence))
		}
		c.mu.Unlock()
		message, err := from.next()
		if isTimeout(err) {
			// This process may have been stopped itself. What has come meanwhile counts.
			c.mu.Lock()
			if !c.leaving {
				conn.SetReadDeadline(time.Now().Add(silence / 8))
			}
			c.mu.Unlock()
			message, err = from.next()
		}
		if taken, ok := parseHeartbeat(message); ok && err == nil {
			c.beats(taken, time.Now())
		} else if lane, ok := parseRingMade(message); ok && err == nil {
			err = c.mesh.answerRings(c.peer, lane)
		} else if err == nil && len(message) > 0 && message[0] == rejoining {
			err = c.mesh.hears(c.peer, message[1:])
		} else if err == nil && len(message) > 0 && message[0] == introducing {
			err = c.mesh.introduced(c.peer, message[1:])
		} else if err == nil {
			err = c.mesh.handle(c.peer, message)
		}
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
				c.ended.Store(true)
			}
			c.lost(conn, err, silence)
			if isTimeout(err) && m.now.Load().has(c.peer) && c.awaitsLost(conn) {
				silence = 0
				continue
			}
			return
		}
	}
}

// awaitsLost has the connection read on, for as long as it takes, where its replica is silent: it may come back, and
// leave. It reports whether this replica is still there itself.
func (c *control) awaitsLost(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving {
		return false
	}
	conn.SetReadDeadline(time.Time{})
	return true
}

// lost says that nothing comes of the replica any more.
func (c *control) lost(conn net.Conn, err error, silence time.Duration) {
	m := c.mesh
	g, why := m.now.Load(), errParted
	if missed := g.misses(c.peer); missed || !g.has(c.peer) && !c.parted.Load() {
		why = c.why(conn, err, silence) // which takes time
		g.lost(c.peer, why)
	}
	m.lose(c.peer, why)
	if now := m.now.Load(); now != g { // which has begun meanwhile
		now.lost(c.peer, why)
	}
}

// errParted is why a replica is gone that has left in the ordinary way.
var errParted = errors.New("it has closed its communicator")

// heartbeat is the first byte of one. It is no kind of message of package stream.
const heartbeat byte = 0

func appendHeartbeat(b []byte, taken uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, heartbeat), taken)
}

// parseHeartbeat reports whether a message is a heartbeat, and what it says.
func parseHeartbeat(message []byte) (taken uint64, ok bool) {
	if len(message) != 1+8 || message[0] != heartbeat {
		return 0, false
	}
	return binary.BigEndian.Uint64(message[1:]), true
}

// beats notes how many connections the peer has taken.
func (c *control) beats(taken uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken != taken {
		c.taken, c.moved = taken, now
	}
}

// lastTook is when the peer was last known to take a connection of anybody, as far as its heartbeats say; zero: never.
func (c *control) lastTook() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// endTime is how long the kernel is asked whether a process whose connection has ended has ended too: it closes the
// sockets of a process first.
const endTime = 100 * time.Millisecond

// why says in words why the connection has ended.
func (c *control) why(conn net.Conn, err error, silence time.Duration) error {
	c.mu.Lock()
	broken := c.broken
	c.mu.Unlock()
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case broken != nil:
		return broken
	case isTimeout(err):
		return fmt.Errorf("it has said nothing for %v: it is stopped, or its host or the network is down", silence)
	case !ended && !errors.Is(err, syscall.ECONNRESET):
		return err
	case c.process.ended(endTime):
		return errors.New("its process has ended without closing its communicator")
	case ended:
		return fmt.Errorf("its control connection (%s) has ended without a word", ends(conn))
	}
	return fmt.Errorf("its control connection (%s) has ended without a word: %w", ends(conn), err)
}
