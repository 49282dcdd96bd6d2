package tcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/handshake"
)

// recorded are control messages of all lengths that there are, an empty one among them.
func recorded() [][]byte {
	var call transport.Call
	long := bytes.Repeat([]byte("abcdefg"), 40)
	return [][]byte{{}, {3, 1, 0, 0, 0, 0, 0, 0, 0}, transport.AppendCall([]byte{3, 1, 0, 0, 0, 0, 0, 0, 0}, call), {},
		long, {7}}
}

// onTheWire is how messages travel, and where each ends.
func onTheWire(all [][]byte) (wire []byte, ends []int) {
	sum := uint32(0)
	for _, m := range all {
		wire, sum = appendMessage(wire, sum, m)
		ends = append(ends, len(wire))
	}
	return wire, ends
}

// readAll reads messages until there is an error.
func readAll(wire []byte) (all [][]byte, err error) {
	m := &messages{from: bufio.NewReader(bytes.NewReader(wire))}
	for {
		message, err := m.next()
		if err != nil {
			return all, err
		}
		all = append(all, bytes.Clone(message))
	}
}

// halting is a reader that has one byte at a time, and a timeout before each.
type halting struct {
	bytes []byte
	halts bool
}

func (h *halting) Read(b []byte) (int, error) {
	if h.halts = !h.halts; h.halts {
		return 0, os.ErrDeadlineExceeded
	}
	if len(h.bytes) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:1], h.bytes)
	h.bytes = h.bytes[n:]
	return n, nil
}

// TestControlHalts: a message of which a part has come when the time is over is read on. A process that was stopped has
// such a one, and would else take its sender for lost. The end in the middle of one is no ordinary end.
func TestControlHalts(t *testing.T) {
	sent := recorded()
	wire, ends := onTheWire(sent)
	for cut := range len(wire) + 1 {
		m := &messages{from: bufio.NewReader(&halting{bytes: wire[:cut]})}
		for i := 0; ; {
			message, err := m.next()
			switch {
			case isTimeout(err):
				continue
			case err == nil && i < len(sent) && bytes.Equal(message, sent[i]):
				i++
				continue
			}
			want := io.ErrUnexpectedEOF
			if cut == 0 || slices.Contains(ends, cut) {
				want = io.EOF
			}
			if whole, _ := slices.BinarySearch(ends, cut+1); err != want || i != whole {
				t.Fatalf("of %d bytes: %d messages, want %d, and then %v, want %v", cut, i, whole, err, want)
			}
			break
		}
	}
}

// TestControlChecksum: of control messages of which a bit has been changed on the way, or that do not come, those
// before arrive, and none that was not sent.
func TestControlChecksum(t *testing.T) {
	sent := recorded()
	wire, ends := onTheWire(sent)
	if got, err := readAll(wire); err != io.EOF || len(got) != len(sent) {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	for bit := range 8 * len(wire) {
		bad := bytes.Clone(wire)
		bad[bit/8] ^= 1 << (bit % 8)
		good := 0 // messages before that with the bit
		for ends[good] <= bit/8 {
			good++
		}
		got, err := readAll(bad)
		if err != errChanged || len(got) != good {
			t.Errorf("bit %d: %d messages and %v, want %d and that it has been changed", bit, len(got), err, good)
		}
		for i := range got {
			if !bytes.Equal(got[i], sent[i]) {
				t.Errorf("bit %d: message %d has arrived as % x", bit, i, got[i])
			}
		}
	}
	for i := range sent[:len(sent)-1] { // a whole message is lost, or comes twice
		begin := 0
		if i > 0 {
			begin = ends[i-1]
		}
		lost := append(bytes.Clone(wire[:begin]), wire[ends[i]:]...)
		twice := append(bytes.Clone(wire[:ends[i]]), wire[begin:]...)
		if got, err := readAll(lost); err != errChanged || len(got) != i {
			t.Errorf("without message %d: %d messages, %v", i, len(got), err)
		}
		if got, err := readAll(twice); err != errChanged || len(got) != i+1 {
			t.Errorf("message %d twice: %d messages, %v", i, len(got), err)
		}
	}
	long, _ := appendMessage(nil, 0, make([]byte, maxMessage+1))
	if _, err := readAll(long); err == nil || !strings.Contains(err.Error(), "want at most") {
		t.Errorf("a message that is too long: %v", err)
	}
}

// TestHeartbeats: what a replica says when it says that it is there is what the other one knows of it.
func TestHeartbeats(t *testing.T) {
	beat := appendHeartbeat(nil, 7)
	if taken, ok := parseHeartbeat(beat); taken != 7 || !ok {
		t.Errorf("% x is %d, %v", beat, taken, ok)
	}
	for _, other := range [][]byte{nil, beat[:8], append(beat, 0), append([]byte{1}, beat[1:]...)} {
		if _, ok := parseHeartbeat(other); ok {
			t.Errorf("% x is taken for one", other)
		}
	}
	const silence = time.Hour
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		sender, receiver := quietMesh(1, 2), quietMesh(0, 2)
		for _, m := range []*mesh{sender, receiver} {
			m.config.Silence = silence
			m.all()[m.config.Rank] = nil
			m.ctx, m.cancel = context.WithCancel(context.Background())
			g, err := m.found()
			if err != nil {
				t.Fatal(err)
			}
			defer g.lane.Close()
		}
		hello := handshake.Hello{Rank: 0, Peer: 1, Role: handshake.Control, Lane: 1}
		if err := sender.admit(here, hello); err != nil {
			t.Fatal(err)
		}
		go there.Write([]byte{started})
		sender.join(here, hello)
		receiver.at(1).start(there, nil, nil)
		sender.beat()
		time.Sleep(silence)
		receiver.at(1).mu.Lock()
		taken := receiver.at(1).taken
		receiver.at(1).mu.Unlock()
		if taken != 1 || receiver.at(1).lastTook().IsZero() {
			t.Errorf("the other replica knows of %d connections, want 1", taken)
		}
		sender.abort(errors.New("the end"))
	})
}

// TestStoppedHearsWhy: a replica that is stopped for longer than Silence, and goes on, reads that it was held for lost.
// The connection is not closed before that is written.
func TestStoppedHearsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quietMesh(0, 2)
		m.config.Silence = time.Second
		m.all()[0] = nil
		m.ctx, m.cancel = context.WithCancel(context.Background())
		g, err := m.found()
		if err != nil {
			t.Fatal(err)
		}
		node, lane := g.node, g.lane
		here, there := net.Pipe() // which holds nothing: a write waits until it is read
		m.at(1).start(here, nil, nil)
		<-node.Done()
		time.Sleep(time.Minute)
		closed := make(chan error)
		go func() { closed <- lane.Close() }()
		from := &messages{from: bufio.NewReader(there)}
		message, err := from.next()
		if err != nil || len(message) < 5 {
			t.Fatalf("% x, %v, want an abort", message, err)
		}
		cause, err := transport.ParseError(message[5:])
		var lost *transport.LostError
		if err != nil || !errors.As(cause, &lost) || lost.Replica != 1 {
			t.Errorf("the abort is %v, %v", cause, err)
		}
		for err == nil {
			_, err = from.next()
		}
		there.Close()
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// goneOn is the connection of a process that has been stopped, and goes on when the peer has ended: it cannot write,
// its read deadline is over, and what the peer has written is there.
type goneOn struct {
	net.Conn
	wrote    chan struct{} // closed by the first Write
	deadline time.Time
	come     *bytes.Reader
	woken    bool
}

func (c *goneOn) Write([]byte) (int, error) {
	close(c.wrote)
	return 0, syscall.EPIPE
}

func (c *goneOn) Read(b []byte) (int, error) {
	if !c.woken {
		<-c.wrote
		c.woken = true
		time.Sleep(time.Until(c.deadline))
	}
	if !time.Now().Before(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.come.Read(b)
}

func (c *goneOn) SetReadDeadline(t time.Time) error { c.deadline = t; return nil }
func (c *goneOn) Close() error                      { return nil }

// TestStoppedReadsTheRest: a replica that goes on after a stop, and cannot write any more, reads why all the same.
func TestStoppedReadsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all [2]*mesh
		for rank := range all {
			m := quietMesh(rank, 2)
			m.config.Silence = time.Second
			m.all()[rank] = nil
			m.ctx, m.cancel = context.WithCancel(context.Background())
			if _, err := m.found(); err != nil {
				t.Fatal(err)
			}
			all[rank] = m
		}
		all[1].abort(errors.New("the other one's cause"))
		c := all[0].at(1)
		here, _ := net.Pipe() // for its address
		conn := &goneOn{Conn: here, wrote: make(chan struct{}), come: bytes.NewReader(all[1].at(0).queue)}
		c.start(conn, nil, nil)
		c.tell(appendHeartbeat(nil, 0))
		<-all[0].now.Load().node.Done()
		var aborted *transport.AbortError
		if err := all[0].now.Load().node.Err(); !errors.As(err, &aborted) || aborted.Replica != 1 ||
			!strings.Contains(err.Error(), "the other one's cause") {
			t.Errorf("%v, want the abort of replica 1", err)
		}
		// What is told from now on goes nowhere, and is not kept.
		c.tell(appendHeartbeat(nil, 0))
		if len(c.queue) > 0 {
			t.Errorf("%d bytes are kept for a replica that reads nothing", len(c.queue))
		}
	})
}
