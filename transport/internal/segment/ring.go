package segment

import (
	"errors"
	"io"
	"sync/atomic"
)

// ringAt is where in a ring's block the bytes begin, and how long its words are: a page, so that the bytes are aligned.
const ringAt = pageBytes

// publishBytes is after how many bytes a Sender lets the other side see them: that begins while the rest is copied.
const publishBytes = 64 << 10

// The words of a ring. Those of either side are in a line of the cache of their own.
const (
	wroteWord = 0 // bytes that the sender has put in since the ring was made
	endedWord = 1 // not 0: the sender puts no more in
	wantsWord = 2 // not 0: the sender waits for room
	readWord  = 8 // bytes that the receiver has taken out
	doneWord  = 9 // the ring's key: the receiver does not look at the ring any more
)

// errIndex says that the other side's index of a ring is impossible.
var errIndex = errors.New("an index of the shared memory makes no sense: a process has overwritten it")

// errOverwritten says the same of the header and the directory.
var errOverwritten = errors.New("the shared memory of this process makes no sense: another process has overwritten it")

// Sender is the end of a ring that puts bytes in. One goroutine at a time uses it.
type Sender struct {
	key   blockKey
	bytes []byte

	wrote     uint64 // this side's index, which is not read back
	noted     uint64 // read, at the last look
	notedDone bool
	full      bool // wants is set

	wroteAt, endedAt, wantsAt, readAt, doneAt *atomic.Uint64
}

func newSender(b []byte, key blockKey) *Sender {
	return &Sender{key: key, bytes: b[ringAt:], wroteAt: word(b, wroteWord), endedAt: word(b, endedWord),
		wantsAt: word(b, wantsWord), readAt: word(b, readWord), doneAt: word(b, doneWord)}
}

// room is how many bytes the ring has room for.
func (s *Sender) room() (int, error) {
	s.noted = s.readAt.Load()
	used := s.wrote - s.noted
	if used > uint64(len(s.bytes)) {
		return 0, errIndex
	}
	return len(s.bytes) - int(used), nil
}

// Send puts in as much of head, body and tail, one after the other, as there is room for, and returns how many bytes
// that is. It calls published each time that the other side can see more. The error is io.ErrClosedPipe when the other
// side is done.
func (s *Sender) Send(head, body, tail []byte, published func()) (n int, err error) {
	if s.done() {
		return 0, io.ErrClosedPipe
	}
	room, err := s.room()
	if err != nil {
		return 0, err
	}
	if s.full && room > 0 {
		s.full = false
		s.wantsAt.Store(0)
	}
	shown := 0 // of n
	for _, b := range [3][]byte{head, body, tail} {
		for len(b) > 0 {
			if room == 0 {
				if room, err = s.wait(); err != nil || room == 0 {
					return n, s.publish(n-shown, published, err)
				}
			}
			at := int(s.wrote) & (len(s.bytes) - 1)
			k := copy(s.bytes[at:], b[:min(len(b), room, publishBytes)])
			b, room, n, s.wrote = b[k:], room-k, n+k, s.wrote+uint64(k)
			if n-shown >= publishBytes {
				s.publish(n-shown, published, nil)
				shown = n
			}
		}
	}
	return n, s.publish(n-shown, published, nil)
}

// publish lets the other side see what has been put in, n bytes of which it does not know. It returns err.
func (s *Sender) publish(n int, published func(), err error) error {
	if n > 0 {
		s.wroteAt.Store(s.wrote)
		published()
	}
	return err
}

// wait is room of a ring that was full: if it still is, the receiver is told that the sender waits.
func (s *Sender) wait() (int, error) {
	s.wantsAt.Store(1)
	room, err := s.room()
	if s.full = room == 0; !s.full {
		s.wantsAt.Store(0)
	}
	return room, err
}

// done reports whether the receiver does not look at the ring any more.
func (s *Sender) done() bool { return s.doneAt.Load() == uint64(s.key) }

// Changed reports whether the sender has come to be able to do something since it last looked, or was asked.
func (s *Sender) Changed() bool {
	changed := false
	if done := s.done(); done != s.notedDone {
		s.notedDone, changed = done, true
	}
	if read := s.readAt.Load(); s.full && read != s.noted {
		s.noted, changed = read, true
	}
	return changed
}

// End says that no more is put in. What is in the ring can still be taken out.
func (s *Sender) End() { s.endedAt.Store(1) }

// Receiver is the end of a ring that takes bytes out. One goroutine at a time uses it.
type Receiver struct {
	key     blockKey
	bytes   []byte
	segment memory // the sender's

	read       uint64 // this side's index, which is not read back
	noted      uint64 // wrote, at the last look: not less than read, and by no more than the ring holds
	notedEnded bool
	broken     bool // Changed has found an index that makes no sense

	wroteAt, endedAt, wantsAt, readAt, doneAt *atomic.Uint64
}

func newReceiver(b []byte, key blockKey, segment memory) *Receiver {
	return &Receiver{key: key, bytes: b[ringAt:], segment: segment,
		wroteAt: word(b, wroteWord), endedAt: word(b, endedWord), wantsAt: word(b, wantsWord),
		readAt: word(b, readWord), doneAt: word(b, doneWord)}
}

// look notes what has come.
func (r *Receiver) look() error {
	wrote := r.wroteAt.Load()
	if wrote-r.read > uint64(len(r.bytes)) {
		return errIndex
	}
	r.noted = wrote
	return nil
}

// Peek returns what has come and lies in one place, at least n bytes, or nil if fewer have come. The bytes are only to
// be read, until Skip; the sender could change them. Where n bytes do not lie in one place that is an error: those of a
// line of 64 always do. The error is io.EOF when the sender has ended and fewer than n bytes are left.
func (r *Receiver) Peek(n int) ([]byte, error) {
	if r.noted-r.read < uint64(n) {
		r.notedEnded = r.endedAt.Load() != 0 // before the look: what was put in before the end counts
		if err := r.look(); err != nil {
			return nil, err
		}
	}
	have := int(r.noted - r.read)
	if have < n {
		if r.notedEnded {
			return nil, io.EOF
		}
		return nil, nil
	}
	at := int(r.read) & (len(r.bytes) - 1)
	b := r.bytes[at:min(len(r.bytes), at+have)]
	if len(b) < n {
		return nil, errIndex
	}
	return b, nil
}

// Skip lets go of n bytes that Peek has shown. It reports whether the sender is to be woken, if it sleeps: it waits for
// room, and half of the ring is free.
func (r *Receiver) Skip(n int) (wake bool) {
	r.read += uint64(n)
	r.readAt.Store(r.read)
	if r.wantsAt.Load() == 0 {
		return false
	}
	return r.wroteAt.Load()-r.read <= uint64(len(r.bytes)/2)
}

// Come is how many bytes have come, as far as the index makes sense. It is not a look: Changed goes on to say that they
// have come.
func (r *Receiver) Come() uint64 {
	if wrote := r.wroteAt.Load(); wrote-r.read <= uint64(len(r.bytes)) {
		return wrote
	}
	return r.noted // the index shows in Peek
}

// Changed reports whether something has come since the receiver last looked, or was asked.
func (r *Receiver) Changed() bool {
	changed := false
	if ended := r.endedAt.Load() != 0; ended != r.notedEnded {
		r.notedEnded, changed = ended, true
	}
	if r.wroteAt.Load() != r.noted && !r.broken {
		r.broken, changed = r.look() != nil, true
	}
	return changed
}

// Done says that the receiver does not look at the ring any more. Nothing is called after it. The owner may have freed
// a lonely ring already, and made another one in its memory: what the receiver of that one has said stays.
func (r *Receiver) Done() {
	for {
		before := r.doneAt.Load()
		if r.segment.find(r.key, ringAt+len(r.bytes)) == nil || r.doneAt.CompareAndSwap(before, uint64(r.key)) {
			return
		}
	}
}
