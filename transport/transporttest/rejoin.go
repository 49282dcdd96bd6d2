package transporttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// rejoin holds endpoints that offer transport.Rejoiner to its promises.
func (s *suite) rejoin(t *testing.T) {
	offered := true
	t.Run("Offered", func(t *testing.T) {
		eps := s.connect(t, s.number(2))
		for _, e := range eps {
			var r transport.Rejoiner
			if r, offered = e.(transport.Rejoiner); offered && r.Awaited() {
				t.Error("somebody waits to come, by an endpoint whose job has just begun, and nobody does")
			}
		}
		s.agree(t, s.number(2), eps, fmt.Sprint(offered))
	})
	if !offered {
		t.Skip("the endpoints do not offer transport.Rejoiner")
	}
	s.run(t, []test{
		{"Left", (*suite).rejoinLeft},
		{"Nobody", (*suite).rejoinNobody},
		{"OneByOne", (*suite).rejoinOneByOne},
		{"Meanwhile", (*suite).rejoinMeanwhile},
		{"GivesUp", (*suite).rejoinGivesUp},
		{"MidCall", (*suite).rejoinMidCall},
		{"Unread", (*suite).rejoinUnread},
	})
}

// heirs are the endpoints of this process in the generations after the first, in one case.
type heirs struct {
	*suite
	mu  sync.Mutex // guards eps
	eps []transport.Endpoint
}

// generations is connect for replicas that rejoin. All endpoints that they get are closed at the end of the test.
func (s *suite) generations(t *testing.T, n int) (*heirs, []transport.Endpoint) {
	t.Helper()
	eps := s.connect(t, n)
	h := &heirs{suite: s}
	t.Cleanup(func() {
		s.rooms.shut()
		shut(t, h.eps)
	})
	return h, eps
}

// all is the function of this name. A replica that fails leaves all generations: nobody waits for it.
func (h *heirs) all(t testing.TB, eps []transport.Endpoint, body func(e transport.Endpoint) error,
	meanwhile ...func()) {
	t.Helper()
	all(t, eps, func(e transport.Endpoint) error {
		err := body(e)
		if err == nil {
			return nil
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, heir := range h.eps {
			heir.Abort(err)
		}
		return errors.Join(err, e.Close())
	}, meanwhile...)
}

// note is what a replica tells the others in Rejoin.
func note(rank, generation int) uint64 {
	return uint64(rank)*0x9e3779b97f4a7c15 - uint64(generation)*0xbf58476d1ce4e5b9
}

// rejoins has the replica of an endpoint rejoin, and checks what has become of the endpoint, and what the replica is
// told: all are there again but those gone, in a generation that has this number.
func (h *heirs) rejoins(e transport.Endpoint, generation int, gone ...int) (transport.Endpoint, error) {
	next, err := h.rejoinsBusy(e, generation, gone...)
	if err == nil {
		err = goesOn(e, next)
	}
	return next, err
}

// rejoinsBusy is rejoins for an endpoint that may be in a call.
func (h *heirs) rejoinsBusy(e transport.Endpoint, generation int, gone ...int) (transport.Endpoint, error) {
	r, err := h.next(e, generation)
	if err != nil {
		return nil, err
	}
	return r.Endpoint, told(e, r, generation, gone)
}

// next has the replica of an endpoint rejoin.
func (h *heirs) next(e transport.Endpoint, generation int) (*transport.Rejoined, error) {
	r, err := e.(transport.Rejoiner).Rejoin(background, note(e.Rank(), generation))
	if err != nil {
		return nil, fmt.Errorf("to rejoin: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.eps = append(h.eps, r.Endpoint)
	return r, nil
}

// rejoinsWithout is rejoins without a replica that gives up meanwhile. It may have told the others before that it goes
// on: then it is lost to the next endpoint, and they rejoin once more.
func (h *heirs) rejoinsWithout(e transport.Endpoint, who int) (transport.Endpoint, error) {
	r, err := h.next(e, 1)
	if err != nil {
		return nil, err
	}
	if slices.Contains(r.Replicas, who) {
		if err := told(e, r, 1, nil); err != nil {
			return nil, err
		}
		return h.rejoins(r.Endpoint, 2, who)
	}
	if err := told(e, r, 1, []int{who}); err != nil {
		return nil, err
	}
	return r.Endpoint, goesOn(e, r.Endpoint)
}

// told checks what a replica is told by Rejoin.
func told(e transport.Endpoint, r *transport.Rejoined, generation int, gone []int) error {
	var left []int
	var notes []uint64
	for _, rank := range everyone(e.Size()) {
		if !slices.Contains(gone, rank) {
			left, notes = append(left, rank), append(notes, note(rank, generation))
		}
	}
	var lost []int
	for _, g := range r.Gone {
		lost = append(lost, g.Replica)
		if g.Why == nil || g.When.IsZero() || g.When.After(time.Now()) {
			return fmt.Errorf("replica %d is gone since %v for %v", g.Replica, g.When, g.Why)
		}
	}
	switch {
	case r.Generation != generation:
		return fmt.Errorf("this is generation %d, want %d", r.Generation, generation)
	case !slices.Equal(r.Replicas, left) || !slices.Equal(lost, gone):
		return fmt.Errorf("replicas %v go on without %v, want %v and %v", r.Replicas, lost, left, gone)
	case len(r.Came) > 0:
		return fmt.Errorf("replicas %v have come, and nobody has", r.Came)
	case !slices.Equal(r.Notes, notes):
		return fmt.Errorf("the replicas' notes are %#x, want %#x", r.Notes, notes)
	case r.Endpoint.Size() != len(left) || r.Endpoint.Rank() != slices.Index(left, e.Rank()):
		return fmt.Errorf("replica %d of %d without %v is %d of %d now",
			e.Rank(), e.Size(), gone, r.Endpoint.Rank(), r.Endpoint.Size())
	}
	return nil
}

// goesOn checks that a rejoined endpoint is over, and that the next one has nothing of it.
func goesOn(e, next transport.Endpoint) error {
	select {
	case <-e.Done():
	default:
		return errors.New("an endpoint that has been rejoined is not done")
	}
	_, dup := e.Dup(background)
	exchange := e.Exchange(background, call(0, 0), nil)
	for what, err := range map[string]error{"Err": e.Err(), "Exchange": exchange, "Dup": dup} {
		if !errors.As(err, new(*transport.AbortError)) {
			return fmt.Errorf("%s of an endpoint that has been rejoined: %v", what, err)
		}
	}
	if err := next.Err(); err != nil {
		return fmt.Errorf("the next endpoint begins with %w", err)
	}
	for what, rejoiner := range map[string]transport.Endpoint{"rejoined endpoint": e, "next endpoint": next} {
		if rejoiner.(transport.Rejoiner).Awaited() {
			return fmt.Errorf("somebody waits to come, by the %s, and nobody does", what)
		}
	}
	before, ok := e.(transport.Shared)
	if !ok {
		return nil
	}
	if after, ok := next.(transport.Shared); !ok || before.Shared() == after.Shared() {
		return errors.New("the next endpoint has the map of the one before")
	}
	return nil
}

// works has the replicas of an endpoint do the seq-th of their jobs: messages among all, on a lane as well, and on
// boards where there are some.
func (h *heirs) works(e transport.Endpoint, seq int) error {
	n := e.Size()
	for round := range 3 {
		m := &mail{me: e.Rank(), round: 10*seq + round}
		for p := range n {
			if p != m.me {
				m.both(p, 0, 5000)
			}
		}
		if err := m.exchange(e, call(seq, round)); err != nil {
			return fmt.Errorf("job %d: %w", seq, err)
		}
	}
	lane, err := e.Dup(background)
	if err == nil && n > 1 {
		err = shift(lane, 1, 10*seq)
	}
	if err != nil {
		return fmt.Errorf("job %d, on a lane: %w", seq, err)
	}
	boards, ok := e.(transport.Boards)
	if !ok || !boards.Reaches(everyone(n)) {
		return nil
	}
	g := everybody(n)
	all, _, err := boards.Gather(background, g.call(seq), g.members, []byte{byte(e.Rank()), byte(seq)}, 2, nil)
	if err != nil {
		return fmt.Errorf("job %d, on boards: %w", seq, err)
	}
	for rank, got := range all {
		if want := []byte{byte(rank), byte(seq)}; !slices.Equal(got, want) {
			return fmt.Errorf("job %d: replica %d shows %v, want %v", seq, rank, got, want)
		}
	}
	return nil
}

// rejoinLeft has some replicas close in the middle of a job. The others go on, and close the endpoint before at some
// time.
func (s *suite) rejoinLeft(t *testing.T) {
	cases(t, "closed", []string{"before", "after"}, func(t *testing.T, when string) {
		s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
			for _, gone := range [][]int{{n - 1}, {0}, {0, n - 1}} {
				if len(gone) < n {
					t.Run(fmt.Sprintf("gone=%v", gone), func(t *testing.T) { s.testRejoinLeft(t, n, gone, when) })
				}
			}
		})
	})
}

func (s *suite) testRejoinLeft(t *testing.T, n int, gone []int, when string) {
	h, eps := s.generations(t, n)
	a := ring(1000)
	h.all(t, eps, func(e transport.Endpoint) error {
		p := s.begin(t, a, e)
		if slices.Contains(gone, e.Rank()) {
			for i := range 3 {
				if p.do(background, a.number(i)) != nil { // by another one that is gone
					break
				}
			}
			if err := e.Close(); err != nil {
				return err
			}
			_, err := e.(transport.Rejoiner).Rejoin(background, 0)
			itself(t, e.Rank(), err)
			return nil
		}
		err := p.untilFails(background, a, 0)
		if c, ok := errors.AsType[*transport.ClosedError](err); !ok || !slices.Contains(gone, c.Replica) {
			return fmt.Errorf("%w, want that one of replicas %v has closed", err, gone)
		}
		next, err := h.rejoins(e, 1, gone...)
		if err == nil && when == "before" {
			err = e.Close()
		}
		if err == nil {
			err = h.works(next, 0)
		}
		if err == nil {
			err = e.Close()
		}
		if err == nil {
			err = h.works(next, 1)
		}
		return err
	})
}

// rejoinNobody has all replicas rejoin, nobody being gone, and again.
func (s *suite) rejoinNobody(t *testing.T) {
	s.replicas(t, []int{1, 2, 3, 5}, func(t *testing.T, n int) {
		h, eps := s.generations(t, n)
		h.all(t, eps, func(e transport.Endpoint) error {
			for generation := 1; generation <= 2; generation++ {
				next, err := h.rejoins(e, generation)
				if err == nil {
					err = h.works(next, 0)
				}
				if err == nil {
					err = e.Close()
				}
				if err == nil { // else the first to rejoin ends the others' work
					_, err = s.board.gather(fmt.Sprint("generation ", generation), e.Rank(), n, "")
				}
				if err != nil {
					return fmt.Errorf("generation %d: %w", generation, err)
				}
				e = next
			}
			return nil
		})
	})
}

// rejoinOneByOne has the last replica leave in each generation, until one is left.
func (s *suite) rejoinOneByOne(t *testing.T) {
	s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
		h, eps := s.generations(t, n)
		h.all(t, eps, func(e transport.Endpoint) error {
			for left := n; ; left-- {
				err := h.works(e, 0)
				if err == nil {
					_, err = s.board.gather(fmt.Sprint("generation ", n-left), e.Rank(), left, "")
				}
				if err != nil || left == 1 {
					return err
				}
				if e.Rank() == left-1 {
					return e.Close()
				}
				next, err := h.rejoins(e, n-left+1, left-1)
				if err != nil {
					return fmt.Errorf("generation %d: %w", n-left+1, err)
				}
				e = next
			}
		})
	})
}

// rejoinMeanwhile has one replica close while the others wait for it in Rejoin.
func (s *suite) rejoinMeanwhile(t *testing.T) {
	s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
		h, eps := s.generations(t, n)
		h.all(t, eps, func(e transport.Endpoint) error {
			if e.Rank() == n-1 {
				err := s.others("rejoins", n-1, n)
				<-e.Done() // by the first of them
				s.clock.Sleep(e, 10*time.Millisecond)
				return cmp.Or(err, e.Close())
			}
			s.board.post(key("rejoins", e.Rank()), "")
			next, err := h.rejoins(e, 1, n-1)
			if err == nil {
				err = h.works(next, 0)
			}
			return err
		})
	})
}

// rejoinGivesUp has one replica give up in Rejoin. The others go on without it.
func (s *suite) rejoinGivesUp(t *testing.T) {
	cases(t, "by", []string{"context", "context before", "close"}, func(t *testing.T, by string) {
		s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) { s.testRejoinGivesUp(t, n, by) })
	})
}

// testRejoinGivesUp has replica 0 rejoin when the last one has given up.
func (s *suite) testRejoinGivesUp(t *testing.T, n int, by string) {
	h, eps := s.generations(t, n)
	who := n - 1
	cause := errors.New("enough of it")
	ctx, cancel := context.WithCancelCause(background)
	defer cancel(nil)
	if by == "context before" {
		cancel(cause)
	}
	h.all(t, eps, func(e transport.Endpoint) error {
		if e.Rank() == who {
			defer s.board.post("gave up", "")
			_, err := e.(transport.Rejoiner).Rejoin(ctx, note(who, 1))
			switch {
			case by == "close":
				itself(t, who, err)
			case !errors.Is(err, cause):
				return fmt.Errorf("to rejoin: %w, want %w", err, cause)
			}
			return nil
		}
		if e.Rank() == 0 {
			if _, err := s.board.wait("gave up"); err != nil {
				return err
			}
		}
		next, err := h.rejoinsWithout(e, who)
		if err == nil {
			err = h.works(next, 0)
		}
		return err
	}, func() {
		e := at(eps, who)
		if e == nil || by == "context before" {
			return
		}
		await(t, func() { <-e.Done() })
		s.clock.Sleep(e, 10*time.Millisecond)
		if by == "context" {
			cancel(cause)
		} else if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// rejoinMidCall has one replica rejoin while all are in calls, itself among them. They fail, and as soon as they have
// nobody is at their buffers.
func (s *suite) rejoinMidCall(t *testing.T) {
	s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
		cases(t, "who", []int{0, n - 1}, func(t *testing.T, who int) {
			s.repeat(t, s.few(20), func(t *testing.T, _ int) { s.testRejoinMidCall(t, n, who) })
		})
	})
}

func (s *suite) testRejoinMidCall(t *testing.T, n, who int) {
	h, eps := s.generations(t, n)
	a := messy(s.brief(200_000), 0)
	h.all(t, eps, func(e transport.Endpoint) error {
		p := s.begin(t, a, e)
		if err := p.do(background, a.number(0)); err != nil {
			return err
		}
		s.board.post(key("under way", e.Rank()), "")
		var next transport.Endpoint
		var failed error // of who's Rejoin
		var first sync.WaitGroup
		if e.Rank() == who {
			first.Go(func() {
				if failed = s.others("under way", -1, n); failed == nil {
					next, failed = h.rejoinsBusy(e, 1)
				}
			})
		}
		err := p.untilFails(background, a, 1)
		aborted(who)(t, e.Rank(), err)
		if e.Rank() == who {
			first.Wait()
			err = failed
		} else {
			next, err = h.rejoinsBusy(e, 1)
		}
		if err == nil {
			err = goesOn(e, next)
		}
		if err == nil {
			err = h.works(next, 0)
		}
		return err
	})
}

// rejoinUnread has each replica send a message that nobody reads. The next endpoint has nothing of it.
func (s *suite) rejoinUnread(t *testing.T) {
	s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
		h, eps := s.generations(t, n)
		h.all(t, eps, func(e transport.Endpoint) error {
			var sends sync.WaitGroup
			sends.Go(func() {
				buf := made(5000, origin{e.Rank(), (e.Rank() + 1) % n, 0, 99})
				defer scribble(buf)
				err := e.Exchange(background, call(0, 0), []transport.Transfer{send((e.Rank()+1)%n, 0, buf)})
				if !errors.As(err, new(*transport.AbortError)) && !(err == nil && s.has(Buffers)) {
					t.Errorf("replica %d: a message that nobody reads: %v", e.Rank(), err)
				}
			})
			if s.has(Buffers) { // else it waits for the abort
				sends.Wait()
			}
			next, err := h.rejoinsBusy(e, 1)
			sends.Wait()
			if err == nil {
				err = goesOn(e, next)
			}
			if err == nil {
				err = h.works(next, 0)
			}
			return err
		})
	})
}
