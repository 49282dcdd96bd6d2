package transporttest

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

// noLeak opens, uses and closes a thousand times.
func (s *suite) noLeak(t *testing.T) {
	leaktest.Check(t)
	times := s.few(1000)
	if s.world != nil {
		times /= 4
	}
	for i := range times {
		eps := s.opened(t, s.number(2+i%3))
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
	sizes := []int{0, 100, 20000}
	step := 1
	if s.has(Brief) {
		step = len(sizes)
	}
	s.everyNth(t, step, []int{2, 3, 8}, sizes, func(t *testing.T, n, size int) {
		// One allocation of one replica in each ten rounds is more than strays.
		s.steady(t, s.connect(t, n), 10*(stray+1), func(e transport.Endpoint) func(i int) error {
			batch := mess(t, e.Rank(), n, size)
			return func(i int) error { return e.Exchange(background, call(0, i), batch) }
		})
	})
}

// A process whose allocations are counted has this many trials, of which one must do: with no more than some strays.
const trials, stray = 20, 20

// steady has every endpoint carry out rounds of what setUp returns for it, and counts the allocations of the whole
// process. Between processes, no replica may end a round before all have begun it.
func (s *suite) steady(t *testing.T, eps []transport.Endpoint, rounds int,
	setUp func(e transport.Endpoint) func(i int) error) {
	t.Helper()
	if s.world != nil {
		s.steadyProcess(t, eps, rounds, setUp)
		return
	}
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
				alive.Add(1)
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

// steadyProcess is steady where each replica is a process: they stop between two trials, and go on until one trial has
// done for each.
func (s *suite) steadyProcess(t *testing.T, eps []transport.Endpoint, rounds int,
	setUp func(e transport.Endpoint) func(i int) error) {
	t.Helper()
	all(t, eps, func(e transport.Endpoint) error {
		round := setUp(e)
		var counts []uint64
		good := false
		for trial := range trials {
			// Telling of trials allocates. The first and the last round keep it out: none ends before all have begun.
			var before, after runtime.MemStats
			for i := range rounds + 2 {
				switch i {
				case 1:
					runtime.ReadMemStats(&before)
				case rounds + 1:
					runtime.ReadMemStats(&after)
				}
				if err := round(trial*(rounds+2) + i); err != nil {
					return err
				}
			}
			counts = append(counts, after.Mallocs-before.Mallocs)
			good = good || after.Mallocs-before.Mallocs <= stray
			verdicts, err := s.board.gather(fmt.Sprint("trial ", trial), e.Rank(), e.Size(), fmt.Sprint(good))
			if err != nil {
				return err
			}
			if !slices.Contains(verdicts, "false") {
				return nil
			}
		}
		if good {
			return nil
		}
		return fmt.Errorf("allocations in each %d rounds of %d replicas: %d", rounds, e.Size(), counts)
	})
}
