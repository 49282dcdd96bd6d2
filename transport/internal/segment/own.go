package segment

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Segment is the one of this process, where it allocates. All methods may be called by several goroutines, but Close,
// after which nothing of the segment is used but ShutPages.
type Segment struct {
	memory
	rank  int
	form  Form
	punch func(at, n int) error // gives pages back, which are zeros then
	hold  func(at, n int) error // has the system give memory, or says that it has none; nil: it gives it when touched
	unmap func() error
	fd    int
	pages *pages

	mu      sync.Mutex // guards what follows
	next    int        // where no block has been yet
	free    map[int][]int
	blocks  map[blockKey]extent
	seats   map[uint64][]blockKey // by lane
	waiting []*Sender             // let go, and their receivers may still look at them
}

// extent is where a block lies.
type extent struct{ at, bytes int }

// newSegment lays a segment out in memory that is zeros.
func newSegment(m memory, rank int, form Form) *Segment {
	putHeader(m, rank, form)
	return &Segment{memory: m[:form.blockBytes()], rank: rank, form: form, fd: -1, pages: newPages(form),
		next: blocksAt, free: map[int][]int{}, blocks: map[blockKey]extent{}, seats: map[uint64][]blockKey{}}
}

// allocate makes a block of zeros under a key that has none. The caller holds s.mu.
func (s *Segment) allocate(key blockKey, bytes int) ([]byte, error) {
	s.reclaim()
	if _, ok := s.blocks[key]; ok {
		return nil, fmt.Errorf("the shared memory has a block of key %#x already", uint64(key))
	}
	at, end := s.next, s.next
	if free := s.free[bytes]; len(free) > 0 {
		at = free[len(free)-1]
	} else if end = at + bytes; end > len(s.memory) {
		return nil, fmt.Errorf("the shared memory of this process is full: %d blocks in %d bytes: want fewer "+
			"communicators and groups at a time", len(s.blocks), len(s.memory))
	}
	if s.hold != nil {
		if err := s.hold(at, bytes); err != nil {
			return nil, fmt.Errorf("%d bytes of shared memory: %w", bytes, err)
		}
	}
	if err := s.enter(key, at); err != nil {
		return nil, err
	}
	if s.next == end {
		s.free[bytes] = s.free[bytes][:len(s.free[bytes])-1]
	}
	s.next = end
	s.blocks[key] = extent{at, bytes}
	return s.memory[at : at+bytes : at+bytes], nil
}

// release gives a block back. The caller holds s.mu.
func (s *Segment) release(key blockKey) {
	x, ok := s.blocks[key]
	if !ok {
		return
	}
	s.strike(key)
	delete(s.blocks, key)
	if s.punch(x.at, x.bytes) == nil { // else it is not used again: it is not zeros
		s.free[x.bytes] = append(s.free[x.bytes], x.at)
	}
}

// reclaim gives back the rings that nobody looks at any more. The caller holds s.mu.
func (s *Segment) reclaim() {
	waiting := s.waiting[:0]
	for _, sender := range s.waiting {
		if sender.done() {
			s.release(sender.key)
		} else {
			waiting = append(waiting, sender)
		}
	}
	clear(s.waiting[len(waiting):])
	s.waiting = waiting
}

// Lane makes the word of a lane: not 0 while the lane sleeps, and wants to be woken by who changes something.
func (s *Segment) Lane(lane uint64) (asleep *atomic.Uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.allocate(keyOf(laneKind, lane, 0), pageBytes)
	if err != nil {
		return nil, err
	}
	return word(b, 0), nil
}

// FreeLane gives the word of a lane back. Others that write it do no harm.
func (s *Segment) FreeLane(lane uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(keyOf(laneKind, lane, 0))
}

// Seat makes the block of this process as a member of a group on a lane, of whole pages of zeros.
func (s *Segment) Seat(lane, group uint64, bytes int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(seatKind, lane, group)
	b, err := s.allocate(key, bytes)
	if err == nil {
		s.seats[lane] = append(s.seats[lane], key)
	}
	return b, err
}

// FreeSeats gives back the blocks of Seat on a lane. No member of its groups looks at them any more.
func (s *Segment) FreeSeats(lane uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.seats[lane] {
		s.release(key)
	}
	delete(s.seats, lane)
}

// Aborted is a word that another process sets when it aborts, to who it is, and 0 before: it then looks for calls of
// this process that touch its memory, and this one looks at the word after it has said that a call does.
func (m memory) Aborted() *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&m[abortedAt])) }

// Check says whether the header and the directory of this process's segment are what it has written.
func (s *Segment) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := checkHeader(s.memory[:headerUsed], s.rank, s.form); err != nil {
		return errors.Join(errOverwritten, err)
	}
	for key, x := range s.blocks {
		if !s.holds(key, x.at) {
			return errOverwritten
		}
	}
	return nil
}

// Sender makes a ring to a peer on a lane.
func (s *Segment) Sender(lane uint64, peer int) (*Sender, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(ringKind, lane, uint64(peer))
	b, err := s.allocate(key, ringAt+s.form.Ring)
	if err != nil {
		return nil, err
	}
	return newSender(b, key), nil
}

// Free lets a ring go that has ended. Its memory is given back when the receiver is done, or at once if it is lonely:
// the receiver had ended its own ring before it could see this one.
func (s *Segment) Free(sender *Sender, lonely bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lonely || sender.done() {
		s.release(sender.key)
		return
	}
	s.waiting = append(s.waiting, sender)
}

// FD is the descriptor of the segment, for others to have.
func (s *Segment) FD() int { return s.fd }

// Memory is the segment as it is mapped, up to its pages: for tests.
func (s *Segment) Memory() []byte { return s.memory }

// Close lets go of the segment. Others that have mapped it still have it, and pages of the program that are open stay
// as they are until ShutPages.
func (s *Segment) Close() error {
	s.closePages()
	return s.unmap()
}

// Peer is the segment of another process. All methods may be called by several goroutines, but Close, after which
// nothing of the segment is used.
type Peer struct {
	memory
	pages []byte
	form  Form
	unmap func() error
}

// newPeer is a segment of another process that is mapped at m.
func newPeer(m memory, form Form, unmap func() error) *Peer {
	at := form.blockBytes()
	return &Peer{memory: m[:at], pages: m[at:], form: form, unmap: unmap}
}

// Lane is the word of a lane of the peer, as in Segment.Lane, or nil: the peer has not opened the lane.
func (p *Peer) Lane(lane uint64) (asleep *atomic.Uint64) {
	if b := p.find(keyOf(laneKind, lane, 0), pageBytes); b != nil {
		return word(b, 0)
	}
	return nil
}

// Receiver is the peer's ring to this process, which is number me, on a lane, or nil: the peer has not made it.
func (p *Peer) Receiver(lane uint64, me int) *Receiver {
	key := keyOf(ringKind, lane, uint64(me))
	if b := p.find(key, ringAt+p.form.Ring); b != nil {
		return newReceiver(b, key, p.memory)
	}
	return nil
}

// Seat is the block of the peer as a member of a group on a lane, as in Segment.Seat, or nil: the peer has not made it.
func (p *Peer) Seat(lane, group uint64, bytes int) []byte {
	return p.find(keyOf(seatKind, lane, group), bytes)
}

// Ended reports whether the sender has ended.
func (r *Receiver) Ended() bool { return r.endedAt.Load() != 0 }

// Close lets go of the segment.
func (p *Peer) Close() error { return p.unmap() }
