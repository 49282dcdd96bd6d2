package transporttest

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"gogcl.dev/transport"
)

func (s *suite) close(t *testing.T) {
	t.Run("in use", func(t *testing.T) {
		s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
			s.repeat(t, s.few(20), func(t *testing.T, i int) { s.closeInUse(t, n, i) })
		})
	})
	t.Run("between calls", func(t *testing.T) {
		// Close meets an Exchange that begins. Nobody else is in a call, so the endpoint is never busy.
		s.repeat(t, s.few(400), func(t *testing.T, _ int) { s.closeBetween(t) })
	})
	t.Run("alone", func(t *testing.T) {
		// Nobody else is there to end the Exchange.
		for _, kind := range []transport.Kind{transport.Send, transport.Recv} {
			t.Run("kind="+kind.String(), func(t *testing.T) {
				eps := s.connect(t, 2)
				e := at(eps, 0)
				if e == nil {
					s.until(t, "closed")
					return
				}
				buf := make([]byte, 1000)
				entered := make(chan bool)
				errs := each(t, []transport.Endpoint{e}, func(e transport.Endpoint) error {
					close(entered)
					return s.insist(e, []transport.Transfer{{Peer: 1, Kind: kind, Buf: buf}})
				}, func() {
					<-entered
					await(t, func() {
						if err := e.Close(); err != nil {
							t.Error(err)
						}
					})
					scribble(buf)
				})
				s.board.post("closed", "")
				wantClosed(t, 0, errs[0], 0)
				var closed *transport.ClosedError
				if err := e.Err(); !errors.As(err, &closed) && !errors.As(err, new(*transport.AbortError)) {
					t.Errorf("Err of an endpoint that is closed: %v", err)
				}
			})
		}
	})
	t.Run("peer", func(t *testing.T) {
		// Replica 0 has closed; one replica waits to send to it, one to receive from it.
		for _, kind := range []transport.Kind{transport.Send, transport.Recv} {
			t.Run("kind="+kind.String(), func(t *testing.T) {
				s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
					eps := s.connect(t, n)
					errs := each(t, eps, func(e transport.Endpoint) error {
						if e.Rank() == 0 {
							if err := e.Close(); err != nil {
								t.Error(err)
							}
							return shift(e, 0, 0)
						}
						buf := make([]byte, 1000)
						defer scribble(buf)
						return s.insist(e, []transport.Transfer{{Peer: 0, Kind: kind, Buf: buf}})
					})
					for rank, err := range byRank(eps, errs) {
						wantClosed(t, rank, err, 0)
						wantWhere(t, rank, err)
					}
				})
			})
		}
	})
	t.Run("after delivery", func(t *testing.T) {
		// Messages sent before a replica closed are good, and the others go on without it.
		s.replicas(t, []int{3, 5}, func(t *testing.T, n int) {
			eps := s.connect(t, n)
			all(t, eps, func(e transport.Endpoint) error {
				me := e.Rank()
				if me == 0 {
					var batch []transport.Transfer
					for p := 1; p < n; p++ {
						batch = append(batch, send(p, 0, made(5000, origin{0, p, 0, 0})))
					}
					if err := e.Exchange(background, call(0, 0), batch); err != nil {
						return err
					}
					return e.Close()
				}
				in := make([]byte, 5000)
				if err := e.Exchange(background, call(0, 0), []transport.Transfer{recv(0, 0, in)}); err != nil {
					return err
				}
				if err := same("from the replica that closes", in, made(5000, origin{0, me, 0, 0})); err != nil {
					return err
				}
				for round := range 50 {
					var batch []transport.Transfer
					for p := 1; p < n; p++ {
						if p != me {
							batch = append(batch, send(p, 0, make([]byte, 10)), recv(p, 0, make([]byte, 10)))
						}
					}
					if err := e.Exchange(background, call(1, round), batch); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
	t.Run("twice", func(t *testing.T) {
		eps := s.connect(t, 2)
		shut(t, eps)
		shut(t, eps)
		for rank, err := range byRank(eps, each(t, eps, func(e transport.Endpoint) error { return shift(e, 0, 0) })) {
			wantClosed(t, rank, err, rank)
		}
	})
}

// insist carries out a round that cannot succeed: again and again where sends are buffered, until one fails.
func (s *suite) insist(e transport.Endpoint, batch []transport.Transfer) error {
	for round := 0; ; round++ {
		if err := e.Exchange(background, call(0, round), batch); err != nil || !s.has(Buffers) {
			return err
		}
	}
}

// closeBetween closes replica 0 while it makes one call after the other, none of which waits.
func (s *suite) closeBetween(t *testing.T) {
	eps := s.connect(t, 2)
	e := at(eps, 0)
	if e == nil {
		s.until(t, "closed")
		return
	}
	entered := make(chan bool)
	errs := each(t, []transport.Endpoint{e}, func(e transport.Endpoint) error {
		close(entered)
		for {
			if err := e.Exchange(background, call(0, 0), nil); err != nil {
				return err
			}
		}
	}, func() {
		<-entered
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	s.board.post("closed", "")
	wantClosed(t, 0, errs[0], 0)
}

// closeInUse closes replica 0 while all are busy with each other. When Close returns nobody looks at its buffers.
func (s *suite) closeInUse(t *testing.T, n, try int) {
	eps := s.connect(t, n)
	size := []int{100, 200000}[try%2]
	var current atomic.Pointer[[2][]byte] // the buffers of the Exchange that replica 0 is in, or was in last
	busy := make(chan bool)
	errs := each(t, eps, func(e transport.Endpoint) error {
		if e.Rank() > 0 {
			return untilError(background, e, size)
		}
		for round := 0; ; round++ {
			out, in := made(size, origin{0, 1, 0, round}), make([]byte, size)
			current.Store(&[2][]byte{out, in})
			if round == 3 {
				close(busy)
			}
			if err := e.Exchange(background, call(0, round),
				[]transport.Transfer{send(1, 0, out), recv(n-1, 0, in)}); err != nil {
				return err
			}
		}
	}, func() {
		e := at(eps, 0)
		if e == nil {
			return
		}
		<-busy
		for range try {
			runtime.Gosched()
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		scribble(current.Load()[:]...)
	})
	for rank, err := range byRank(eps, errs) {
		wantClosed(t, rank, err, 0)
	}
	shut(t, eps)
}
