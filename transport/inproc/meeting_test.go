package inproc_test

import (
	"context"
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

// Nobody has: the last to arrive looks for all. Nobody waits but by the Clock of the suite.
func TestPeerMemoryCrowded(t *testing.T) {
	if testing.Short() {
		t.Skip("TestPeerMemoryFlickering goes both ways")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var sleeps, timeouts atomic.Int64
	transporttest.RunPeerMemory(t, open, again(transporttest.NoAlloc, transporttest.Clock{
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
// processors to be crowded, and back again when they no longer are.
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
		for k, want := range [][n]bool{each, each, together, together, together, each, each} {
			inproc.Crowd(eps[2], k >= 1 && k < 4)
			if got := ways(); got != want {
				t.Errorf("meeting %d, crowded in 1 to 3: %v look for themselves, want %v", k, got, want)
			}
		}
	})
}
