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
	times := s.few(1000)
	if s.world != nil {
		times /= 4
	}
	for i := range times {
		g := everybody(s.number(2 + i%3))
		eps := s.opened(t, len(g.members))
		s.peers(t, eps, func(e near) error {
			if err := g.gathering(e, 20, 0, 0, combine{}); err != nil {
				return err
			}
			return g.stepping(e, 100, 1, 0)
		})
		s.rooms.shut()
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

// steadyMeetings has one operation after the other. Between processes all meet after a broadcast, since no round may
// end before all have begun it. With late a replica comes late to one in thirty.
func (s *suite) steadyMeetings(ep transport.Endpoint, late bool) func(i int) error {
	e, g := s.near(ep), everybody(ep.Size())
	mine := transport.Memory{In: e.buf(100), Out: e.buf(100), Scratch: e.buf(3)}
	w := &worker{acc: make([]byte, meetPiece)}
	one, several := []int{3}, []int{1, 0, 1}
	share := func(seq int, rounds []int) error { return e.Share(background, g.call(seq), g.members, mine, rounds, w) }
	return func(i int) error {
		if late && i%30 == e.Rank() {
			s.clock.Sleep(ep, 4*time.Millisecond)
		}
		seq := 2 * i
		switch i % 5 {
		case 0:
			_, _, err := e.Gather(background, g.call(seq), g.members, mine.In, len(mine.In), combine{})
			return err
		case 1:
			return share(seq, one)
		case 2:
			err := e.Broadcast(background, g.call(seq), g.members, i%e.Size(), mine.In)
			if err != nil || s.world == nil {
				return err
			}
			seq++
		}
		return share(seq, several)
	}
}
