package inproc

import (
	"sync/atomic"
	"unsafe"

	"gogcl.dev/transport"
)

// The states of a slot. The sender takes it from free to posted, a receiver from posted to claimed and on to free or
// refused, and a sender that leaves early from posted back to free.
const (
	free    uint32 = iota // the sender's: nothing is offered, or what was offered has been taken
	posted                // offered: whoever swaps it away first, receiver or sender, decides
	claimed               // the receiver's: it reads the sender's memory
	refused               // the sender's: the receiver let go of it unread or half read, after an abort
)

// slot is where one message between an ordered pair of replicas is offered: the call, and the sender's own memory. All
// but state belongs to whoever the state names. It fills one cache line, which is why the call lies in it field by
// field.
type slot struct {
	state       atomic.Uint32
	root, round uint32

	collective, operator, dtype, method uint8

	group, seq, count, digest uint64

	data *byte
	size int
}

// post offers buf. The slot must be free.
func (s *slot) post(call *transport.Call, buf []byte) {
	s.root, s.round = call.Root, call.Round
	s.collective, s.operator, s.dtype, s.method = call.Collective, call.Operator, call.DType, call.Method
	s.group, s.seq, s.count, s.digest = call.Group, call.Seq, call.Count, call.Digest
	s.data, s.size = unsafe.SliceData(buf), len(buf)
	s.state.Store(posted)
}

// claim makes the slot the receiver's, if it is posted.
func (s *slot) claim() bool {
	return s.state.Load() == posted && s.state.CompareAndSwap(posted, claimed)
}

// release gives a claimed slot back to the sender, as free or as refused. The sender's memory may be gone right after.
func (s *slot) release(state uint32) {
	s.data = nil
	s.state.Store(state)
}

// withdraw takes an offer back, unless it has been claimed.
func (s *slot) withdraw() bool {
	if !s.state.CompareAndSwap(posted, free) {
		return false
	}
	s.data = nil
	return true
}

// is reports whether the message belongs to this call. Only the claimer may ask.
func (s *slot) is(call *transport.Call) bool {
	return s.seq == call.Seq && s.round == call.Round && s.group == call.Group && s.digest == call.Digest &&
		s.count == call.Count && s.root == call.Root && s.collective == call.Collective &&
		s.operator == call.Operator && s.dtype == call.DType && s.method == call.Method
}

// call is the call of a claimed message.
func (s *slot) call() transport.Call {
	return transport.Call{
		Group: s.group, Seq: s.seq, Count: s.count, Digest: s.digest, Root: s.root, Round: s.round,
		Collective: s.collective, Operator: s.operator, DType: s.dtype, Method: s.method,
	}
}

// bytes is the sender's memory, good while the slot is claimed.
func (s *slot) bytes() []byte { return unsafe.Slice(s.data, s.size) }

// block holds a few slots of one mailbox. Three and a header make 256 bytes: an allocation that Go aligns so that each
// slot has a cache line of its own, and enough for all methods but the most finely pipelined.
type block struct {
	next  atomic.Pointer[block]
	_     [64 - unsafe.Sizeof(uintptr(0))]byte
	slots [3]slot
}

// mailbox is one side's view of the slots from one replica to another, by tag. The slots themselves never move: the
// sender appends blocks to a linked list, whose head lies with the receiver, and each side remembers what it has seen
// of it.
type mailbox struct {
	slots []*slot
	last  *block
}

// add makes the slots of b known.
func (m *mailbox) add(b *block) {
	for i := range b.slots {
		m.slots = append(m.slots, &b.slots[i])
	}
	m.last = b
}

// grow is the sender's: it appends blocks until there is a slot for the tag.
func (m *mailbox) grow(head *atomic.Pointer[block], tag uint32) *slot {
	for int(tag) >= len(m.slots) {
		b := new(block)
		if m.last == nil {
			head.Store(b)
		} else {
			m.last.next.Store(b)
		}
		m.add(b)
	}
	return m.slots[tag]
}

// find is the receiver's: it follows the list as far as the sender has come, and returns nil when that is not far
// enough.
func (m *mailbox) find(head *atomic.Pointer[block], tag uint32) *slot {
	for int(tag) >= len(m.slots) {
		b := m.after(head)
		if b == nil {
			return nil
		}
		m.add(b)
	}
	return m.slots[tag]
}

// after is the first block that this side has not seen, or nil.
func (m *mailbox) after(head *atomic.Pointer[block]) *block {
	if m.last == nil {
		return head.Load()
	}
	return m.last.next.Load()
}

// peek is find for a bystander: it leaves the view as it is.
func (m *mailbox) peek(head *atomic.Pointer[block], tag uint32) *slot {
	if int(tag) < len(m.slots) {
		return m.slots[tag]
	}
	at := int(tag) - len(m.slots)
	for b := m.after(head); b != nil; b = b.next.Load() {
		if at < len(b.slots) {
			return &b.slots[at]
		}
		at -= len(b.slots)
	}
	return nil
}
