package transporttest

import (
	"errors"
	"fmt"
	"testing"

	"gogcl.dev/transport"
)

// lanes has every replica call Dup and returns the new endpoints, by rank.
func lanes(t testing.TB, eps []transport.Endpoint) []transport.Endpoint {
	t.Helper()
	out := make([]transport.Endpoint, len(eps))
	all(t, eps, func(e transport.Endpoint) (err error) {
		out[e.Rank()], err = e.Dup(background)
		if err == nil && (out[e.Rank()].Rank() != e.Rank() || out[e.Rank()].Size() != e.Size()) {
			err = fmt.Errorf("replica %d of %d has become %d of %d by Dup",
				e.Rank(), e.Size(), out[e.Rank()].Rank(), out[e.Rank()].Size())
		}
		return err
	})
	return out
}

// shift runs one round of a ring on a lane and checks what arrives. The salt tells lanes apart.
func shift(e transport.Endpoint, salt, round int) error {
	const size = 100
	me, n := e.Rank(), e.Size()
	in := make([]byte, size)
	out := made(size, origin{me, (me + 1) % n, salt, round})
	batch := []transport.Transfer{send((me+1)%n, 0, out), recv((me+n-1)%n, 0, in)}
	defer scribble(out)
	if err := e.Exchange(background, call(0, round), batch); err != nil {
		scribble(in)
		return err
	}
	return same(fmt.Sprintf("lane %d round %d", salt, round), in, made(size, origin{(me + n - 1) % n, me, salt, round}))
}

func (s *suite) dup(t *testing.T) {
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		t.Run("independent", func(t *testing.T) {
			// Replicas wait on the first lane while the second, the third and the first one's own Dup do their work.
			eps := s.connect(t, n)
			second, third := lanes(t, eps), lanes(t, eps)
			fourth := lanes(t, second)
			entered := make([]chan bool, n)
			for i := range entered {
				entered[i] = make(chan bool)
			}
			idle := make(chan bool)
			all(t, eps, func(e transport.Endpoint) error {
				me := e.Rank()
				if me == 0 { // whom the first lane waits for
					<-idle
					return shift(e, 1, 0)
				}
				first := make(chan error, 1)
				go func() {
					close(entered[me])
					first <- shift(e, 1, 0)
				}()
				return <-first
			}, func() {
				for _, c := range entered[1:] {
					<-c
				}
				for round := range 50 {
					for salt, lane := range [][]transport.Endpoint{second, third, fourth} {
						all(t, lane, func(e transport.Endpoint) error { return shift(e, salt+2, round) })
					}
				}
				close(idle)
			})
		})
		t.Run("order", func(t *testing.T) {
			// The k-th Dup of one replica meets the k-th of the others, though they make them at different times.
			eps := s.connect(t, n)
			const k = 5
			all(t, eps, func(e transport.Endpoint) error {
				var mine []transport.Endpoint
				for i := range k {
					d, err := e.Dup(background)
					if err != nil {
						return err
					}
					mine = append(mine, d)
					if i == e.Rank() {
						if err := shift(e, 100, 0); err != nil {
							return err
						}
					}
				}
				if e.Rank() >= k {
					if err := shift(e, 100, 0); err != nil {
						return err
					}
				}
				for i, d := range mine {
					if err := shift(d, i, 0); err != nil {
						return err
					}
				}
				return nil
			})
		})
		t.Run("close", func(t *testing.T) {
			// A lane made by Dup closes alone, the first one with all.
			eps := s.connect(t, n)
			second, third := lanes(t, eps), lanes(t, eps)
			shut(t, second)
			all(t, eps, func(e transport.Endpoint) error { return shift(e, 0, 0) })
			all(t, third, func(e transport.Endpoint) error { return shift(e, 0, 0) })
			if err := eps[0].Close(); err != nil {
				t.Error(err)
			}
			for rank, err := range each(t, third, func(e transport.Endpoint) error {
				for round := range enough {
					if err := shift(e, 0, round); err != nil {
						return err
					}
				}
				return nil
			}) {
				wantClosed(t, rank, err, 0)
			}
			if _, err := eps[0].Dup(background); err == nil {
				t.Error("Dup of a closed endpoint succeeds")
			}
		})
	})
}

// wantClosed checks that an error names the replica that has closed.
func wantClosed(t testing.TB, rank int, err error, by int) {
	t.Helper()
	var closed *transport.ClosedError
	switch {
	case errors.As(err, &closed):
		if closed.Replica != by {
			t.Errorf("replica %d: %v, but it was replica %d that closed", rank, err, by)
		}
	default:
		t.Errorf("replica %d: no ClosedError in %q", rank, fmt.Sprint(err))
	}
}
