package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// badArguments has calls refused for their form, and the endpoints good afterwards.
func (s *suite) badArguments(t *testing.T) {
	eps := s.connect(t, 3)
	g := everybody(3)
	e := eps[0].(near)
	limit := e.SmallLimit()
	refused := func(what string, err error) {
		t.Helper()
		var bad *transport.ArgumentError
		if !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want an ArgumentError", what, err)
		}
	}
	for name, members := range map[string][]int{
		"nobody": nil, "without the caller": {1, 2}, "out of range": {0, 1, 3}, "negative": {-1, 0}, "twice": {0, 1, 0},
	} {
		_, _, err := e.Gather(background, g.call(0), members, nil, 0, nil)
		refused("Gather/"+name, err)
		refused("Share/"+name, e.Share(background, g.call(0), members, transport.Memory{}, []int{1}, &worker{}))
		refused("rounds/"+name, e.Share(background, g.call(0), members, transport.Memory{}, []int{0, 0}, &worker{}))
		refused("Broadcast/"+name, e.Broadcast(background, g.call(0), members, 0, nil))
	}
	refused("Share of -1 pieces", e.Share(background, g.call(0), g.members, transport.Memory{}, []int{-1}, &worker{}))
	refused("Share of -1 pieces in round 1",
		e.Share(background, g.call(0), g.members, transport.Memory{}, []int{3, -1}, &worker{}))
	refused("Share of 4 pieces in one of several rounds",
		e.Share(background, g.call(0), g.members, transport.Memory{}, []int{3, 4}, &worker{}))
	refused("Share by nobody", e.Share(background, g.call(0), g.members, transport.Memory{}, []int{1}, nil))
	refused("Broadcast of too much", e.Broadcast(background, g.call(0), g.members, 0, make([]byte, limit+1)))
	for _, root := range []int{-1, 3} {
		refused(fmt.Sprintf("Broadcast from %d", root), e.Broadcast(background, g.call(0), g.members, root, nil))
	}
	for _, sizes := range [][2]int{{limit + 1, limit + 1}, {0, limit + 1}, {0, -1}, {3, 4}, {5, 4}, {1, 0}} {
		_, _, err := e.Gather(background, g.call(0), g.members, make([]byte, sizes[0]), sizes[1], combine{})
		refused(fmt.Sprintf("Gather of %d bytes, size %d", sizes[0], sizes[1]), err)
	}
	peers(t, eps, func(e near) error {
		if err := g.gathering(e, limit, 0, 0, nil); err != nil {
			return err
		}
		return g.stepping(e, 100, 1, 1)
	})
	// Members other than those that the group has.
	for rank, err := range each(t, eps, func(e transport.Endpoint) error {
		members := g.members
		if e.Rank() == 1 {
			members = []int{2, 1, 0}
		}
		return e.(near).Share(background, g.call(2), members, transport.Memory{}, []int{1}, workFunc(nil))
	}) {
		wantFailure(t, rank, err)
	}
}

// wantFailure checks that there is an error of the right form.
func wantFailure(t testing.TB, rank int, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("replica %d: no error", rank)
		return
	}
	wantWhere(t, rank, err)
}

// workFunc is a Worker that is a function; nil does nothing.
type workFunc func(all []transport.Memory, round, i int)

// Piece implements transport.Worker.
func (f workFunc) Piece(all []transport.Memory, round, i int) {
	if f != nil {
		f(all, round, i)
	}
}

// shareBusy calls what may not be called by a Worker.
func (s *suite) shareBusy(t *testing.T) {
	s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		g := everybody(n)
		peers(t, eps, func(e near) error {
			for seq := range 20 {
				tried := workFunc(func([]transport.Memory, int, int) {
					_, _, gathered := e.Gather(background, g.call(seq), g.members, nil, 0, nil)
					for what, err := range map[string]error{
						"Gather": gathered,
						"Share": e.Share(background, g.call(seq), g.members, transport.Memory{}, []int{1},
							&worker{}),
						"rounds": e.Share(background, g.call(seq), g.members, transport.Memory{}, []int{1, 1},
							&worker{}),
						"Broadcast": e.Broadcast(background, g.call(seq), g.members, 0, nil),
						"Exchange":  e.Exchange(background, call(0, 0), nil),
					} {
						if !errors.Is(err, transport.ErrBusy) {
							t.Errorf("%s during Share: %v", what, err)
						}
					}
				})
				rounds := [][]int{{n}, {n, n}}[seq%2]
				if err := e.Share(background, g.call(seq), g.members, transport.Memory{}, rounds, tried); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// memoryMismatch has one member in another call. All get an error, and nothing is touched.
func (s *suite) memoryMismatch(t *testing.T) {
	for _, what := range []string{"rounds", "gather", "share"} {
		for _, f := range fields {
			t.Run("op="+what+"/field="+f.name, func(t *testing.T) {
				s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
					eps := s.connect(t, n)
					g := everybody(n)
					const odd, before = 1, 3
					good := g.call(before)
					bad := good
					f.change(&bad)
					errs := each(t, eps, func(ep transport.Endpoint) error {
						e, me := ep.(near), ep.Rank()
						for seq := range before {
							if err := g.stepping(e, 100, seq, 0); err != nil {
								return err
							}
						}
						mine := good
						if me == odd {
							mine = bad
						}
						buf := made(1000, origin{me, 0, 0, 0})
						spoils := workFunc(func(all []transport.Memory, _, _ int) {
							t.Errorf("replica %d: Share begins", me)
							for _, m := range all {
								scribble(m.Out)
							}
						})
						var err error
						switch what {
						case "gather":
							_, _, err = e.Gather(background, mine, g.members, buf[:100], 100, combine{})
						case "share":
							err = e.Share(background, mine, g.members,
								transport.Memory{In: buf, Out: buf, Scratch: buf}, []int{1}, &worker{})
						default:
							err = e.Share(background, mine, g.members,
								transport.Memory{In: buf, Out: buf, Scratch: buf}, []int{n, n}, spoils)
						}
						if err := same(fmt.Sprintf("replica %d: buffer after the error", me), buf,
							made(1000, origin{me, 0, 0, 0})); err != nil {
							t.Error(err)
						}
						scribble(buf)
						return err
					})
					for rank, err := range errs {
						var d *transport.DeadlockError
						if f.name == "Group" && errors.As(err, &d) {
							continue // they wait for each other at different places
						}
						wantMismatch(t, rank, err, good, bad, 0, 0)
						wantWhere(t, rank, err)
					}
				})
			})
		}
	}
}

// memoryExchange has one replica wait in Exchange for those who wait for it at a meeting.
func (s *suite) memoryExchange(t *testing.T) {
	for _, kind := range []transport.Kind{transport.Send, transport.Recv} {
		for _, other := range []bool{false, true} {
			t.Run(fmt.Sprintf("kind=%v/other=%v", kind, other), func(t *testing.T) {
				s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
					eps := s.connect(t, n)
					g := everybody(n)
					for rank, err := range each(t, eps, func(e transport.Endpoint) error {
						buf := make([]byte, 1000)
						defer scribble(buf)
						if e.Rank() > 0 {
							return e.(near).Share(background, g.call(0), g.members, transport.Memory{In: buf, Out: buf},
								[]int{n, n}, workFunc(nil))
						}
						c := g.call(0)
						if other {
							c.Method++
						}
						return e.Exchange(background, c, []transport.Transfer{{Peer: 1, Kind: kind, Buf: buf}})
					}) {
						wantWhere(t, rank, err)
						var m *transport.MismatchError
						var d *transport.DeadlockError
						switch {
						case errors.As(err, &m):
						case errors.As(err, &d) && !other:
						default:
							t.Errorf("replica %d: %v", rank, err)
						}
					}
				})
			})
		}
	}
}

// overlapping has each replica meet the next one first, in a circle.
func (s *suite) overlapping(t *testing.T) {
	s.replicas(t, []int{3, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		for rank, err := range each(t, eps, func(e transport.Endpoint) error {
			me := e.Rank()
			g := group{id: 10 + uint64(me), members: []int{me, (me + 1) % n}}
			return e.(near).Share(background, g.call(0), g.members, transport.Memory{}, []int{2, 2}, workFunc(nil))
		}) {
			wantWhere(t, rank, err)
			if d := new(*transport.DeadlockError); !errors.As(err, d) || len((*d).Replicas) != n {
				t.Errorf("replica %d: no DeadlockError of %d in %v", rank, n, err)
			}
		}
	})
}

// openHouse has Shares of several rounds until one fails. At each point it calls hook: before a Share, in its first
// round, and in its last. Buffers are spoiled as soon as they are the replica's own again, but of a replica that keeps
// its buffers.
func openHouse(ctx context.Context, e near, g group, mine transport.Memory, hook func(point, seq int),
	keeps bool) error {
	size, n := len(mine.In), len(g.members)
	board := min(100, size)
	for seq := 0; ; seq++ {
		runtime.Gosched() // whoever breaks this off must get a processor
		hook(0, seq)
		var err error
		if seq%5 == 4 {
			_, _, err = e.Gather(ctx, g.call(seq), g.members, make([]byte, board), board, combine{})
		} else {
			rounds := []int{n, n, n}[seq%2:]
			err = e.Share(ctx, g.call(seq), g.members, mine, rounds,
				workFunc(func(all []transport.Memory, round, i int) {
					if round == 0 {
						hook(1, seq)
						for k := i; k*meetPiece < size && !keeps; k += n {
							share(all, k, nil)
							if e.Err() != nil { // between parts, not before the first: that there is a piece is enough
								return
							}
						}
					}
					if round == 1 {
						for k := 0; k*meetPiece < size && e.Err() == nil; k++ {
							_ = append([]byte{}, all[(i+1)%n].Out[k*meetPiece:min(size, (k+1)*meetPiece)]...)
						}
					}
					if round == len(rounds)-1 {
						hook(2, seq)
					}
				}))
		}
		if !keeps {
			scribble(mine.In, mine.Out)
		}
		if err != nil {
			return err
		}
	}
}

// roundsBreak cancels, aborts or closes at each point of a meeting.
func (s *suite) roundsBreak(t *testing.T) {
	cause := errors.New("no more meetings")
	for _, how := range []string{"cancel", "abort", "close"} {
		for point, where := range []string{"before", "first", "last"} {
			t.Run("how="+how+"/point="+where, func(t *testing.T) {
				for i := range s.few(60) {
					n, size, when := 2+i%4, []int{100, 60000}[i%2], i%11
					who := i % n
					eps := s.connect(t, n)
					g := everybody(n)
					ctx, cancel := context.WithCancelCause(background)
					mems := make([]transport.Memory, n)
					for r := range mems {
						mems[r] = transport.Memory{In: make([]byte, size), Out: make([]byte, size)}
					}
					var trigger sync.WaitGroup
					errs := each(t, eps, func(ep transport.Endpoint) error {
						e, mine := ep.(near), background
						hook := func(int, int) {}
						if e.Rank() == who {
							mine = ctx
							fired := false
							hook = func(at, seq int) {
								if fired || at != point || seq < when {
									return
								}
								fired = true
								act := func() {
									switch how {
									case "cancel":
										cancel(cause)
									case "abort":
										e.Abort(cause)
									default:
										if err := e.Close(); err != nil {
											t.Error(err)
										}
										// Not a moment later is anybody at these buffers.
										scribble(mems[who].In, mems[who].Out)
									}
								}
								// a Share cannot be closed by its Worker
								if i%3 == 0 && (how != "close" || point == 0) {
									act()
									return
								}
								trigger.Go(func() {
									for range i {
										runtime.Gosched()
									}
									act()
								})
							}
						}
						keeps := how == "close" && e.Rank() == who // who closes it spoils the buffers
						return openHouse(mine, e, g, mems[e.Rank()], hook, keeps)
					})
					await(t, trigger.Wait)
					for r, m := range mems {
						for _, buf := range [][]byte{m.In, m.Out} {
							want := make([]byte, size)
							scribble(want)
							if err := same(fmt.Sprintf("%d: buffer of replica %d after the error", i, r), buf,
								want); err != nil {
								t.Error(err)
							}
						}
					}
					s.wantBroken(t, errs, how, who, cause)
					cancel(nil)
					shut(t, eps)
				}
			})
		}
	}
}

// wantBroken checks the errors of replicas of which one was closed, aborted or cancelled.
func (s *suite) wantBroken(t testing.TB, errs []error, how string, who int, cause error) {
	t.Helper()
	for rank, err := range errs {
		if how == "close" {
			wantClosed(t, rank, err, who)
		} else {
			s.wantCause(t, rank, err, rank == who, cause)
			wantFailure(t, rank, err)
		}
	}
}

// memoryMissing has one member never come, but close, abort or have its context end while the others have been waiting
// for long.
func (s *suite) memoryMissing(t *testing.T) {
	cause := errors.New("never")
	for _, how := range []string{"abort", "close", "cancel"} {
		t.Run("how="+how, func(t *testing.T) {
			s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
				eps := s.connect(t, n)
				g := everybody(n)
				ctx, cancel := context.WithCancelCause(background)
				defer cancel(nil)
				errs := each(t, eps, func(ep transport.Endpoint) error {
					e := ep.(near)
					if e.Rank() > 0 {
						return openHouse(ctx, e, g, transport.Memory{In: make([]byte, 100), Out: make([]byte, 100)},
							func(int, int) {}, false)
					}
					if err := g.gathering(e, 100, 100, 0, nil); err == nil {
						t.Error("a Gather meets a Share of another call")
					}
					return nil
				}, func() {})
				for rank, err := range errs[1:] {
					wantFailure(t, rank+1, err)
				}
				shut(t, eps)

				eps = s.connect(t, n)
				errs = each(t, eps, func(ep transport.Endpoint) error {
					e := ep.(near)
					if e.Rank() > 0 {
						return e.Share(ctx, g.call(0), g.members, transport.Memory{}, []int{n, n}, workFunc(nil))
					}
					time.Sleep(5 * time.Millisecond)
					switch how {
					case "abort":
						e.Abort(cause)
					case "cancel":
						cancel(cause)
					default:
						return e.Close()
					}
					return nil
				})
				for rank, err := range errs[1:] {
					if how == "close" {
						wantClosed(t, rank+1, err, 0)
					} else {
						s.wantCause(t, rank+1, err, how == "cancel", cause)
					}
					wantWhere(t, rank+1, err)
				}
			})
		})
	}
}

// panics is a Combiner that does.
type panics struct{}

func (panics) Combine([]byte, [][]byte) { panic("no") }

// combinerPanics wants the others to hear of it, where a Combiner is called at all.
func (s *suite) combinerPanics(t *testing.T) {
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		g := everybody(n)
		errs := each(t, eps, func(e transport.Endpoint) (err error) {
			defer func() {
				if recover() != nil {
					err = errors.New("panicked")
				}
			}()
			_, _, err = e.(near).Gather(background, g.call(0), g.members, make([]byte, 100), 100, panics{})
			return err
		})
		for rank, err := range errs {
			if (err == nil) != (errs[0] == nil) {
				t.Errorf("replica %d: %v, replica 0: %v", rank, err, errs[0])
			}
		}
	})
}
