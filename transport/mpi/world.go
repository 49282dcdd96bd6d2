//go:build mpi

package mpi

// #cgo LDFLAGS: -Wl,--as-needed -lmpi
// #cgo noescape world_tell
// #cgo nocallback world_tell
// #cgo noescape world_hear
// #cgo nocallback world_hear
// #cgo noescape world_sent
// #cgo nocallback world_sent
// #cgo noescape world_drain
// #cgo nocallback world_drain
// #cgo noescape world_left
// #cgo nocallback world_left
// #include <stdlib.h>
// #include "engine.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gogcl.dev/transport/internal/stream"
)

// Built says whether the program has been built with MPI.
const Built = true

const (
	// maxControl is room for a control message: one byte says which kind, then comes that of the node.
	maxControl = stream.MaxMessage + 1

	// The times between looks at control messages by the job's goroutine: idleLook, twice as long after each that finds
	// nothing, up to maxIdleLook. A lane that waits looks too. The least is for a job that is aborted or has ended, in
	// which others wait for their messages to be received.
	idleLook    = time.Millisecond
	maxIdleLook = 8 * time.Millisecond
	urgentLook  = 20 * time.Microsecond
)

// The kinds of control message. The numbers are part of the protocol.
const (
	ofNode    byte = iota // a message of package stream
	ofLinks               // the number of a lane, the k of its tags
	ofEntered             // a lane, a group, a number: has the replica begun so many calls of MPI's collectives?
	ofBegun               // the same: it has
	ofNever               // the same: it has not, and never will
	ofAlive               // nothing but that the replica is there
)

// mpiError is an error that MPI has returned.
type mpiError C.int

func (e mpiError) Error() string {
	var text [512]byte
	C.error_text(C.int(e), (*C.char)(unsafe.Pointer(&text[0])), C.int(len(text)))
	return "MPI: " + C.GoString((*C.char)(unsafe.Pointer(&text[0])))
}

// check is the error of a call of MPI, or nil.
func check(e C.int) error {
	if e == C.MPI_SUCCESS {
		return nil
	}
	return mpiError(e)
}

// common is what all jobs of a process have, one after the other. Communicators are not freed and made again: a message
// of a job that has ended, which MPI delivers late, would be one of the next job. Jobs take them in turns, so that what
// is received to be dropped is none of the next job's.
var common struct {
	jobs   sync.Mutex // held by the job that there is
	made   []C.MPI_Comm
	job    int   // how many there have been
	failed error // of the Join that was the last
	next   []int // by replica with a greater number: the k of the next lane. Guarded by the mu of the job
}

// communicators is how many there are: data and control, twice.
const communicators = 4

// world is a job as one replica sees it: the stream.Host of its node.
type world struct {
	c          *C.world
	rank, size int
	tags       int // the greatest k of a lane's tags
	crowded    bool
	node       *stream.Node
	left       atomic.Bool  // Leave has been called
	dropping   atomic.Bool  // messages are received to be dropped
	threads    atomic.Int32 // those that may be making a communicator
	silence    time.Duration
	heard      []atomic.Bool // by replica: it has said something since the last beat

	mu      sync.Mutex // guards what follows
	sent    *C.letter
	parkers map[uint64]*parker     // by lane
	groups  map[groupKey]*group    // that have a communicator
	ended   bool                   // the job is over: nothing is sent any more
	making  map[groupKey]bool      // groups that are to have one
	asking  map[groupKey]*question // that this replica has asked
	asked   []ask                  // that others have asked before the abort was known here

	hearing  sync.Mutex // held by the one who takes control messages; guards incoming
	incoming unsafe.Pointer
}

// Tell implements stream.Host.
func (w *world) Tell(peer int, message []byte) {
	var draft [64]byte
	w.tell(peer, append(append(draft[:0], ofNode), message...))
}

func (w *world) tell(peer int, message []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	C.world_tell(w.c, C.int(peer), unsafe.Pointer(&message[0]), C.int(len(message)), &w.sent)
}

// Connect implements stream.Host.
func (w *world) Connect(peer int, lane uint64) {
	w.mu.Lock()
	k := common.next[peer]
	common.next[peer]++
	w.mu.Unlock()
	if k <= w.tags {
		w.tell(peer, binary.LittleEndian.AppendUint32(
			binary.LittleEndian.AppendUint64([]byte{ofLinks}, lane), uint32(k)))
	}
	go w.attach(peer, lane, k) // the caller holds what Attach takes
}

// attach gives a lane its link.
func (w *world) attach(peer int, lane uint64, k int) {
	l := &link{world: w, lane: lane, peer: peer, k: k}
	if k > w.tags {
		l.err = fmt.Errorf("the MPI library has tags up to %d, which is enough for %d lanes", 2*w.tags+1, w.tags+1)
	}
	w.node.Attach(peer, lane, l)
}

// Parker implements stream.Host.
func (w *world) Parker(lane uint64) (stream.Parker, error) {
	e := C.engine_new(w.c.data)
	if e == nil {
		return nil, errNoMemory
	}
	if w.crowded {
		e.yields = 1
	}
	p := &parker{world: w, lane: lane, engine: e}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parkers[lane] = p
	return p, nil
}

var errNoMemory = errors.New("mpi: there is no memory")

// Leave implements stream.Host. The goroutine of the job goes on until all others have left too.
func (w *world) Leave() { w.left.Store(true) }

// hear takes control messages that have come, unless another goroutine does, and reports whether there were any.
func (w *world) hear() (any bool) {
	if !w.hearing.TryLock() {
		return false
	}
	defer w.hearing.Unlock()
	for range 64 {
		if w.incoming == nil { // the job is over
			return any
		}
		var from, length C.int
		if err := check(C.world_hear(w.c, w.incoming, maxControl, &from, &length)); err != nil {
			w.node.Abort(err)
			return any
		}
		if length < 0 {
			return any
		}
		any = true
		w.heard[from].Store(true)
		message := unsafe.Slice((*byte)(w.incoming), int(length))
		if err := w.handle(int(from), message); err != nil && !w.left.Load() {
			w.node.Lost(int(from), err)
		}
	}
	return any
}

// handle takes a control message.
func (w *world) handle(from int, message []byte) error {
	switch {
	case len(message) > 0 && message[0] == ofNode:
		return w.node.Handle(from, message[1:])
	case len(message) == 13 && message[0] == ofLinks && from < w.rank:
		w.attach(from, binary.LittleEndian.Uint64(message[1:]), int(binary.LittleEndian.Uint32(message[9:])))
		return nil
	case len(message) == askBytes && message[0] == ofEntered:
		w.take(parseAsk(from, message))
		return nil
	case len(message) == askBytes && (message[0] == ofBegun || message[0] == ofNever):
		w.told(parseAsk(from, message), message[0] == ofBegun)
		return nil
	case len(message) == 1 && message[0] == ofAlive:
		return nil
	}
	return fmt.Errorf("it has sent a control message of %d bytes that makes no sense: %.20x", len(message), message)
}

// beats is how often a replica says that it is there, in the time of Config.Silence.
const beats = 4

// beat says to all others that this replica is there, and finds those that have said nothing for so many beats that
// Silence is over. quiet counts them by replica, see isOver: a beat is one also where this process itself was stopped
// meanwhile.
func (w *world) beat(quiet []int) {
	if w.left.Load() || w.node.Err() != nil {
		return
	}
	for r := range w.size {
		if r == w.rank {
			continue
		}
		if isOver(&quiet[r], w.heard[r].Swap(false)) {
			w.node.Lost(r, fmt.Errorf("it has said nothing for %v: it is stopped, or its host or the network is down",
				w.silence))
		}
		w.tell(r, []byte{ofAlive})
	}
}

// isOver counts the beats since one before which a replica was heard, and reports whether Silence is over.
func isOver(quiet *int, heard bool) bool {
	if heard {
		*quiet = 0
		return false
	}
	*quiet++
	return *quiet == beats
}

// run takes control messages until all replicas have left.
func (w *world) run() {
	quiet, beat := make([]int, w.size), time.Now()
	var leaving C.MPI_Request
	asked := false
	scratch := C.malloc(maxPiece)
	defer C.free(scratch)
	pause := idleLook
	var since time.Time // of the abort, or of Leave
	for {
		any := w.hear()
		if now := time.Now(); w.silence > 0 && now.Sub(beat) >= w.silence/beats {
			beat = now
			w.beat(quiet)
		}
		w.mu.Lock()
		var unsent C.int
		C.world_sent(&w.sent, &unsent)
		w.mu.Unlock()
		if any {
			pause = idleLook
		} else {
			pause = min(2*pause, maxIdleLook)
		}
		if w.left.Load() || w.node.Err() != nil {
			if since.IsZero() {
				since = time.Now()
			}
			w.answerAll()
			w.dropping.Store(true)
			for drained := C.int(1); drained != 0; {
				if C.world_drain(w.c, scratch, maxPiece, &drained) != C.MPI_SUCCESS {
					break
				}
			}
			pause = max(urgentLook, min(time.Since(since)/16, maxRest))
		}
		if w.left.Load() && (asked || unsent == 0 && w.threads.Load() == 0) {
			if !asked { // all has gone: nobody sends anything later
				asked = true
				if C.world_leave(w.c, &leaving) != C.MPI_SUCCESS {
					return
				}
			}
			var all C.int
			if C.world_left(&leaving, &all) != C.MPI_SUCCESS {
				return
			}
			if all != 0 {
				break
			}
		}
		if !any {
			time.Sleep(pause)
		}
	}
	for w.hear() { // what was sent before the others left
	}
	if w.node.Err() == nil {
		w.freeGroups() // else MPI may still have something of them
	}
	w.hearing.Lock()
	defer w.hearing.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	C.free(w.incoming)
	C.free(unsafe.Pointer(w.c))
	w.incoming, w.c = nil, nil
}
