package tcp

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"gogcl.dev/transport/internal/stream"
)

// control is the connection to one replica that carries control messages: two bytes of length, then the message. An
// empty message says that the replica is there.
type control struct {
	mesh *mesh
	peer int

	mu       sync.Mutex // guards what follows
	changed  sync.Cond  // queue or leaving
	reserved bool
	conn     net.Conn
	queue    []byte // not written yet
	leaving  bool   // nothing will be added to queue
	broken   error  // why this replica has ended the connection, if it has

	written chan struct{} // closed when the last byte is written, or nothing can be
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

// bare is the connection below TLS.
func bare(conn net.Conn) net.Conn {
	if over, ok := conn.(*tls.Conn); ok {
		return over.NetConn()
	}
	return conn
}

func newControl(m *mesh, peer int) *control {
	c := &control{mesh: m, peer: peer, written: make(chan struct{})}
	c.changed.L = &c.mu
	return c
}

// reserve is for a connection that is about to start. The error says why there can be none.
func (c *control) reserve() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.leaving:
		return fmt.Errorf("replica %d has left the job", c.mesh.config.Rank)
	case c.reserved:
		return fmt.Errorf("replica %d is here already: another process has its rank", c.peer)
	}
	c.reserved = true
	return nil
}

// release undoes reserve for a connection that will not start.
func (c *control) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved = c.conn != nil
}

// isReserved reports whether there is a connection or will be one soon.
func (c *control) isReserved() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reserved
}

// start begins to use a connection, unless this replica has left meanwhile.
func (c *control) start(conn net.Conn) {
	c.mesh.tune(conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving {
		conn.Close()
		return
	}
	c.conn = conn
	go c.write(conn)
	go c.read(conn)
}

// tell queues a message.
func (c *control) tell(message []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.broken != nil {
		return
	}
	if len(c.queue) > maxQueue {
		c.broken = fmt.Errorf("it has not read what it was told, more than %d bytes", maxQueue)
		if c.conn != nil {
			c.conn.Close() // the reader finds the reason
		}
		return
	}
	c.queue = binary.BigEndian.AppendUint16(c.queue, uint16(len(message)))
	c.queue = append(c.queue, message...)
	c.changed.Signal()
}

// leave ends the queue. What is in it is still written.
func (c *control) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	var batch []byte
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
			// The reader finds out why. Nothing that is queued from now on arrives.
			c.mu.Lock()
			c.leaving = true
			c.mu.Unlock()
			return
		}
	}
}

// read handles the messages of the replica until it leaves or is lost.
func (c *control) read(conn net.Conn) {
	defer conn.Close()
	from := bufio.NewReaderSize(conn, stream.MaxMessage)
	var head [2]byte
	message := make([]byte, stream.MaxMessage)
	silence := c.mesh.config.silence()
	for {
		c.mu.Lock()
		if !c.leaving && silence > 0 {
			conn.SetReadDeadline(time.Now().Add(silence))
		}
		c.mu.Unlock()
		got, err := io.ReadFull(from, head[:])
		if got == 0 && isTimeout(err) {
			// This process may have been stopped itself. What has come meanwhile counts.
			c.mu.Lock()
			if !c.leaving {
				conn.SetReadDeadline(time.Now().Add(silence / 8))
			}
			c.mu.Unlock()
			_, err = io.ReadFull(from, head[:])
		}
		n := int(binary.BigEndian.Uint16(head[:]))
		if err == nil && n > len(message) {
			err = fmt.Errorf("a control message of %d bytes, want at most %d", n, len(message))
		}
		if err == nil {
			_, err = io.ReadFull(from, message[:n])
		}
		if err == nil && n > 0 {
			err = c.mesh.node.Handle(c.peer, message[:n])
		}
		if err != nil {
			c.mesh.node.Lost(c.peer, c.why(err, silence))
			return
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// why says in words why the connection has ended.
func (c *control) why(err error, silence time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.broken != nil:
		return c.broken
	case isTimeout(err):
		return fmt.Errorf("it has said nothing for %v: it is stopped, or its host or the network is down", silence)
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return errors.New("its process has ended without closing its communicator")
	case errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("its process has ended without closing its communicator: %w", err)
	}
	return err
}
