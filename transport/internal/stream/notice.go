package stream

import (
	"sync"
	"sync/atomic"

	"gogcl.dev/transport"
)

// notice is the call in which a peer has said that it waits. It is memory of its own, so that a machine on which all
// waits are long allocates nothing.
type notice struct {
	any atomic.Bool

	mu   sync.Mutex // guards call
	call transport.Call
}

// set notes that the peer waits in a call.
func (n *notice) set(call transport.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.call = call
	n.any.Store(true)
}

// read returns the call, if there is one.
func (n *notice) read() (call transport.Call, any bool) {
	if !n.any.Load() {
		return call, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.call, true
}

// clear forgets the call, unless another one has come.
func (n *notice) clear(call transport.Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.call == call {
		n.any.Store(false)
	}
}
