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

// The acts of meetings, each of all replicas.
var (
	inRounds = meeting("rounds", 2, 180, roundsPart)
	inPieces = meeting("pieces", 1, 60, piecesPart)
	inGather = meeting("gather", 0, 0, func(_ *role, e near, g group) part {
		mine := e.buf(100)
		return part{bufs: [][]byte{mine}, do: func(ctx context.Context, c transport.Call) error {
			_, _, err := e.Gather(ctx, c, g.members, mine, len(mine), combine{})
			return err
		}}
	})
	inBroadcast = meeting("broadcast", 0, 0, func(_ *role, e near, g group) part {
		buf := e.buf(8)
		return part{bufs: [][]byte{buf}, do: func(ctx context.Context, c transport.Call) error {
			return e.Broadcast(ctx, c, g.members, 0, buf)
		}}
	})
)

// meeting is an act of endpoints whose peers reach their memory. A call that fails may write none of its buffers.
func meeting(name string, points, tries int, begin func(r *role, e near, g group) part) act {
	a := act{name: name, number: everybody(1).call, points: points, tries: tries, warm: true}
	a.begin = func(r *role) part {
		p := begin(r, r.suite.near(r.endpoint), everybody(r.endpoint.Size()))
		p.out = p.bufs
		return p
	}
	return a
}

// laidOpen is memory of which piecesPart and roundsPart work on the inputs and outputs.
func laidOpen(e near, size int) (transport.Memory, [][]byte) {
	m := transport.Memory{In: e.buf(size), Out: e.buf(size)}
	return m, [][]byte{m.In, m.Out}
}

// piecesPart is a Share of one round. Its points: within a piece.
func piecesPart(r *role, e near, g group) part {
	const pieces = 15
	mine, bufs := laidOpen(e, pieces*meetPiece-1000)
	work := workFunc(func(all []transport.Memory, _, i int) {
		r.reach(1)
		share(all, i, nil)
	})
	return part{bufs: bufs, do: func(ctx context.Context, c transport.Call) error {
		return e.Share(ctx, c, g.members, mine, []int{pieces}, work)
	}}
}

// roundsPart is Shares of two or three rounds by turns, with a Gather now and then. Its points: within the first and
// within the last round. An idle one has no piece done, so that its memory is read and written by others alone.
func roundsPart(r *role, e near, g group) part {
	n := len(g.members)
	sizes := [...]int{100, 60000}
	mine, bufs := laidOpen(e, sizes[n%2])
	size := len(mine.In)
	last := 0
	work := workFunc(func(all []transport.Memory, round, i int) {
		if round == 0 {
			r.reach(1)
		}
		for k := 0; k*meetPiece < size && e.Err() == nil; k++ { // which is asked between parts
			switch {
			case round == 0 && k%n == i && !r.idle:
				share(all, k, nil)
			case round == 1:
				_ = slices.Clone(all[(i+1)%n].Out[k*meetPiece : min(size, (k+1)*meetPiece)])
			}
		}
		if round == last {
			r.reach(2)
		}
	})
	return part{bufs: bufs, do: func(ctx context.Context, c transport.Call) error {
		if c.Seq%5 == 0 {
			few := mine.In[:100]
			_, _, err := e.Gather(ctx, c, g.members, few, len(few), combine{})
			return err
		}
		rounds := []int{n, n, n}[c.Seq%2:]
		last = len(rounds) - 1
		return e.Share(ctx, c, g.members, mine, rounds, work)
	}}
}

// workFunc is a Worker that is a function; nil does nothing.
type workFunc func(all []transport.Memory, round, i int)

// Piece implements transport.Worker.
func (f workFunc) Piece(all []transport.Memory, round, i int) {
	if f != nil {
		f(all, round, i)
	}
}

// badArguments has calls refused for their form, and the endpoints good afterwards.
func (s *suite) badArguments(t *testing.T) {
	eps := s.connect(t, 3)
	g := everybody(3)
	limit := s.near(eps[0]).SmallLimit()
	if e := at(eps, 0); e != nil {
		s.testBadArguments(t, s.near(e), g, limit)
	}
	s.meet(t)
	s.peers(t, eps, func(e near) error {
		if err := g.gathering(e, limit, 0, 0, nil); err != nil {
			return err
		}
		return g.stepping(e, 100, 1, 1)
	})
}

func (s *suite) testBadArguments(t *testing.T, e near, g group, limit int) {
	refused := func(what string, err error) {
		t.Helper()
		if !errors.As(err, new(*transport.ArgumentError)) {
			t.Errorf("%s: got %v, want an ArgumentError", what, err)
		}
	}
	shared := func(members, rounds []int, w transport.Worker) error {
		return e.Share(background, g.call(0), members, transport.Memory{}, rounds, w)
	}
	nothing := workFunc(nil)
	for name, members := range map[string][]int{
		"nobody": nil, "without the caller": {1, 2}, "out of range": {0, 1, 3}, "negative": {-1, 0}, "twice": {0, 1, 0},
	} {
		_, _, err := e.Gather(background, g.call(0), members, nil, 0, nil)
		refused("Gather/"+name, err)
		refused("Share/"+name, shared(members, []int{1}, nothing))
		refused("rounds/"+name, shared(members, []int{0, 0}, nothing))
		refused("Broadcast/"+name, e.Broadcast(background, g.call(0), members, 0, nil))
	}
	refused("Share of -1 pieces", shared(g.members, []int{-1}, nothing))
	refused("Share of -1 pieces in round 1", shared(g.members, []int{3, -1}, nothing))
	refused("Share of 4 pieces in one of several rounds", shared(g.members, []int{3, 4}, nothing))
	refused("Share by nobody", shared(g.members, []int{1}, nil))
	refused("Broadcast of too much", e.Broadcast(background, g.call(0), g.members, 0, e.buf(limit+1)))
	for _, root := range []int{-1, 3} {
		refused(fmt.Sprintf("Broadcast from %d", root), e.Broadcast(background, g.call(0), g.members, root, nil))
	}
	for _, sizes := range [][2]int{{limit + 1, limit + 1}, {0, limit + 1}, {0, -1}, {3, 4}, {5, 4}, {1, 0}} {
		_, _, err := e.Gather(background, g.call(0), g.members, e.buf(sizes[0]), sizes[1], combine{})
		refused(fmt.Sprintf("Gather of %d bytes, size %d", sizes[0], sizes[1]), err)
	}
}

// shareBusy calls what may not be called by a Worker.
func (s *suite) shareBusy(t *testing.T) {
	s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
		s.peers(t, s.connect(t, n), func(e near) error {
			g := everybody(n)
			for seq := range 20 {
				work := workFunc(func([]transport.Memory, int, int) { busy(t, e, g, g.call(seq)) })
				rounds := [][]int{{n}, {n, n}}[seq%2]
				if err := e.Share(background, g.call(seq), g.members, transport.Memory{}, rounds, work); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// busy wants every call of an endpoint that is in one refused.
func busy(t testing.TB, e near, g group, c transport.Call) {
	_, _, gathered := e.Gather(background, c, g.members, nil, 0, nil)
	for what, err := range map[string]error{
		"Gather":    gathered,
		"Share":     e.Share(background, c, g.members, transport.Memory{}, []int{1}, workFunc(nil)),
		"rounds":    e.Share(background, c, g.members, transport.Memory{}, []int{1, 1}, workFunc(nil)),
		"Broadcast": e.Broadcast(background, c, g.members, 0, nil),
		"Exchange":  e.Exchange(background, call(0, 0), nil),
	} {
		if !errors.Is(err, transport.ErrBusy) {
			t.Errorf("%s during Share: %v", what, err)
		}
	}
}

// memoryElsewhere has one replica be elsewhere than at the meeting that the others are at.
func (s *suite) memoryElsewhere(t *testing.T) {
	backwards := meeting("members in another order", 0, 0, func(_ *role, e near, g group) part {
		slices.Reverse(g.members)
		return part{do: func(ctx context.Context, c transport.Call) error {
			return e.Share(ctx, c, g.members, transport.Memory{}, []int{1}, workFunc(nil))
		}}
	})
	var here []difference
	good := calling{inRounds, inRounds.number(1)}
	for _, kind := range []transport.Kind{transport.Send, transport.Recv} {
		there := calling{oneTransfer(kind, 1), good.call}
		var meets func(rank int) (first, unwritten bool)
		if kind == transport.Send && s.has(Buffers) { // it may end before the other one has looked at it
			meets = func(rank int) (first, unwritten bool) { return rank != 0, true }
		}
		here = append(here, difference{odd: 0, bad: there, want: deadlocked(disagreement), meets: meets})
		there.call.Method++
		there.name += " of another method"
		here = append(here, difference{odd: 0, bad: there, want: disagreement, meets: meets})
	}
	here = append(here, difference{odd: 0, bad: calling{inGather, inGather.number(100)}, want: failure},
		difference{odd: 1, bad: calling{backwards, good.call}, want: failure})
	cases(t, "in", here, func(t *testing.T, d difference) {
		s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
			d.n, d.good = n, good
			s.differ(t, d)
		})
	})
}

func (d difference) String() string { return d.bad.name }

// overlapping has each replica meet the next one first, in a circle.
func (s *suite) overlapping(t *testing.T) {
	s.replicas(t, []int{3, 8}, func(t *testing.T, n int) {
		play(t, s.connect(t, n), func(e transport.Endpoint) error {
			me := e.Rank()
			g := group{id: 10 + uint64(me), members: []int{me, (me + 1) % n}}
			return s.near(e).Share(background, g.call(0), g.members, transport.Memory{}, []int{2, 2}, workFunc(nil))
		}, func(t testing.TB, rank int, err error) {
			located(t, rank, err)
			if d := new(*transport.DeadlockError); !errors.As(err, d) || len((*d).Replicas) != n {
				t.Errorf("replica %d: no DeadlockError of %d in %v", rank, n, err)
			}
		})
	})
}

// combinerPanic is a Combiner that panics.
type combinerPanic struct{}

func (combinerPanic) Combine([]byte, [][]byte) { panic("no") }

// panics wants all to hear of a Worker that panics, and of a Combiner where one is called at all.
func (s *suite) panics(t *testing.T) {
	t.Run("Worker", func(t *testing.T) {
		s.testPanic(t, anyError, func(e near, g group) error {
			last := workFunc(func(_ []transport.Memory, _, i int) {
				if i == len(g.members)-1 {
					panic("no")
				}
			})
			return e.Share(background, g.call(0), g.members, transport.Memory{}, []int{len(g.members)}, last)
		})
	})
	t.Run("Combiner", func(t *testing.T) {
		s.testPanic(t, func(testing.TB, int, error) {}, func(e near, g group) error {
			_, _, err := e.Gather(background, g.call(0), g.members, e.buf(100), 100, combinerPanic{})
			return err
		})
	})
}

// anyError wants an error of any kind.
func anyError(t testing.TB, rank int, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("replica %d: no error", rank)
	}
}

// workerAborts has a Worker abort and return, in the first piece of a Share and in the last. No member may take the
// piece to be done.
func (s *suite) workerAborts(t *testing.T) {
	for _, rounds := range []func(n int) []int{
		func(int) []int { return []int{1} }, func(n int) []int { return []int{n} },
		func(n int) []int { return []int{n, 0} }, func(n int) []int { return []int{n, n} },
	} {
		for _, last := range []bool{false, true} {
			s.testPanic(t, anyError, func(e near, g group) error {
				rounds := rounds(len(g.members))
				round, piece := 0, 0
				if last {
					piece = rounds[0] - 1
					if len(rounds) > 1 && rounds[1] > 0 {
						round = 1
					}
				}
				return e.Share(background, g.call(0), g.members, transport.Memory{}, rounds,
					workFunc(func(_ []transport.Memory, t, i int) {
						if t == round && i == piece {
							e.Abort(errors.New("the piece cannot be done"))
						}
					}))
			})
		}
	}
}

// testPanic wants an error for all or for none.
func (s *suite) testPanic(t *testing.T, want outcome, do func(e near, g group) error) {
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		errs := each(t, eps, func(e transport.Endpoint) (err error) {
			defer func() {
				if recover() != nil {
					err = errors.New("panicked")
				}
			}()
			return do(s.near(e), everybody(n))
		})
		for rank, err := range byRank(eps, errs) {
			want(t, rank, err)
		}
		if failed := s.failed(t, n, eps, errs); slices.Contains(failed, true) && slices.Contains(failed, false) {
			t.Errorf("some have an error and some have none: %v by rank, here %v", failed, errs)
		}
	})
}

// broadcastElsewhere has replica 0 broadcast while the others wait in another call, for messages or at a meeting:
// before they come, after, or when it has closed. They get an error with both calls, and replica 0 one from Close.
func (s *suite) broadcastElsewhere(t *testing.T) {
	tries := s.few(20)
	if s.thin() {
		tries = 3 // each order once
	}
	cases(t, "wait", []act{inRounds, inPieces, inGather, inBroadcast, oneTransfer(transport.Recv, 0)},
		func(t *testing.T, wait act) {
			cases(t, "root closes", []string{"at once", "last"}, func(t *testing.T, closes string) {
				s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
					s.repeat(t, tries, func(t *testing.T, i int) {
						s.testBroadcastElsewhere(t, n, wait, closes == "last", i)
					})
				})
			})
		})
}

func (s *suite) testBroadcastElsewhere(t *testing.T, n int, wait act, last bool, try int) {
	eps := s.connect(t, n)
	good, bad := inRounds.number(3), inRounds.number(3)
	bad.Collective++
	play(t, eps, func(e transport.Endpoint) error {
		if e.Rank() > 0 {
			p := s.begin(t, wait, e)
			if try%2 == 1 {
				if _, err := s.board.wait("came"); err != nil {
					return err
				}
			}
			return p.do(background, bad)
		}
		p := s.begin(t, inBroadcast, e)
		if try%4 == 2 { // the others have long been waiting
			s.clock.Sleep(e, 10*time.Millisecond)
		}
		if err := p.do(background, good); err != nil {
			return err
		}
		s.board.post("came", "")
		for last && e.Err() == nil { // until the others have found out
			runtime.Gosched()
		}
		return e.Close()
	}, func(t testing.TB, rank int, err error) {
		var m *transport.MismatchError
		if !errors.As(err, &m) {
			t.Errorf("replica %d: no MismatchError in %v", rank, err)
			return
		}
		if m.Mine.Seq != good.Seq || m.Theirs.Seq != good.Seq ||
			m.Mine.Collective+m.Theirs.Collective != good.Collective+bad.Collective {
			t.Errorf("replica %d: %v has not both calls", rank, err)
		}
	})
	shut(t, eps)
}
