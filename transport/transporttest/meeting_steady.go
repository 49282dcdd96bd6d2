package transporttest

import (
	"runtime/debug"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

// memoryNoLeak opens, meets and closes a thousand times.
func (s *suite) memoryNoLeak(t *testing.T) {
	leaktest.Check(t)
	for i := range s.few(1000) {
		eps := s.open(t, 2+i%3)
		g := everybody(len(eps))
		peers(t, eps, func(e near) error {
			if err := g.gathering(e, 20, 0, 0, combine{}); err != nil {
				return err
			}
			return g.stepping(e, 100, 1, 0)
		})
		shut(t, eps)
	}
}

// memoryNoAlloc counts allocations, with and without waits that are long.
func (s *suite) memoryNoAlloc(t *testing.T) {
	if !s.has(NoAlloc) {
		t.Skip("not promised")
	}
	if underRace {
		t.Skip("the race detector allocates")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, late := range []bool{false, true} {
		name, rounds := "late=no", 300
		if late {
			name, rounds = "late=yes", 90
		}
		t.Run(name, func(t *testing.T) {
			s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
				g := everybody(n)
				s.steady(t, s.connect(t, n), rounds, func(ep transport.Endpoint) func(i int) error {
					e := ep.(near)
					mine := transport.Memory{In: make([]byte, 100), Out: make([]byte, 100), Scratch: make([]byte, 3)}
					w := &worker{acc: make([]byte, meetPiece)}
					one, several := []int{3}, []int{1, 0, 1}
					return func(i int) error {
						if late && i%30 == e.Rank() {
							time.Sleep(4 * time.Millisecond)
						}
						switch i % 5 {
						case 0:
							_, _, err := e.Gather(background, g.call(i), g.members, mine.In, len(mine.In), combine{})
							return err
						case 1:
							return e.Share(background, g.call(i), g.members, mine, one, w)
						case 2:
							return e.Broadcast(background, g.call(i), g.members, i%n, mine.In)
						}
						return e.Share(background, g.call(i), g.members, mine, several, w)
					}
				})
			})
		})
	}
}
