package transporttest

import (
	"fmt"
	"slices"
	"testing"

	"gogcl.dev/transport"
)

// lanes has every replica call Dup and returns the new endpoints, in the order of the old ones, when all have theirs.
func (s *suite) lanes(t testing.TB, eps []transport.Endpoint) []transport.Endpoint {
	t.Helper()
	out := make([]transport.Endpoint, len(eps))
	all(t, eps, func(e transport.Endpoint) error {
		d, err := e.Dup(background)
		if err == nil && (d.Rank() != e.Rank() || d.Size() != e.Size()) {
			err = fmt.Errorf("replica %d of %d has become %d of %d by Dup", e.Rank(), e.Size(), d.Rank(), d.Size())
		}
		out[slices.Index(eps, e)] = d
		return err
	})
	s.meet(t)
	return out
}

// shift runs one round of a ring on a lane and checks what arrives. The salt tells lanes apart.
func shift(e transport.Endpoint, salt, round int) error {
	return shiftIn(e, call(0, round), salt, round)
}

// shiftIn is shift in a call.
func shiftIn(e transport.Endpoint, c transport.Call, salt, round int) error {
	const size = 100
	me, n := e.Rank(), e.Size()
	in := make([]byte, size)
	out := made(size, origin{me, (me + 1) % n, salt, round})
	batch := []transport.Transfer{send((me+1)%n, 0, out), recv((me+n-1)%n, 0, in)}
	defer scribble(out)
	if err := e.Exchange(background, c, batch); err != nil {
		scribble(in)
		return err
	}
	return same(fmt.Sprintf("lane %d round %d", salt, round), in, made(size, origin{(me + n - 1) % n, me, salt, round}))
}

func (s *suite) dup(t *testing.T) {
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		t.Run("independent", func(t *testing.T) { s.dupIndependent(t, n) })
		t.Run("order", func(t *testing.T) { s.dupOrder(t, n) })
		t.Run("close", func(t *testing.T) { s.dupClose(t, n) })
	})
}

// dupIndependent has replicas wait on the first lane while the second, the third and the first one's own Dup do their
// work.
func (s *suite) dupIndependent(t *testing.T, n int) {
	eps := s.connect(t, n)
	second, third := s.lanes(t, eps), s.lanes(t, eps)
	fourth := s.lanes(t, second)
	idle := make(chan bool)
	all(t, eps, func(e transport.Endpoint) error {
		if e.Rank() == 0 { // whom the first lane waits for
			<-idle
		} else {
			s.board.post(key("entered", e.Rank()), "")
		}
		return shift(e, 1, 0)
	}, func() {
		s.awaitOthers(t, "entered", 0, n)
		for round := range 50 {
			for salt, lane := range [][]transport.Endpoint{second, third, fourth} {
				all(t, lane, func(e transport.Endpoint) error { return shift(e, salt+2, round) })
			}
		}
		close(idle)
	})
}

// dupOrder has the k-th Dup of one replica meet the k-th of the others, though they make them at different times.
func (s *suite) dupOrder(t *testing.T, n int) {
	const k = 5
	all(t, s.connect(t, n), func(e transport.Endpoint) error {
		var mine []transport.Endpoint
		for i := range max(k, n) {
			if i < k {
				d, err := e.Dup(background)
				if err != nil {
					return err
				}
				mine = append(mine, d)
			}
			if i == e.Rank() {
				if err := shift(e, 100, 0); err != nil {
					return err
				}
			}
		}
		for i, d := range mine {
			if err := shift(d, i, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// dupClose has a lane made by Dup close alone, the first one with all.
func (s *suite) dupClose(t *testing.T, n int) {
	eps := s.connect(t, n)
	second, third := s.lanes(t, eps), s.lanes(t, eps)
	shut(t, second)
	all(t, eps, func(e transport.Endpoint) error { return shift(e, 0, 0) })
	all(t, third, func(e transport.Endpoint) error { return shift(e, 0, 0) })
	s.meet(t)
	first := at(eps, 0)
	if first != nil {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	}
	play(t, third, func(e transport.Endpoint) error {
		for round := 1; ; round++ { // replica 0 has been through round 0
			if err := shift(e, 0, round); err != nil {
				return err
			}
		}
	}, closed(0))
	if first != nil {
		if _, err := first.Dup(background); err == nil {
			t.Error("Dup of a closed endpoint succeeds")
		}
	}
}
