package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"gogcl.dev/transport/internal/crowd"
	"gogcl.dev/transport/internal/segment"
	"gogcl.dev/transport/internal/user"
)

// shared is what a replica shares with others of its host.
//
//	replica 0                             replica 1
//	makes a ring to 1 in its own segment
//	── control message: ring, lane ─────▶ makes a ring to 0 in its own, and finds that of 0
//	finds that of 1 by looking
type shared struct {
	own   *segment.Segment
	bell  int
	rank  int
	crowd crowd.Watch

	// mu guards closed, and lets no link be made or closed meanwhile. Lanes use what they have without it: they are
	// closed before.
	mu     sync.Mutex
	closed bool
}

// neighbour is what another replica has given.
type neighbour struct {
	segment *segment.Peer
	bell    int
}

func newShared(rank int, form segment.Form) (*shared, error) {
	own, err := segment.Make(rank, form)
	if err != nil {
		return nil, err
	}
	bell, err := segment.MakeBell()
	if err != nil {
		own.Close()
		return nil, err
	}
	s := &shared{own: own, bell: bell, rank: rank}
	s.crowd.Init(crowd.Taken)
	return s, nil
}

// allAddresses bounds the addresses that a process gives to segments, its own and the others': a quarter of those that
// there are where addresses have 47 bits.
const allAddresses = 1 << 45

// segmentForm is the form of all segments of the job.
func (c *Config) segmentForm() segment.Form {
	if c.form != (segment.Form{}) {
		return c.form
	}
	return segment.DefaultForm.Within(allAddresses / int64(max(c.Size, c.Most)))
}

// tryMemory makes what a replica shares, where that is left open, or says why it cannot.
func (l *Listener) tryMemory() {
	if !l.config.Network.traits().auto {
		return
	}
	s, err := l.config.tryMemory()
	if err != nil {
		l.address.Sockets = err.Error()
		return
	}
	l.shm, l.address.Memory = s, user.Name()
}

// tryMemory makes what a replica shares, if it can share memory and has enough addresses for what the others share. The
// error says in words why it cannot.
func (c *Config) tryMemory() (*shared, error) {
	if _, system := c.stack(); !system {
		return nil, errors.New("its network is one in memory of a test")
	}
	if c.TLS != nil {
		return nil, errors.New("it has TLS, which memory has not")
	}
	form := c.segmentForm()
	if form.Pages < leastPages {
		return nil, fmt.Errorf("%d replicas are too many for segments of memory that are long enough", max(c.Size, c.Most))
	}
	if err := checkDescriptors(max(c.Size, c.Most), Shm); err != nil {
		return nil, err
	}
	if err := segment.CheckRoom(form, max(c.Size, c.Most)); err != nil {
		return nil, err
	}
	return newShared(c.Rank, form)
}

// leastPages is how much memory a segment must have for gcl.Alloc, or it is not worth the while.
const leastPages = 256 << 20

// close lets go of all memory. The lanes are closed.
func (s *shared) close(controls []*control) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.own.Close()
	closeDescriptors(s.bell)
	for _, c := range controls {
		if c != nil {
			c.neighbour().close()
		}
	}
}

func (n *neighbour) close() {
	if n != nil {
		n.segment.Close()
		closeDescriptors(n.bell)
	}
}

// ringMade is the first byte of the control message that a replica has made a ring on a lane. It is no kind of message
// of package stream.
const ringMade byte = 255

func appendRingMade(b []byte, lane uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, ringMade), lane)
}

// parseRingMade reports whether a message says that there is a ring, and on which lane.
func parseRingMade(message []byte) (lane uint64, ok bool) {
	if len(message) != 1+8 || message[0] != ringMade {
		return 0, false
	}
	return binary.LittleEndian.Uint64(message[1:]), true
}

// rings is a stream.Link over a ring in each direction.
type rings struct {
	shared *shared
	lane   uint64
	near   *neighbour
	out    *segment.Sender
	in     *segment.Receiver // nil: the peer has not made it, as far as this side has looked
	asleep *atomic.Uint64    // of the peer's lane; nil: the peer has not opened it, as far as this side has looked
	lonely bool              // the peer had ended before it could see out
	wakes  func()            // wake
}

// newRings makes a link, with a ring to the replica of the control connection.
func (s *shared) newRings(c *control, lane uint64) (*rings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	near := c.neighbour()
	if s.closed || near == nil {
		return nil, net.ErrClosed
	}
	out, err := s.own.Sender(lane, c.peer)
	if err != nil {
		return nil, err
	}
	r := &rings{shared: s, lane: lane, near: near, out: out}
	r.wakes = r.wake
	return r, nil
}

// connectRings makes a link on a lane, and tells the replica.
func (g *generation) connectRings(peer int, lane uint64) {
	m := g.mesh
	r, err := m.shm.newRings(m.at(peer), lane)
	switch {
	case errors.Is(err, net.ErrClosed):
	case err != nil:
		g.node.Abort(fmt.Errorf("replica %d cannot connect with replica %d: %w", m.me(), m.number(peer), err))
	default:
		// First: a lane that has its link may send, and leave.
		m.at(peer).tell(appendRingMade(nil, lane))
		g.give(peer, lane, r)
	}
}

// answerRings makes the link on a lane where another replica says that it has made a ring. The error is that of one
// which has not.
func (m *mesh) answerRings(peer int, lane uint64) error {
	if m.at(peer).neighbour() == nil || peer > m.config.Rank {
		return fmt.Errorf("it says that it has made a ring on lane %#x, for which nobody has asked", lane)
	}
	r, err := m.shm.newRings(m.at(peer), lane)
	switch {
	case errors.Is(err, net.ErrClosed):
		return nil
	case err != nil:
		return err
	case !m.shm.answers(r):
		r.Close()
		return fmt.Errorf("it says that it has made a ring on lane %#x, and its shared memory has none", lane)
	}
	if g := m.of(lane); g != nil {
		g.give(peer, lane, r)
	} else {
		r.Close()
	}
	return nil
}

// answers has a link see the peer's ring, and reports whether there is one.
func (s *shared) answers(r *rings) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return true
	}
	found := r.found()
	// The peer ends its ring before it looks for this one the last time.
	r.lonely = found && r.in.Ended()
	r.wake()
	return found
}

// found looks for the ring of the peer, unless it has been found.
func (r *rings) found() bool {
	if r.in == nil {
		r.in = r.near.segment.Receiver(r.lane, r.shared.rank)
	}
	return r.in != nil
}

// wake wakes the peer's lane if it sleeps. Something has been changed before.
func (r *rings) wake() {
	if r.asleep == nil {
		if r.asleep = r.near.segment.Lane(r.lane); r.asleep == nil {
			return // who opens a lane looks before it sleeps
		}
	}
	if r.asleep.Load() != 0 && r.asleep.Swap(0) != 0 {
		segment.RingBell(r.near.bell)
	}
}

// Send implements stream.Link.
func (r *rings) Send(head, body, tail []byte) (int, error) {
	return r.out.Send(head, body, tail, r.wakes)
}

// Peek implements stream.Link.
func (r *rings) Peek(n int) ([]byte, error) {
	if !r.found() {
		return nil, nil
	}
	return r.in.Peek(n)
}

// Skip implements stream.Link.
func (r *rings) Skip(n int) {
	if r.in.Skip(n) {
		r.wake()
	}
}

// skipBytes is after how many bytes that are copied out of a ring the sender may use their room.
const skipBytes = 64 << 10

// ReadInto implements stream.Link.
func (r *rings) ReadInto(dst []byte) (n int, err error) {
	for n < len(dst) {
		b, err := r.Peek(1)
		if b == nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		k := copy(dst[n:], b[:min(len(b), skipBytes)])
		r.Skip(k)
		n += k
	}
	return n, nil
}

// Come implements stream.Gauge.
func (r *rings) Come() (bytes, moved uint64) {
	if r.found() {
		bytes = r.in.Come()
	}
	return bytes, bytes
}

// Ends implements stream.Gauge.
func (r *rings) Ends() string { return "shared memory" }

// changed reports whether something can be done that could not be done at the last look.
func (r *rings) changed() bool {
	in := r.in != nil && r.in.Changed() || r.in == nil && r.found()
	return r.out.Changed() || in
}

// Close implements stream.Link. What has been sent lies where the peer finds it.
func (r *rings) Close() error {
	s := r.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	r.out.End()
	if r.found() { // after the end: see answers
		r.in.Done()
	}
	r.wake()
	s.own.Free(r.out, r.lonely)
	return nil
}

// swapped is the byte with which descriptors travel.
const swapped = 2

// verdictLimit bounds the text of a verdict, whose length is one byte.
const verdictLimit = 255

// swap gives the replica at the other end of a control connection what it needs of this one's memory, and takes what it
// gives. Each says what is wrong with that; both have an error then.
func (s *shared) swap(u *net.UnixConn, peer int, form segment.Form) (*neighbour, error) {
	if err := s.give(u); err != nil {
		return nil, fmt.Errorf("the descriptors of shared memory for replica %d: %w", peer, err)
	}
	near, wrong := take(u, peer, form)
	verdict := ""
	if wrong != nil {
		verdict = boundedText(wrong)
		wrong = fmt.Errorf("the shared memory of replica %d: %w", peer, wrong)
	}
	_, err := u.Write(append([]byte{byte(len(verdict))}, verdict...))
	if wrong != nil {
		return nil, wrong
	}
	text := make([]byte, 1+verdictLimit)
	if err == nil {
		_, err = io.ReadFull(u, text[:1])
	}
	said := text[1:][:text[0]]
	if err == nil {
		_, err = io.ReadFull(u, said)
	}
	if err == nil && len(said) > 0 {
		err = fmt.Errorf("it refuses that of this replica: %s", said)
	}
	if err != nil {
		near.close()
		return nil, fmt.Errorf("the shared memory of replica %d: %w", peer, err)
	}
	return near, nil
}
