package transporttest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// late has one replica come long after the others have begun to wait, or be long about a fold. Nobody may call that a
// deadlock.
func (s *suite) late(t *testing.T) {
	const size = 70000
	patterns := map[string]func(t testing.TB, me, n int) []transport.Transfer{
		"ring": func(t testing.TB, me, n int) []transport.Transfer {
			return []transport.Transfer{recv((me+n-1)%n, 0, make([]byte, size)), send((me+1)%n, 0, make([]byte, size))}
		},
		"alltoall": func(t testing.TB, me, n int) (batch []transport.Transfer) {
			for p := range n {
				if p != me {
					batch = append(batch, recv(p, 0, make([]byte, size)), send(p, 0, make([]byte, size)))
				}
			}
			return batch
		},
		"chains": func(t testing.TB, me, n int) []transport.Transfer {
			var links []link
			var batch []transport.Transfer
			for k := 1; k < n; k++ {
				links = append(links, link{from: (me + k) % n})
				batch = append(batch, send((me+k)%n, 0, make([]byte, size)))
			}
			chain, _ := chainOf(t, me, links, 0, make([]byte, size), nil)
			return append(batch, chain...)
		},
		"star": func(t testing.TB, me, n int) (batch []transport.Transfer) {
			if me > 0 {
				return []transport.Transfer{recv(0, 0, make([]byte, size)), send(0, 0, make([]byte, size))}
			}
			for p := 1; p < n; p++ {
				batch = append(batch, recv(p, 0, make([]byte, size)), send(p, 0, make([]byte, size)))
			}
			return batch
		},
	}
	for _, name := range slices.Sorted(maps.Keys(patterns)) {
		t.Run("pattern="+name, func(t *testing.T) {
			s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
				all(t, s.connect(t, n), func(e transport.Endpoint) error { return s.testLate(t, e, patterns[name]) })
			})
		})
	}
}

// testLate is late for one round of three, and long about the folds of another one.
func (s *suite) testLate(t testing.TB, e transport.Endpoint, batch func(t testing.TB, me, n int) []transport.Transfer,
) error {
	me, n := e.Rank(), e.Size()
	for round := range 3 {
		if me == (round+1)%n {
			// ten times what it takes to look for deadlocks in process
			s.clock.Sleep(e, 10*time.Millisecond)
		}
		b := batch(t, me, n)
		for i := range b {
			if b[i].Next && me == round%n {
				b[i].Fold = s.slow(e, b[i].Fold)
			}
		}
		if err := e.Exchange(background, call(0, round), b); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// slow is a fold that sleeps before its first piece.
func (s *suite) slow(e transport.Endpoint, fold func(dst, a, b []byte)) func(dst, a, b []byte) {
	var once sync.Once
	return func(dst, a, b []byte) {
		once.Do(func() { s.clock.Sleep(e, 5*time.Millisecond) })
		fold(dst, a, b)
	}
}
