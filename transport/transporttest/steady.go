package transporttest

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

// noLeak opens, uses and closes a thousand times.
func (s *suite) noLeak(t *testing.T) {
	leaktest.Check(t)
	for i := range s.few(1000) {
		eps := s.open(t, 2+i%3)
		all(t, eps, func(e transport.Endpoint) error {
			if i%4 == 0 {
				d, err := e.Dup(background)
				if err != nil {
					return err
				}
				if err := shift(d, 1, 0); err != nil {
					return err
				}
			}
			return shift(e, 0, 0)
		})
		shut(t, eps)
	}
}

// noAlloc counts the allocations of the whole process over many rounds. The runtime makes some of its own, until the
// caches in which it keeps what parked goroutines need are full on every processor; so there are several trials, of
// which one must do.
func (s *suite) noAlloc(t *testing.T) {
	if !s.has(NoAlloc) {
		t.Skip("not promised")
	}
	if underRace {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	s.sizes(t, []int{2, 3, 8}, []int{0, 100, 20000}, func(t *testing.T, n, size int) {
		steady(t, s.connect(t, n), 300, func(e transport.Endpoint) func(i int) error {
			batch := messy(t, e.Rank(), n, size, 0)
			return func(i int) error { return e.Exchange(background, call(0, i), batch) }
		})
	})
}

// steady has every endpoint carry out rounds of what setUp returns for it, and counts the allocations of the whole
// process.
func steady(t *testing.T, eps []transport.Endpoint, rounds int, setUp func(e transport.Endpoint) func(i int) error) {
	t.Helper()
	const trials, stray = 20, 20
	n := len(eps)
	// All replicas stop between two trials, and the last to come counts.
	var (
		mu     sync.Mutex
		cond   = sync.NewCond(&mu)
		here   int
		counts []uint64
		good   bool
	)
	meet := func(trial int) (enough bool) {
		mu.Lock()
		defer mu.Unlock()
		if here++; here == n {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			counts = append(counts, m.Mallocs)
			here = 0
			cond.Broadcast()
		}
		for len(counts) <= trial {
			cond.Wait()
		}
		good = trial > 0 && counts[trial]-counts[trial-1] <= stray
		return good
	}
	all(t, eps, func(e transport.Endpoint) error {
		round := setUp(e)
		for trial := 0; trial < trials && !meet(trial); trial++ {
			for i := range rounds {
				if err := round(trial*rounds + i); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if !good {
		for i := len(counts) - 1; i > 0; i-- {
			counts[i] -= counts[i-1]
		}
		t.Errorf("allocations in each %d rounds of %d replicas: %d", rounds, n, counts[1:])
	}
}
