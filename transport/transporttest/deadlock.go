package transporttest

import (
	"context"
	"errors"
	"testing"

	"gogcl.dev/transport"
)

// deadlock has replicas wait for each other in a circle, all of them in one call.
func (s *suite) deadlock(t *testing.T) {
	buf := func() []byte { return make([]byte, 100) }
	patterns := []struct {
		name  string
		least int
		batch func(t testing.TB, me, n int) []transport.Transfer
	}{
		{"all receive", 2, func(t testing.TB, me, n int) []transport.Transfer {
			return []transport.Transfer{recv((me+1)%n, 0, buf())}
		}},
		{"all send", 2, func(t testing.TB, me, n int) []transport.Transfer {
			return []transport.Transfer{send((me+1)%n, 0, buf())}
		}},
		{"wrong tag", 2, func(t testing.TB, me, n int) []transport.Transfer {
			return []transport.Transfer{send((me+1)%n, 0, buf()), recv((me+n-1)%n, 1, buf())}
		}},
		{"behind a fold", 3, func(t testing.TB, me, n int) []transport.Transfer {
			// Replica 1 must fold what 2 sends before what 0 sends; 2 sends only when it has heard from 0; and 0 waits
			// for 1.
			x := buf()
			switch me {
			case 0:
				return []transport.Transfer{send(1, 0, buf())}
			case 1:
				return []transport.Transfer{recv(2, 0, x), next(t, 0, 0, x, nil)}
			case 2:
				return []transport.Transfer{recv(0, 0, buf())}
			}
			return []transport.Transfer{recv(me-1, 0, buf())} // these wait for those
		}},
	}
	for _, p := range patterns {
		t.Run("pattern="+p.name, func(t *testing.T) {
			s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
				if n < p.least {
					t.Skipf("needs %d replicas", p.least)
				}
				if s.has(NamesDeadlocks) {
					s.testDeadlock(t, n, background, p.batch)
					return
				}
				ctx, cancel := context.WithCancel(background)
				cancel()
				s.testDeadlock(t, n, ctx, p.batch)
			})
		})
	}
}

// testDeadlock wants a *DeadlockError or, with a context that is done, merely an end.
func (s *suite) testDeadlock(t *testing.T, n int, ctx context.Context,
	batch func(t testing.TB, me, n int) []transport.Transfer) {
	eps := s.lanes(t, s.connect(t, n))
	errs := each(t, eps, func(e transport.Endpoint) error {
		b := batch(t, e.Rank(), n)
		defer scribbleBatch(b)
		return e.Exchange(ctx, call(0, 0), b)
	})
	for rank, err := range byRank(eps, errs) {
		wantWhere(t, rank, err)
		var d *transport.DeadlockError
		switch {
		case err == nil:
			t.Errorf("replica %d: no error", rank)
		case ctx.Err() != nil:
		case errors.As(err, &d):
			if len(d.Replicas) < 2 || len(d.Calls) != len(d.Replicas) {
				t.Errorf("replica %d: ranks %v, %d calls", rank, d.Replicas, len(d.Calls))
			}
			for _, c := range d.Calls {
				if c != call(0, 0) {
					t.Errorf("replica %d: %+v is not the call", rank, c)
				}
			}
		default:
			t.Errorf("replica %d: no DeadlockError in %q", rank, err)
		}
	}
}
