package inproc_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/transporttest"
)

// Every replica has a processor, or is led to believe so: all look at all the others' seats, and nobody combines for
// others.
func TestPeerMemorySpacious(t *testing.T) {
	if testing.Short() {
		t.Skip("TestPeerMemoryFlickering goes both ways")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	transporttest.RunPeerMemory(t, func(t testing.TB, n int) []transport.Endpoint {
		return plainly(t)(inproc.NewSpacious(n))
	}, again(transporttest.NoAlloc)...)
}

// Nobody has: the last to arrive looks for all. The suite lays open only what its Allocator has given, and nobody waits
// but by its Clock.
func TestPeerMemoryCrowded(t *testing.T) {
	if testing.Short() {
		t.Skip("TestPeerMemoryFlickering goes both ways")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var sleeps, timeouts atomic.Int64
	transporttest.RunPeerMemory(t, func(t testing.TB, n int) []transport.Endpoint {
		eps := open(t, n)
		for i, e := range eps {
			eps[i] = &choosy{memory: e.(memory)}
		}
		return eps
	}, again(transporttest.NoAlloc,
		transporttest.Allocator(func(e transport.Endpoint, n int) []byte { return e.(*choosy).alloc(n) }),
		transporttest.Clock{
			Sleep: func(transport.Endpoint, time.Duration) {
				sleeps.Add(1)
				runtime.Gosched()
			},
			WithTimeout: func(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
				timeouts.Add(1)
				return context.WithTimeout(ctx, 0)
			},
		})...)
	if sleeps.Load() == 0 || timeouts.Load() == 0 {
		t.Errorf("%d sleeps and %d timeouts by the clock of the suite", sleeps.Load(), timeouts.Load())
	}
}

type memory interface {
	transport.PeerMemory
	transport.Boards
}

// choosy is an endpoint that takes memory that it has given, and no other.
type choosy struct {
	memory
	mu    sync.Mutex // guards given
	given map[*byte]int
}

// alloc gives memory, and notes what it has given.
func (c *choosy) alloc(n int) []byte {
	b := make([]byte, n)
	if n == 0 {
		return b
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given == nil {
		c.given = map[*byte]int{}
	}
	c.given[&b[0]] = n
	return b
}

// knows reports whether all of these lie within memory that was given.
func (c *choosy) knows(bufs [][]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range bufs {
		if len(b) > 0 && c.given[&b[0]] < len(b) && !c.inside(b) {
			return false
		}
	}
	return true
}

// inside is knows for what does not begin where memory does. The caller holds c.mu.
func (c *choosy) inside(b []byte) bool {
	for first, n := range c.given {
		at := uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(first))
		if at < uintptr(n) && len(b) <= n-int(at) {
			return true
		}
	}
	return false
}

// Share implements transport.PeerMemory.
func (c *choosy) Share(ctx context.Context, call transport.Call, members []int, m transport.Memory, rounds []int,
	w transport.Worker) error {
	one := [][]byte{m.In, m.Out, m.Scratch}
	if !c.knows(one) || !c.knows(m.Ins) || !c.knows(m.Outs) {
		return fmt.Errorf("replica %d lays open memory that no allocator has given", c.Rank())
	}
	return c.memory.Share(ctx, call, members, m, rounds, w)
}

// Dup implements transport.Endpoint.
func (c *choosy) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := c.memory.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return &choosy{memory: d.(memory)}, nil
}

// No two members' views share a cache line, nor what they have laid open.
func TestVisitLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("laid out for 64 bits")
	}
	if visit, shown := inproc.VisitSize(), inproc.ShownSize(); visit%64 != 0 || shown%64 != 0 {
		t.Errorf("a visit has %d bytes, what is shown %d", visit, shown)
	}
}

// Whether processors are crowded changes at any time, and each member sees that at another.
func TestPeerMemoryFlickering(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	transporttest.RunPeerMemory(t, func(t testing.TB, n int) []transport.Endpoint {
		ctx, cancel := context.WithCancel(context.Background())
		eps, wait, err := inproc.NewFlickering(ctx, n)
		t.Cleanup(func() {
			cancel()
			wait()
		})
		return plainly(t)(eps, err)
	}, again()...)
}

// All members go over to the other way of meeting at the same meeting, one after the first of them has found the
// processors to be crowded, and back again when the time is over.
func TestCrowdedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 4
		eps := plainly(t)(inproc.NewSpacious(n))
		members := []int{0, 1, 2, 3}
		var seq uint64
		ways := func() (ways [n]bool) {
			var wg sync.WaitGroup
			for r, e := range eps {
				wg.Go(func() {
					call := transport.Call{Group: 1, Seq: seq}
					if _, _, err := e.(transport.Boards).Gather(t.Context(), call, members, []byte{1}, 1,
						nil); err != nil {
						t.Error(err)
					}
					ways[r] = inproc.LooksForItself(e)
				})
			}
			wg.Wait()
			seq++
			return ways
		}
		each, together := [n]bool{true, true, true, true}, [n]bool{}
		if got := ways(); got != each {
			t.Errorf("at first %v look for themselves, want all", got)
		}
		inproc.Crowd(eps[2])
		for range 3 {
			if got := ways(); got != together {
				t.Errorf("while processors are crowded %v look for themselves, want none", got)
			}
		}
		time.Sleep(time.Second)
		for range 2 {
			if got := ways(); got != each {
				t.Errorf("afterwards %v look for themselves, want all", got)
			}
		}
	})
}
