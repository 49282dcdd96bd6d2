package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// stays checks that the endpoints are aborted for good.
func stays(t testing.TB, eps []transport.Endpoint, by int) {
	t.Helper()
	play(t, eps, func(e transport.Endpoint) error { return shift(e, 0, 0) }, func(t testing.TB, rank int, err error) {
		aborted(by)(t, rank, err)
		located(t, rank, err)
	})
}

// cancel has the context of replica 1 end, or everybody's, before or while the replicas are in calls.
func (s *suite) cancel(t *testing.T, a act) {
	cases(t, "when", []string{"before", "during", "deadline", "everybody"}, func(t *testing.T, when string) {
		s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) { s.testCancel(t, a, n, when) })
	})
}

// testCancel has replica 0 come when the others have left, but where the context has ended before.
func (s *suite) testCancel(t *testing.T, a act, n int, when string) {
	eps := s.connect(t, n)
	other := s.lanes(t, eps)
	const who = 1
	cause := errors.New("enough of it")
	ctx, cancel := context.WithCancelCause(background)
	defer cancel(nil)
	switch when {
	case "before":
		cancel(cause)
	case "deadline":
		var stop context.CancelFunc
		ctx, stop = s.clock.WithTimeout(ctx, time.Millisecond)
		defer stop()
		cause = context.DeadlineExceeded
	}
	want := s.cancelled(who, cause)
	if when == "everybody" { // between processes another one's context may be done first
		want = s.caused(func(int) bool { return s.world == nil }, cause)
	}
	play(t, eps, func(e transport.Endpoint) error {
		defer s.board.post(key("left", e.Rank()), "")
		p := s.begin(t, a, e)
		i, err := s.warmUp(a, p, e)
		if err == nil && e.Rank() == 0 && when != "before" {
			err = s.others("left", 0, n)
		}
		if err != nil {
			return err
		}
		s.board.post(key("entered", e.Rank()), "")
		if e.Rank() == who || when == "everybody" {
			return p.untilFails(ctx, a, i)
		}
		return p.untilFails(background, a, i)
	}, want, func() {
		if when == "during" || when == "everybody" {
			s.awaitOthers(t, "entered", 0, n)
			cancel(cause)
		}
	})
	if when != "everybody" {
		stays(t, eps, who)
		stays(t, other, who)
	}
}

// abort has a replica abort one of two lanes, which is the abort of both, before the replicas are in calls, while they
// are, or while all wait for one.
func (s *suite) abort(t *testing.T, a act) {
	cases(t, "when", []string{"before", "during", "waiting"}, func(t *testing.T, when string) {
		s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) { s.testAbort(t, a, n, when) })
	})
}

func (s *suite) testAbort(t *testing.T, a act, n int, when string) {
	eps := s.connect(t, n)
	other := s.lanes(t, eps)
	cause := errors.New("the user has had enough")
	who := n - 1
	if e := at(eps, who); e != nil && when == "before" {
		e.Abort(cause)
	}
	both := slices.Concat(eps, other)
	lanes := []string{"entered on lane 0", "entered on lane 1"}
	play(t, both, func(e transport.Endpoint) error {
		lane := slices.Index(both, e) / len(eps)
		s.board.post(key(lanes[lane], e.Rank()), "")
		if e.Rank() == 0 && when == "waiting" { // nobody gets on without this one
			if _, err := s.board.wait("aborted"); err != nil {
				return err
			}
		}
		return s.begin(t, a, e).untilFails(background, a, 0)
	}, s.abortedFor(who, cause), func() {
		e := at(other, who)
		if e == nil {
			return
		}
		for _, where := range lanes {
			s.awaitOthers(t, where, -1, n)
		}
		if when != "before" {
			e.Abort(cause)
		}
		s.board.post("aborted", "")
	})
	for _, e := range both {
		aborted(who)(t, e.Rank(), e.Err())
	}
	if e := at(eps, 0); e != nil {
		e.Abort(errors.New("too late"))
	}
	stays(t, eps, who)
	stays(t, other, who)
}

// breakOff cancels, aborts or closes while calls are under way, again and again, at every stage there is. As soon as a
// call has failed, or Close has returned, nobody is at the buffers.
func (s *suite) breakOff(t *testing.T, a act) {
	cases(t, "how", []string{"cancel", "abort", "close"}, func(t *testing.T, how string) {
		s.repeat(t, s.few(a.tries), func(t *testing.T, i int) { s.testBreak(t, a, how, i) })
	})
}

func (s *suite) testBreak(t *testing.T, a act, how string, try int) {
	n := s.number([]int{2, 3, 4, 5, 8}[try%5])
	eps := s.connect(t, n)
	s.meet(t) // else others may still be joining
	b := &breaking{how: how, who: try % n, cause: errors.New("in the middle"), parts: make([]part, n),
		when: try * 7 % 20, point: try / 3 % (a.points + 1), inside: try%3 == 0, reached: make(chan bool)}
	b.ctx, b.cancel = context.WithCancelCause(background)
	defer b.cancel(nil)
	want := s.cancelled(b.who, b.cause)
	switch how {
	case "abort":
		want = s.abortedFor(b.who, b.cause)
	case "close":
		want = closed(b.who)
	}
	play(t, eps, func(e transport.Endpoint) error { return b.run(s, t, a, e) }, want, func() {
		e := at(eps, b.who)
		if e == nil {
			return
		}
		<-b.reached
		for range try {
			runtime.Gosched()
		}
		b.strike(t, e)
	})
	for _, e := range eps {
		for k, buf := range b.parts[e.Rank()].bufs {
			spoiled := make([]byte, len(buf))
			scribble(spoiled)
			what := fmt.Sprintf("buffer %d of replica %d after the error", k, e.Rank())
			if err := same(what, buf, spoiled); err != nil {
				t.Error(err)
			}
		}
	}
	shut(t, eps)
}

// breaking is how calls are broken off, and where.
type breaking struct {
	how     string
	who     int
	cause   error
	ctx     context.Context // of who
	cancel  context.CancelCauseFunc
	parts   []part // by rank
	when    int    // the number of the call
	point   int    // of the call
	inside  bool   // by who itself, and not by another goroutine
	reached chan bool
	struck  bool // before reached was closed
}

// run makes calls until one fails. That of the replica to close has its buffers spoiled by who closes it.
func (b *breaking) run(s *suite, t testing.TB, a act, e transport.Endpoint) error {
	mine := background
	r := &role{suite: s, t: t, endpoint: e}
	number := 0
	if e.Rank() == b.who {
		mine = b.ctx
		r.idle = b.how == "close"
		r.at = func(point int) { b.pass(t, e, number, point) }
		defer func() { // a call that fails too early must not leave whoever strikes waiting
			select {
			case <-b.reached:
			default:
				close(b.reached)
			}
		}()
	}
	p := a.begin(r)
	b.parts[e.Rank()] = p
	for ; ; number++ {
		runtime.Gosched() // whoever breaks this off must get a processor
		r.reach(0)
		if err := p.do(mine, a.number(number)); err != nil {
			if !r.idle {
				scribble(p.bufs...)
			}
			return err
		}
	}
}

// pass says that who has come to a point of a call. A call cannot be closed by what it calls.
func (b *breaking) pass(t testing.TB, e transport.Endpoint, number, point int) {
	if number < b.when || point != b.point {
		return
	}
	select {
	case <-b.reached:
		return
	default:
	}
	if b.inside && (b.how != "close" || point == 0) {
		b.strike(t, e)
		b.struck = true
	}
	close(b.reached)
}

// strike breaks off, unless that has been done.
func (b *breaking) strike(t testing.TB, e transport.Endpoint) {
	switch {
	case b.struck:
	case b.how == "cancel":
		b.cancel(b.cause)
	case b.how == "abort":
		e.Abort(b.cause)
	default:
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		scribble(b.parts[b.who].bufs...)
	}
}
