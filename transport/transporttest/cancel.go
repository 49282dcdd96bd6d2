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

// untilError runs rounds of a ring on the endpoint until one fails, and returns the error. Buffers are spoiled right
// after. Here and elsewhere in the suite a replica that waits for an error has no last round: one that counted its
// rounds would leave before an error that is late. Where no error comes, await fails the test, and the Close after the
// test ends the rounds.
func untilError(ctx context.Context, e transport.Endpoint, size int) error {
	me, n := e.Rank(), e.Size()
	out, in := make([]byte, size), make([]byte, size)
	for round := 0; ; round++ {
		fill(out, origin{me, (me + 1) % n, 0, round})
		err := e.Exchange(ctx, call(0, round), []transport.Transfer{send((me+1)%n, 0, out), recv((me+n-1)%n, 0, in)})
		if err != nil {
			scribble(out, in)
			return err
		}
		if err := same(fmt.Sprintf("round %d", round), in,
			made(size, origin{(me + n - 1) % n, me, 0, round})); err != nil {
			panic(err) // what Exchange says it has delivered is not there
		}
		scribble(out, in)
	}
}

// stays checks that the endpoints are aborted for good.
func stays(t testing.TB, eps []transport.Endpoint, by int) {
	t.Helper()
	for rank, err := range byRank(eps, each(t, eps, func(e transport.Endpoint) error { return shift(e, 0, 0) })) {
		wantAbort(t, rank, err, by)
		wantWhere(t, rank, err)
	}
}

func (s *suite) cancel(t *testing.T) {
	cause := errors.New("enough of it")
	for _, when := range []string{"before", "during", "deadline", "everybody"} {
		t.Run("when="+when, func(t *testing.T) {
			s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
				eps := s.connect(t, n)
				other := s.lanes(t, eps)
				who, want := 1, cause
				ctx, cancel := context.WithCancelCause(background)
				defer cancel(nil)
				switch when {
				case "before":
					cancel(cause)
				case "deadline":
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, time.Millisecond)
					defer stop()
					want = context.DeadlineExceeded
				}
				errs := each(t, eps, func(e transport.Endpoint) error {
					defer s.board.post(key("left", e.Rank()), "")
					mine := background
					if e.Rank() == who || when == "everybody" {
						mine = ctx
					}
					if e.Rank() == 0 && when != "before" {
						// The others wait for this one, until the context is done.
						if err := s.others("left", 0, n); err != nil {
							return err
						}
					}
					s.board.post(key("entered", e.Rank()), "")
					return untilError(mine, e, 1000)
				}, func() {
					if when == "during" || when == "everybody" {
						await(t, func() {
							if err := s.others("entered", 0, n); err != nil {
								t.Error(err)
							}
						})
						cancel(cause)
					}
				})
				for rank, err := range byRank(eps, errs) {
					own := rank == who
					if when == "everybody" { // between processes another one's context may be done first
						own = s.world == nil
					}
					s.wantCause(t, rank, err, own, want)
					wantWhere(t, rank, err)
					if rank != who && when != "everybody" {
						wantAbort(t, rank, err, who)
					}
				}
				if when != "everybody" {
					stays(t, eps, who)
					stays(t, other, who)
				}
			})
		})
	}
}

// cancelInTheMiddle cancels while messages are in flight, again and again, at every stage there is.
func (s *suite) cancelInTheMiddle(t *testing.T) {
	cause := errors.New("in the middle")
	for _, size := range []int{100, 200000} {
		times := 100
		if size > 100 {
			times = 40
			if s.has(Brief) {
				size /= 8
			}
		}
		t.Run(fmt.Sprintf("size=%d", size), func(t *testing.T) {
			s.repeat(t, s.few(times), func(t *testing.T, i int) {
				n := s.number(2 + i%4)
				eps := s.connect(t, n)
				who, when := i%n, i*7%20
				ctx, cancel := context.WithCancelCause(background)
				middle := make(chan bool)
				errs := each(t, eps, func(e transport.Endpoint) error {
					mine := background
					if e.Rank() == who {
						mine = ctx
					}
					batch := messy(t, e.Rank(), n, size, 0)
					for round := 0; ; round++ {
						if e.Rank() == who && round == when {
							close(middle)
						}
						if err := e.Exchange(mine, call(0, round), batch); err != nil {
							scribbleBatch(batch)
							return err
						}
					}
				}, func() {
					if at(eps, who) == nil {
						return
					}
					<-middle
					for range i {
						runtime.Gosched()
					}
					cancel(cause)
				})
				for rank, err := range byRank(eps, errs) {
					s.wantCause(t, rank, err, rank == who, cause)
				}
				cancel(nil)
				shut(t, eps)
			})
		})
	}
}

// messy is a round with some of everything: a chain from all others, a fold and a plain receive.
func messy(t testing.TB, me, n, size, round int) []transport.Transfer {
	var links []link
	var batch []transport.Transfer
	for k := 1; k < n; k++ {
		p := (me + k) % n
		links = append(links, link{from: p})
		batch = append(batch, send(p, 0, made(size, origin{me, p, 0, round})))
	}
	chain, _ := chainOf(t, me, links, round, make([]byte, size), nil)
	to, from := (me+1)%n, (me+n-1)%n
	return append(append(batch, chain...),
		send(to, 1, make([]byte, size)), recv(from, 1, make([]byte, size)),
		send(to, 2, make([]byte, size)), recvFold(t, from, 2, make([]byte, size), make([]byte, size)))
}

func (s *suite) abort(t *testing.T) {
	cause := errors.New("the user has had enough")
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		for _, when := range []string{"before", "during", "waiting"} {
			t.Run("when="+when, func(t *testing.T) {
				eps := s.connect(t, n)
				other := s.lanes(t, eps)
				who := n - 1
				if e := at(eps, who); e != nil && when == "before" {
					e.Abort(cause)
				}
				both := append(append([]transport.Endpoint{}, eps...), other...)
				errs := each(t, both, func(e transport.Endpoint) error {
					lane := slices.Index(both, e) / len(eps)
					s.board.post(key(fmt.Sprint("entered on lane ", lane), e.Rank()), "")
					if e.Rank() == 0 && when == "waiting" { // nobody gets on without this one
						if _, err := s.board.wait("aborted"); err != nil {
							return err
						}
					}
					return untilError(background, e, 70000)
				}, func() {
					e := at(other, who)
					if e == nil {
						return
					}
					for _, where := range []string{"entered on lane 0", "entered on lane 1"} {
						await(t, func() {
							if err := s.others(where, -1, n); err != nil {
								t.Error(err)
							}
						})
					}
					if when != "before" {
						e.Abort(cause) // the abort of one lane is the abort of all
					}
					s.board.post("aborted", "")
				})
				for i, err := range errs {
					rank := both[i].Rank()
					s.wantCause(t, rank, err, rank == who, cause)
					wantAbort(t, rank, err, who)
					wantWhere(t, rank, err)
					wantAbort(t, rank, both[i].Err(), who)
				}
				if e := at(eps, 0); e != nil {
					e.Abort(errors.New("too late"))
				}
				stays(t, eps, who)
				stays(t, other, who)
			})
		}
	})
}
