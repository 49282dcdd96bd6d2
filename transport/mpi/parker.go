//go:build mpi

package mpi

// #cgo noescape engine_poll
// #cgo nocallback engine_poll
// #cgo noescape engine_want
// #cgo nocallback engine_want
// #include "engine.h"
import "C"

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gogcl.dev/transport/internal/stream"
)

const (
	// parkLook is how long a lane that is parked asks MPI for progress before it looks at control messages.
	parkLook = 10 * time.Microsecond

	// A lane that has been parked for longer than restAfter sleeps between looks, for a sixteenth of that time, at most
	// maxRest: the processor is for others then.
	restAfter = 2 * time.Millisecond

	// restMoving is restAfter for a collective of MPI that all members have begun.
	restMoving = 200 * time.Millisecond

	maxRest  = 500 * time.Microsecond
	restLook = 5 * time.Microsecond
)

// parker is the engine of one lane: a stream.Poller.
type parker struct {
	world  *world
	lane   uint64
	engine *C.engine
	queued bool // something is wanted

	waking sync.Mutex // guards the end of the engine against Wake
	ending sync.Mutex // held by a link that ends operations: several links are closed at a time
}

// wake is the word that ends a poll.
func (p *parker) wake() *uint32 { return (*uint32)(unsafe.Pointer(&p.engine.wake)) }

// Watch implements stream.Parker: all links of the lane are in its engine.
func (p *parker) Watch(stream.Link) error { return nil }

// Wake implements stream.Parker.
func (p *parker) Wake() {
	p.waking.Lock()
	defer p.waking.Unlock()
	if p.engine != nil {
		atomic.StoreUint32(p.wake(), 1)
	}
}

// Poll implements stream.Poller.
func (p *parker) Poll(limit time.Duration) bool {
	if limit == 0 && !p.queued {
		return false
	}
	if p.ask(limit) {
		return true
	}
	if atomic.LoadUint32(p.wake()) != 0 { // the lane is about to look at what it was woken for
		atomic.StoreUint32(p.wake(), 0)
	}
	return limit > 0 && p.world.hear()
}

var errProgress = errors.New("MPI fails to test requests")

// ask asks MPI for progress.
func (p *parker) ask(limit time.Duration) bool {
	p.queued = false
	n := C.engine_poll(C.uintptr_t(uintptr(unsafe.Pointer(p.engine))), C.int64_t(limit))
	if n < 0 {
		p.world.node.Abort(errProgress)
	}
	return n != 0
}

// Park implements stream.Parker.
func (p *parker) Park(limit time.Duration) {
	began := time.Now()
	for {
		parked := time.Since(began)
		look := parkLook
		if parked > restAfter {
			look = restLook
		}
		if atomic.SwapUint32(p.wake(), 0) != 0 || p.ask(look) {
			return
		}
		p.world.hear()
		switch {
		case atomic.LoadUint32(p.wake()) != 0:
			continue
		case limit >= 0 && parked >= limit:
			return
		case parked > restAfter:
			time.Sleep(min(parked/16, maxRest))
		default:
			runtime.Gosched()
		}
	}
}

// Close implements stream.Parker.
func (p *parker) Close() error {
	p.world.mu.Lock()
	delete(p.world.parkers, p.lane)
	p.world.mu.Unlock()
	p.waking.Lock()
	defer p.waking.Unlock()
	C.engine_free(p.engine)
	p.engine = nil
	return nil
}

// want has an operation posted by the next poll.
func (p *parker) want(o *C.op) error {
	if C.engine_want(p.engine, o) != 0 {
		return errNoMemory
	}
	p.queued = true
	return nil
}

func (p *parker) setCrowded(crowded bool) {
	p.engine.yields = 0
	if crowded {
		p.engine.yields = 1
	}
}
