package transporttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/transport"
)

// done has one replica abort while nobody is in an Exchange. Done is closed on all replicas and lanes, and not before.
func (s *suite) done(t *testing.T) {
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		both := append(s.lanes(t, eps), eps...)
		all(t, eps, func(e transport.Endpoint) error { return shift(e, 0, 0) })
		for _, e := range both {
			select {
			case <-e.Done():
				t.Errorf("replica %d: Done is closed, and nobody has aborted: %v", e.Rank(), e.Err())
			default:
			}
		}
		for _, e := range eps {
			s.board.post(key("looked", e.Rank()), "")
		}
		if e := at(both, 1); e != nil {
			if err := s.others("looked", -1, n); err != nil {
				t.Fatal(err)
			}
			e.Abort(errors.New("no more"))
		}
		for rank, err := range byRank(both, each(t, both, func(e transport.Endpoint) error {
			<-e.Done()
			return e.Err()
		})) {
			wantAbort(t, rank, err, 1)
		}
	})
}

// dupAlone has replicas call Dup, close what they got, and close the endpoint, at times of their own: nobody waits.
func (s *suite) dupAlone(t *testing.T) {
	s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		made := make([][]transport.Endpoint, len(eps))
		for i, e := range eps { // one after the other, on this goroutine
			for range 3 {
				d, err := e.Dup(background)
				if err != nil {
					t.Fatal(err)
				}
				made[i] = append(made[i], d)
			}
			if err := made[i][1].Close(); err != nil {
				t.Error(err)
			}
		}
		for _, k := range []int{0, 2} {
			lane := make([]transport.Endpoint, len(eps))
			for i := range lane {
				lane[i] = made[i][k]
			}
			all(t, lane, func(e transport.Endpoint) error { return shift(e, k, 0) })
		}
	})
}

// errorsTravel has a replica abort with errors of package transport, alone and inside others. The others find them by
// errors.As, with all their fields.
func (s *suite) errorsTravel(t *testing.T) {
	mine, theirs := call(3, 4), call(5, 6)
	mismatch := &transport.MismatchError{Replica: 1, Peer: 0, Mine: mine, Theirs: theirs}
	causes := map[string]error{
		"as it is":   mismatch,
		"in a round": &transport.RoundError{Replica: 1, Round: 7, Kind: transport.RecvFold, Peer: 0, Err: mismatch},
		"in words":   fmt.Errorf("a step of training: %w", mismatch),
		"deep": fmt.Errorf("words: %w", &transport.LateError{
			Err:     &transport.LostError{Replica: 2, Err: errors.New("reset")},
			Aborted: &transport.AbortError{Replica: 2, Cause: mismatch}}),
		"joined": errors.Join(context.DeadlineExceeded, mismatch),
	}
	for _, name := range slices.Sorted(maps.Keys(causes)) {
		cause := causes[name]
		t.Run("cause="+name, func(t *testing.T) {
			eps := s.connect(t, 3)
			if e := at(eps, 1); e != nil {
				e.Abort(cause)
			}
			errs := each(t, eps, func(e transport.Endpoint) error { return untilError(background, e, 100) })
			for rank, err := range byRank(eps, errs) {
				wantAbort(t, rank, err, 1)
				s.wantCause(t, rank, err, false, cause)
				var m *transport.MismatchError
				if !errors.As(err, &m) {
					t.Errorf("replica %d: no MismatchError in %v", rank, err)
				} else if d := cmp.Diff(mismatch, m); d != "" {
					t.Errorf("replica %d (-sent +got):\n%s", rank, d)
				}
				if name == "joined" && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("replica %d: errors.Is does not find context.DeadlineExceeded in %v", rank, err)
				}
			}
		})
	}
}

// unread has a replica send to one that does not come: no more messages than may be unread are taken. When the other
// one comes it gets them all, in their order.
func (s *suite) unread(t *testing.T) {
	want := int64(0)
	if s.has(Buffers) {
		want = transport.MaxUnread
	}
	t.Run("never read", func(t *testing.T) {
		first := at(s.connect(t, 2), 0)
		if first == nil {
			s.until(t, "given up")
			return
		}
		defer s.board.post("given up", "")
		ctx, cancel := context.WithCancelCause(background)
		cause := errors.New("nobody reads")
		var taken atomic.Int64
		errs := each(t, []transport.Endpoint{first}, func(e transport.Endpoint) error {
			for ; ; taken.Add(1) {
				err := e.Exchange(ctx, call(int(taken.Load()), 0), []transport.Transfer{send(1, 0, make([]byte, 8))})
				if err != nil {
					return err
				}
			}
		}, func() {
			standstill(&taken)
			cancel(cause)
		})
		s.wantCause(t, 0, errs[0], true, cause)
		if taken.Load() > want {
			t.Errorf("%d messages are taken that nobody has read, want at most %d", taken.Load(), want)
		}
	})
	t.Run("read late", func(t *testing.T) {
		eps := s.connect(t, 2)
		const messages = 3*transport.MaxUnread + 1
		var sent atomic.Int64
		all(t, eps, func(e transport.Endpoint) error {
			if e.Rank() == 1 {
				if _, err := s.board.wait("stands still"); err != nil {
					return err
				}
			}
			for i := range messages {
				buf := made(8, origin{0, 1, 0, i})
				batch := []transport.Transfer{send(1, 0, buf)}
				if e.Rank() == 1 {
					buf = make([]byte, 8)
					batch = []transport.Transfer{recv(0, 0, buf)}
				}
				if err := e.Exchange(background, call(i, 0), batch); err != nil {
					return err
				}
				if e.Rank() == 0 {
					sent.Add(1)
					scribble(buf)
				} else if err := same(fmt.Sprintf("message %d", i), buf, made(8, origin{0, 1, 0, i})); err != nil {
					return err
				}
			}
			return nil
		}, func() {
			if at(eps, 0) != nil {
				standstill(&sent)
				s.board.post("stands still", "")
			}
		})
		if at(eps, 0) != nil && sent.Load() != messages {
			t.Errorf("%d messages were taken, want %d", sent.Load(), messages)
		}
	})
	t.Run("of a call gone by", func(t *testing.T) {
		// Replica 0 sends to 1 in a call in which 1 hears from 2 only. Someone finds out: 1 when it waits or closes, or
		// 0 when it closes.
		eps := s.connect(t, 3)
		good, bad := call(0, 0), call(0, 0)
		bad.Root++
		errs := each(t, eps, func(e transport.Endpoint) error {
			var err, late error
			switch e.Rank() {
			case 0:
				ctx, cancel := context.WithCancel(background)
				if !s.has(Buffers) {
					cancel() // it would wait for ever
				}
				defer cancel()
				err = e.Exchange(ctx, bad, []transport.Transfer{send(1, 0, make([]byte, 8))})
				s.board.post("sent", "")
			case 1:
				err = e.Exchange(background, good, []transport.Transfer{recv(2, 0, make([]byte, 8))})
				_, late = s.board.wait("sent")
			case 2:
				err = e.Exchange(background, good, []transport.Transfer{send(1, 0, make([]byte, 8))})
			}
			return errors.Join(err, late, e.Close())
		})
		if !s.has(Buffers) {
			return
		}
		for rank, err := range byRank(eps, errs) {
			var m *transport.MismatchError
			found := errors.As(err, &m)
			if found && m.Mine.Root+m.Theirs.Root != good.Root+bad.Root {
				t.Errorf("%v has not both calls", m)
			}
			s.board.post(key("found", rank), fmt.Sprint(found))
		}
		if found, err := s.board.values("found", 3); err != nil || !slices.Contains(found, "true") {
			t.Errorf("nobody finds the mismatch: %v, %v", errs, err)
		}
		for i := range eps {
			eps[i].Close() // what there was to tell has been told
		}
	})
}

// standstill returns when a count has not changed for a while.
func standstill(count *atomic.Int64) {
	for before := int64(-1); before != count.Load(); time.Sleep(20 * time.Millisecond) {
		before = count.Load()
	}
}
