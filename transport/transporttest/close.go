package transporttest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gogcl.dev/transport"
)

// close has an endpoint closed at any time but in the middle of calls, which is breakOff's.
func (s *suite) close(t *testing.T) {
	t.Run("between calls", func(t *testing.T) {
		s.repeat(t, s.few(400), func(t *testing.T, _ int) { s.closeBetween(t) })
	})
	t.Run("alone", func(t *testing.T) {
		cases(t, "kind", []transport.Kind{transport.Send, transport.Recv}, s.closeAlone)
	})
	t.Run("peer", func(t *testing.T) {
		cases(t, "kind", []transport.Kind{transport.Send, transport.Recv}, func(t *testing.T, kind transport.Kind) {
			s.gone(t, oneTransfer(kind, 0))
		})
	})
	t.Run("after delivery", func(t *testing.T) { s.replicas(t, []int{3, 5}, s.closeAfterDelivery) })
	t.Run("refuses", s.closedRefuses)
	t.Run("twice", func(t *testing.T) {
		eps := s.connect(t, 2)
		shut(t, eps)
		shut(t, eps)
		play(t, eps, func(e transport.Endpoint) error { return shift(e, 0, 0) }, itself)
	})
}

// itself wants an error that says that the replica itself has closed.
func itself(t testing.TB, rank int, err error) {
	t.Helper()
	closed(rank)(t, rank, err)
}

// closeBetween closes replica 0 while it makes one call after the other, none of which waits: Close meets an Exchange
// that begins. Nobody else is in a call, so the endpoint is never busy.
func (s *suite) closeBetween(t *testing.T) {
	nothing := act{name: "nothing", number: rounds, begin: func(r *role) part {
		return part{do: func(ctx context.Context, c transport.Call) error { return r.endpoint.Exchange(ctx, c, nil) }}
	}}
	s.closeOne(t, nothing)
}

// closeAlone closes replica 0 while it waits for replica 1: nobody else is there to end the Exchange.
func (s *suite) closeAlone(t *testing.T, kind transport.Kind) {
	e := s.closeOne(t, oneTransfer(kind, 1))
	if e == nil {
		return
	}
	err := e.Err()
	if !errors.As(err, new(*transport.ClosedError)) && !errors.As(err, new(*transport.AbortError)) {
		t.Errorf("Err of an endpoint that is closed: %v", err)
	}
}

// closeOne closes replica 0 of 2 while it alone makes calls, and returns its endpoint. It is nil in the other process.
func (s *suite) closeOne(t *testing.T, a act) transport.Endpoint {
	eps := s.connect(t, 2)
	e := at(eps, 0)
	if e == nil {
		s.until(t, "closed")
		return nil
	}
	entered := make(chan bool)
	play(t, []transport.Endpoint{e}, func(e transport.Endpoint) error {
		p := s.begin(t, a, e)
		close(entered)
		return p.untilFails(background, a, 0)
	}, itself, func() {
		<-entered
		await(t, func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	s.board.post("closed", "")
	return e
}

// gone has replica 0 close before the others make calls.
func (s *suite) gone(t *testing.T, a act) {
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		play(t, s.connect(t, n), func(e transport.Endpoint) error {
			p := s.begin(t, a, e)
			i, err := s.warmUp(a, p, e)
			if err != nil {
				return err
			}
			if e.Rank() > 0 {
				return p.untilFails(background, a, i)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			return shift(e, 0, 0)
		}, closed(0))
	})
}

// closedRefuses has replica 0 make a call when it has closed: that is refused, and disturbs nobody.
func (s *suite) closedRefuses(t *testing.T) {
	all(t, s.connect(t, 3), func(e transport.Endpoint) error {
		if err := shift(e, 0, 0); err != nil {
			return err
		}
		if e.Rank() == 0 {
			if err := e.Close(); err != nil {
				return err
			}
			itself(t, 0, shift(e, 0, 1))
			s.board.post("refused", "")
			return nil
		}
		if _, err := s.board.wait("refused"); err != nil {
			return err
		}
		peer, in := 3-e.Rank(), make([]byte, 100)
		err := e.Exchange(background, call(1, 0), []transport.Transfer{
			send(peer, 0, made(100, origin{e.Rank(), peer, 0, 0})), recv(peer, 0, in)})
		if err == nil {
			err = e.Err()
		}
		if err != nil {
			return err
		}
		return same("without replica 0", in, made(100, origin{peer, e.Rank(), 0, 0}))
	})
}

// closeAfterDelivery has replica 0 send to all and close. What it has sent is good, and the others go on without it.
func (s *suite) closeAfterDelivery(t *testing.T, n int) {
	const size = 5000
	all(t, s.connect(t, n), func(e transport.Endpoint) error {
		me := e.Rank()
		others := slices.DeleteFunc(everyone(n), func(p int) bool { return p == 0 || p == me })
		if me == 0 {
			var batch []transport.Transfer
			for _, p := range others {
				batch = append(batch, send(p, 0, made(size, origin{0, p, 0, 0})))
			}
			if err := e.Exchange(background, call(0, 0), batch); err != nil {
				return err
			}
			return e.Close()
		}
		in := make([]byte, size)
		if err := e.Exchange(background, call(0, 0), []transport.Transfer{recv(0, 0, in)}); err != nil {
			return err
		}
		if err := same("from the replica that closes", in, made(size, origin{0, me, 0, 0})); err != nil {
			return err
		}
		for round := range 50 {
			var batch []transport.Transfer
			for _, p := range others {
				batch = append(batch, send(p, 0, make([]byte, 10)), recv(p, 0, make([]byte, 10)))
			}
			if err := e.Exchange(background, call(1, round), batch); err != nil {
				return err
			}
		}
		return nil
	})
}
