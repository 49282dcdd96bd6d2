//go:build mpi

package mpi

// #include <stdlib.h>
// #include "engine.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
	"unsafe"
)

const (
	// chunkBytes is the most that a chunk holds: what package stream puts together of short messages.
	chunkBytes = 4 << 10

	// Memory for a chunk: its prefix ends where its bytes begin, at a multiple of 64.
	slotBytes   = 64 + chunkBytes
	prefixBytes = 8

	// sendSlots is how many chunks may be on their way to a replica; recvSlots how many receives of chunks are posted.
	sendSlots = 16
	recvSlots = 2

	// A bulk goes in pieces of maxPiece, the last one shorter. depth is how many are posted at a time, foldDepth where
	// they are received into memory of the link, to be folded.
	maxPiece  = 512 << 10
	depth     = 4
	foldDepth = 2

	// closeLimit is how long Close waits for chunks to be through.
	closeLimit = time.Second
)

// link is a lane's link to one replica: a stream.Poster. The stream of bytes is that of the chunks, each with the bulk
// behind it, and zeros up to a multiple of 64.
type link struct {
	world  *world
	lane   uint64
	peer   int
	k      int // of the tags
	parker *parker
	err    error // the link is no good
	memory unsafe.Pointer
	ops    []C.op         // in memory
	slots  unsafe.Pointer // in memory, for the chunks of the first of ops

	sending, receiving bulk
	front              int    // the receive of chunks whose chunk is shown, or will be next
	chunk              []byte // what is left of the chunk
	come               bool   // the receive at front is done, and its chunk is shown
	pad                int    // zeros that follow the bulk
	staging            unsafe.Pointer
}

// bulk is a long payload on its way.
type bulk struct {
	ops    []C.op
	pins   []runtime.Pinner // of Go memory, one for each of ops: a Pinner has room for a few pointers
	total  int              // bytes of it; 0: there is none
	posted int              // bytes that MPI has or has had
	moved  int              // bytes of whole pieces that are through, and taken or shown
	first  int              // the piece that is through next, of ops
	pieces int              // that are posted
	staged bool             // receiving: posted pieces go to staging
	shown  int              // of the first piece: bytes that Skip has let go of
}

// begin has the bulk be one of total bytes of which nothing has gone.
func (b *bulk) begin(total int) { *b = bulk{ops: b.ops, pins: b.pins, total: total} }

var zeros [64]byte

// bind gives the link its memory and its lane's engine, when the lane first uses it.
func (l *link) bind() error {
	if l.parker != nil || l.err != nil {
		return l.err
	}
	l.world.mu.Lock()
	l.parker = l.world.parkers[l.lane]
	l.world.mu.Unlock()
	const count = sendSlots + recvSlots + 2*depth
	size := C.size_t(count*unsafe.Sizeof(C.op{})+63)&^63 + (sendSlots+recvSlots)*slotBytes
	if l.memory = C.aligned_alloc(64, size); l.memory == nil {
		l.err = errNoMemory
		return l.err
	}
	l.ops = unsafe.Slice((*C.op)(l.memory), count)
	clear(l.ops)
	l.slots = unsafe.Add(l.memory, int(size)-(sendSlots+recvSlots)*slotBytes)
	for i := range l.ops {
		o := &l.ops[i]
		o.peer, o.tag = C.int(l.peer), C.int(2*l.k)
		switch {
		case i < sendSlots+recvSlots:
			o.at = address(l.slot(i))
		default:
			o.tag++
		}
		if i < sendSlots || i >= sendSlots+recvSlots && i < sendSlots+recvSlots+depth {
			o.sends = 1
		}
	}
	l.sending.ops, l.sending.pins = l.ops[sendSlots+recvSlots:][:depth], make([]runtime.Pinner, depth)
	l.receiving.ops, l.receiving.pins = l.ops[sendSlots+recvSlots+depth:][:depth], make([]runtime.Pinner, depth)
	for i := range recvSlots {
		l.receiveChunk(i)
	}
	return l.err
}

// slot is the memory for the chunk of operation i, the prefix first.
func (l *link) slot(i int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(l.slots, i*slotBytes+64-prefixBytes)), prefixBytes+chunkBytes)
}

// address is where a slice lies, as a number.
func address(b []byte) C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// want has an operation posted by the next poll.
func (l *link) want(o *C.op) {
	if err := l.parker.want(o); err != nil {
		l.err = err
	}
}

func (l *link) receiveChunk(i int) {
	o := &l.ops[sendSlots+i]
	o.size = prefixBytes + chunkBytes
	l.want(o)
}

// Send implements stream.Link.
func (l *link) Send(head, body, tail []byte) (int, error) {
	if err := l.bind(); err != nil {
		return 0, err
	}
	n := 0
	if len(head) > 0 {
		if !l.sendChunk(head, len(body)) {
			return 0, l.err
		}
		n = len(head)
		l.sending.begin(len(body))
		if len(body) == 0 {
			return n, l.err
		}
	}
	took := l.sendBulk(body)
	if took == len(body) {
		took += len(tail) // which the other side makes up
	}
	return n + took, l.err
}

// sendChunk sends bytes, and how long the bulk is that follows, if there is room.
func (l *link) sendChunk(b []byte, following int) bool {
	for i := range sendSlots {
		o := &l.ops[i]
		if o.state == C.OP_DONE && !l.through(o) {
			return false
		}
		if o.state != C.OP_IDLE {
			continue
		}
		s := l.slot(i)
		binary.LittleEndian.PutUint64(s, uint64(following))
		o.size = C.int(prefixBytes + copy(s[prefixBytes:], b))
		l.want(o)
		return l.err == nil
	}
	return false
}

// through takes note of an operation that is done, and reports whether it was carried out.
func (l *link) through(o *C.op) bool {
	o.state = C.OP_IDLE
	if err := check(o.error); err != nil && l.err == nil {
		l.err = err
	}
	return l.err == nil
}

// sendBulk posts pieces of rest, what is left of the bulk, and returns how many bytes of it are through.
func (l *link) sendBulk(rest []byte) (n int) {
	b := &l.sending
	for b.pieces > 0 && b.ops[b.first].state == C.OP_DONE {
		o := &b.ops[b.first]
		b.pins[b.first].Unpin()
		if !l.through(o) {
			return n
		}
		n += int(o.size)
		b.first, b.pieces = (b.first+1)%depth, b.pieces-1
	}
	for b.posted < b.total && b.pieces < depth {
		piece := rest[b.posted-b.moved:]
		piece = piece[:min(len(piece), maxPiece)]
		l.post(b, piece)
	}
	b.moved += n
	return n
}

// post has the next piece of a bulk go from, or come into, Go memory.
func (l *link) post(b *bulk, piece []byte) {
	i := (b.first + b.pieces) % depth
	b.pins[i].Pin(unsafe.SliceData(piece))
	o := &b.ops[i]
	o.at, o.size = address(piece), C.int(len(piece))
	b.pieces++
	b.posted += len(piece)
	l.want(o)
}

// next shows the next chunk, if all of the last one and its bulk has been read, and reports whether there is something
// to read that is not of a bulk.
func (l *link) next() (bool, error) {
	if err := l.bind(); err != nil {
		return false, err
	}
	if len(l.chunk) > 0 || l.pad > 0 || l.receiving.total > 0 {
		return len(l.chunk) > 0, nil
	}
	o := &l.ops[sendSlots+l.front]
	if l.come {
		l.come = false
		l.receiveChunk(l.front)
		l.front = (l.front + 1) % recvSlots
		o = &l.ops[sendSlots+l.front]
	}
	if o.state != C.OP_DONE || !l.through(o) || !l.trusted() {
		return false, l.err
	}
	length, s := int(o.got)-prefixBytes, l.slot(sendSlots+l.front)
	if length <= 0 || length > chunkBytes || length%64 != 0 {
		l.err = fmt.Errorf("a chunk of %d bytes has come from replica %d", length, l.peer)
		return false, l.err
	}
	following := binary.LittleEndian.Uint64(s)
	if following > 1<<62 {
		l.err = fmt.Errorf("a bulk of %d bytes is to come from replica %d", following, l.peer)
		return false, l.err
	}
	l.come, l.chunk = true, s[prefixBytes:][:length]
	l.receiving.begin(int(following))
	l.pad = -int(following) & 63
	return true, nil
}

// Peek implements stream.Link.
func (l *link) Peek(n int) ([]byte, error) {
	if any, err := l.next(); any || err != nil {
		return l.chunk, err
	}
	b := &l.receiving
	if b.total == 0 {
		if l.pad > 0 {
			return zeros[:l.pad], nil
		}
		return nil, nil
	}
	if b.pieces == 0 {
		b.staged = true
	}
	if !b.staged {
		return nil, errMixed
	}
	l.stage()
	o := &b.ops[b.first]
	if b.pieces == 0 || o.state != C.OP_DONE {
		return nil, l.err
	}
	if err := l.whole(o); err != nil {
		return nil, err
	}
	size := int(o.size)
	if b.moved+size == b.total {
		size += l.pad
	}
	return l.stagedPiece(b.first)[b.shown:size], nil
}

var errMixed = errors.New("mpi: a payload is shown that is being received elsewhere")

// trusted reports whether what has come is what was sent next: after an abort messages are received to be dropped, and
// those behind them would be taken for them. It is asked when a receive is done.
func (l *link) trusted() bool {
	if l.err == nil && l.world.dropping.Load() {
		l.err = io.ErrClosedPipe
	}
	return l.err == nil
}

// whole looks whether a piece of a bulk has come as long as it is to be.
func (l *link) whole(o *C.op) error {
	if err := check(o.error); err != nil {
		l.err = err
	} else if l.trusted() && o.got != o.size {
		l.err = fmt.Errorf("a piece of %d bytes has come from replica %d, want %d", o.got, l.peer, o.size)
	}
	return l.err
}

// stagedPiece is the memory for a piece that is received to be folded.
func (l *link) stagedPiece(i int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(l.staging, (i%foldDepth)*maxPiece)), maxPiece)
}

// stage posts receives of pieces into memory of the link.
func (l *link) stage() {
	b := &l.receiving
	if l.staging == nil {
		if l.staging = C.aligned_alloc(64, foldDepth*maxPiece); l.staging == nil {
			l.err = errNoMemory
			return
		}
	}
	for b.posted < b.total && b.pieces < foldDepth {
		i := (b.first + b.pieces) % depth
		o := &b.ops[i]
		o.at = address(l.stagedPiece(i))
		o.size = C.int(min(b.total-b.posted, maxPiece))
		b.pieces++
		b.posted += int(o.size)
		l.want(o)
	}
}

// Skip implements stream.Link.
func (l *link) Skip(n int) {
	b := &l.receiving
	switch {
	case len(l.chunk) > 0:
		l.chunk = l.chunk[n:]
	case b.total == 0:
		l.pad -= n
	default:
		b.shown += n
		if o := &b.ops[b.first]; b.shown >= int(o.size) {
			l.pad -= b.shown - int(o.size)
			l.pieceRead(o)
		}
	}
}

// pieceRead lets go of the first piece that is posted.
func (l *link) pieceRead(o *C.op) {
	b := &l.receiving
	o.state = C.OP_IDLE
	b.moved += int(o.size)
	b.first, b.pieces, b.shown = (b.first+1)%depth, b.pieces-1, 0
	if b.moved == b.total {
		b.total = 0
	}
}

// ReadInto implements stream.Link.
func (l *link) ReadInto(dst []byte) (n int, err error) {
	if any, err := l.next(); any || err != nil {
		n = copy(dst, l.chunk)
		l.chunk = l.chunk[n:]
		return n, err
	}
	b := &l.receiving
	for n < len(dst) && b.total > 0 {
		if b.pieces == 0 {
			b.staged = false
		}
		if b.staged { // a message that is put aside midway
			o := &b.ops[b.first]
			if o.state != C.OP_DONE {
				break
			}
			if err := l.whole(o); err != nil {
				return n, err
			}
			took := copy(dst[n:], l.stagedPiece(b.first)[b.shown:int(o.size)])
			n += took
			if b.shown += took; b.shown == int(o.size) {
				l.pieceRead(o)
			}
			continue
		}
		if len(dst)-n != b.total-b.moved {
			l.err = fmt.Errorf("a bulk with %d bytes left has come from replica %d, want %d", b.total-b.moved, l.peer,
				len(dst)-n)
			return n, l.err
		}
		for b.posted < b.total && b.pieces < depth {
			piece := dst[n:][b.posted-b.moved:]
			l.post(b, piece[:min(len(piece), maxPiece)])
		}
		o := &b.ops[b.first]
		if o.state != C.OP_DONE {
			break
		}
		b.pins[b.first].Unpin()
		if err := l.whole(o); err != nil {
			return n, err
		}
		n += int(o.size)
		l.pieceRead(o)
	}
	return n, l.err
}

// Retract implements stream.Poster.
func (l *link) Retract() {
	if l.parker == nil {
		return
	}
	for _, b := range []*bulk{&l.receiving, &l.sending} {
		for i := range b.ops {
			l.end(&b.ops[i], time.Time{})
			b.pins[i].Unpin()
		}
		b.pieces = 0
	}
	if l.err == nil {
		l.err = io.ErrClosedPipe
	}
}

// end has MPI let go of an operation's memory, until the time given if it is not zero, and reports whether it has.
func (l *link) end(o *C.op, until time.Time) bool {
	cancelled := func() bool {
		l.parker.ending.Lock()
		defer l.parker.ending.Unlock()
		return C.engine_cancel(l.parker.engine, o) != 0
	}
	for looks := 0; !cancelled(); looks++ {
		if !until.IsZero() && time.Now().After(until) {
			return false
		}
		l.world.hear()
		if looks > 100 {
			time.Sleep(urgentLook)
		} else {
			runtime.Gosched()
		}
	}
	o.state = C.OP_IDLE
	return true
}

// Close implements stream.Link.
func (l *link) Close() error { return l.close(time.Now().Add(closeLimit)) }

// Drop implements stream.Dropper.
func (l *link) Drop() error { return l.close(time.Now()) }

func (l *link) close(until time.Time) error {
	if l.parker == nil {
		return nil
	}
	l.Retract()
	free := true
	for i := range sendSlots + recvSlots {
		free = l.end(&l.ops[i], until) && free
	}
	if free { // else MPI still has some of it: it is lost, with the engine's rows
		C.free(l.memory)
		C.free(l.staging)
	}
	l.memory, l.staging, l.ops = nil, nil, nil
	return nil
}
