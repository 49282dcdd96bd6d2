package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/transport"
)

// done has one replica abort while nobody is in an Exchange. Done is closed on all replicas and lanes, and not before.
func (s *suite) done(t *testing.T) { s.replicas(t, []int{2, 3, 8}, s.testDone) }

func (s *suite) testDone(t *testing.T, n int) {
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
	for i, e := range both {
		if first := eps[i%len(eps)]; e.Done() != first.Done() {
			t.Errorf("replica %d: Done of two lanes of replica %d is not one channel", e.Rank(), first.Rank())
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
	play(t, both, func(e transport.Endpoint) error {
		<-e.Done()
		return e.Err()
	}, aborted(1))
}

// dupAlone has replicas call Dup, close what they got, and close the endpoint, at times of their own: nobody waits.
func (s *suite) dupAlone(t *testing.T) {
	s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		var lanes [3][]transport.Endpoint
		for _, e := range eps { // one after the other, on this goroutine
			for k := range lanes {
				d, err := e.Dup(background)
				if err != nil {
					t.Fatal(err)
				}
				lanes[k] = append(lanes[k], d)
			}
			if err := at(lanes[1], e.Rank()).Close(); err != nil {
				t.Error(err)
			}
		}
		for _, k := range []int{0, 2} {
			all(t, lanes[k], func(e transport.Endpoint) error { return shift(e, k, 0) })
		}
	})
}

// errorsTravel has a replica abort with errors of package transport, alone and inside others. The others find them by
// errors.As, with all their fields.
func (s *suite) errorsTravel(t *testing.T) {
	mismatch := &transport.MismatchError{Replica: 1, Peer: 0, Mine: call(3, 4), Theirs: call(5, 6)}
	for _, x := range []struct {
		name  string
		cause error
	}{
		{"as it is", mismatch},
		{"in a round", &transport.RoundError{Replica: 1, Round: 7, Kind: transport.RecvFold, Peer: 0, Err: mismatch}},
		{"in words", fmt.Errorf("a step of training: %w", mismatch)},
		{"deep", fmt.Errorf("words: %w", &transport.LateError{
			Err:     &transport.LostError{Replica: 2, Err: errors.New("reset")},
			Aborted: &transport.AbortError{Replica: 2, Cause: mismatch}})},
		{"joined", errors.Join(context.DeadlineExceeded, mismatch)},
	} {
		t.Run("cause="+x.name, func(t *testing.T) { s.testErrorTravels(t, x.cause, mismatch) })
	}
}

// testErrorTravels has replica 1 abort with a cause that has a mismatch in it.
func (s *suite) testErrorTravels(t *testing.T, cause error, mismatch *transport.MismatchError) {
	eps := s.connect(t, 3)
	if e := at(eps, 1); e != nil {
		e.Abort(cause)
	}
	a := ring(100)
	want := s.caused(only(-1), cause)
	play(t, eps, func(e transport.Endpoint) error {
		return s.begin(t, a, e).untilFails(background, a, 0)
	}, func(t testing.TB, rank int, err error) {
		aborted(1)(t, rank, err)
		want(t, rank, err)
		if m, ok := errors.AsType[*transport.MismatchError](err); !ok {
			t.Errorf("replica %d: no MismatchError in %v", rank, err)
		} else if d := cmp.Diff(mismatch, m); d != "" {
			t.Errorf("replica %d (-sent +got):\n%s", rank, d)
		}
		if errors.Is(cause, context.DeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("replica %d: errors.Is does not find context.DeadlineExceeded in %v", rank, err)
		}
	})
}

// unread has a replica send to one that does not come: no more messages than may be unread are taken. When the other
// one comes it gets them all, in their order.
func (s *suite) unread(t *testing.T) {
	t.Run("never read", s.neverRead)
	t.Run("read late", s.readLate)
	t.Run("of a call gone by", s.readGoneBy)
}

func (s *suite) neverRead(t *testing.T) {
	want := int64(0)
	if s.has(Buffers) {
		want = transport.MaxUnread
	}
	first := at(s.connect(t, 2), 0)
	if first == nil {
		s.until(t, "given up")
		return
	}
	defer s.board.post("given up", "")
	ctx, cancel := context.WithCancelCause(background)
	cause := errors.New("nobody reads")
	var taken atomic.Int64
	play(t, []transport.Endpoint{first}, func(e transport.Endpoint) error {
		for ; ; taken.Add(1) {
			err := e.Exchange(ctx, call(int(taken.Load()), 0), []transport.Transfer{send(1, 0, make([]byte, 8))})
			if err != nil {
				return err
			}
		}
	}, s.caused(only(0), cause), func() {
		s.standstill(first, &taken)
		cancel(cause)
	})
	if taken.Load() > want {
		t.Errorf("%d messages are taken that nobody has read, want at most %d", taken.Load(), want)
	}
}

func (s *suite) readLate(t *testing.T) {
	const messages = 3*transport.MaxUnread + 1
	eps := s.connect(t, 2)
	first := at(eps, 0)
	var sent atomic.Int64
	all(t, eps, func(e transport.Endpoint) error {
		if e.Rank() == 0 {
			return sendsMany(e, messages, &sent)
		}
		if _, err := s.board.wait("stands still"); err != nil {
			return err
		}
		return readsMany(e, messages)
	}, func() {
		if first != nil {
			s.standstill(first, &sent)
			s.board.post("stands still", "")
		}
	})
	if first != nil && sent.Load() != messages {
		t.Errorf("%d messages were taken, want %d", sent.Load(), messages)
	}
}

// sendsMany sends messages to replica 1 and counts those taken.
func sendsMany(e transport.Endpoint, messages int, sent *atomic.Int64) error {
	for i := range messages {
		buf := made(8, origin{0, 1, 0, i})
		if err := e.Exchange(background, call(i, 0), []transport.Transfer{send(1, 0, buf)}); err != nil {
			return err
		}
		sent.Add(1)
		scribble(buf)
	}
	return nil
}

// readsMany reads what sendsMany sends.
func readsMany(e transport.Endpoint, messages int) error {
	for i := range messages {
		buf := make([]byte, 8)
		if err := e.Exchange(background, call(i, 0), []transport.Transfer{recv(0, 0, buf)}); err != nil {
			return err
		}
		if err := same(fmt.Sprintf("message %d", i), buf, made(8, origin{0, 1, 0, i})); err != nil {
			return err
		}
	}
	return nil
}

// readGoneBy has replica 0 send to 1 in a call in which 1 hears from 2 only. Someone finds out: 1 when it waits or
// closes, or 0 when it closes.
func (s *suite) readGoneBy(t *testing.T) {
	eps := s.connect(t, 3)
	good, bad := call(0, 0), call(0, 0)
	bad.Root++
	play(t, eps, func(e transport.Endpoint) error {
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
	}, func(t testing.TB, rank int, err error) {
		var m *transport.MismatchError
		found := errors.As(err, &m)
		if found && s.has(Buffers) && m.Mine.Root+m.Theirs.Root != good.Root+bad.Root {
			t.Errorf("%v has not both calls", m)
		}
		s.board.post(key("found", rank), fmt.Sprint(found))
	})
	if !s.has(Buffers) {
		return
	}
	if found, err := s.board.values("found", 3); err != nil || !slices.Contains(found, "true") {
		t.Errorf("nobody finds the mismatch: %v, %v", found, err)
	}
	for i := range eps {
		eps[i].Close() // what there was to tell has been told
	}
}

// standstill returns when a count has not changed for a while.
func (s *suite) standstill(e transport.Endpoint, count *atomic.Int64) {
	for before := int64(-1); before != count.Load(); s.clock.Sleep(e, 20*time.Millisecond) {
		before = count.Load()
	}
}
