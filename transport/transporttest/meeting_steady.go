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
		s.peers(t, eps, func(e near) error {
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
	cases(t, "late", []bool{false, true}, func(t *testing.T, late bool) {
		rounds := 300
		if late {
			rounds = 90
		}
		s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
			s.steady(t, s.connect(t, n), rounds, func(ep transport.Endpoint) func(i int) error {
				return s.steadyMeetings(ep, late)
			})
		})
	})
}

// steadyMeetings has one operation after the other. With late a replica comes late to one in thirty.
func (s *suite) steadyMeetings(ep transport.Endpoint, late bool) func(i int) error {
	e, g := s.near(ep), everybody(ep.Size())
	mine := transport.Memory{In: e.buf(100), Out: e.buf(100), Scratch: e.buf(3)}
	w := &worker{acc: make([]byte, meetPiece)}
	one, several := []int{3}, []int{1, 0, 1}
	return func(i int) error {
		if late && i%30 == e.Rank() {
			s.clock.Sleep(ep, 4*time.Millisecond)
		}
		switch i % 5 {
		case 0:
			_, _, err := e.Gather(background, g.call(i), g.members, mine.In, len(mine.In), combine{})
			return err
		case 1:
			return e.Share(background, g.call(i), g.members, mine, one, w)
		case 2:
			return e.Broadcast(background, g.call(i), g.members, i%e.Size(), mine.In)
		}
		return e.Share(background, g.call(i), g.members, mine, several, w)
	}
}
