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
	e := eps[0].(transport.PeerMemory)
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
		_, err := e.Meet(background, g.call(0), members, transport.Memory{})
		refused("Meet/"+name, err)
		_, _, err = e.Gather(background, g.call(0), members, nil, 0, nil)
		refused("Gather/"+name, err)
		refused("Share/"+name, e.Share(background, g.call(0), members, transport.Memory{}, 1, &worker{}))
		refused("Broadcast/"+name, e.Broadcast(background, g.call(0), members, 0, nil))
	}
	refused("Share of -1 pieces", e.Share(background, g.call(0), g.members, transport.Memory{}, -1, &worker{}))
	refused("Share by nobody", e.Share(background, g.call(0), g.members, transport.Memory{}, 1, nil))
	refused("Broadcast of too much", e.Broadcast(background, g.call(0), g.members, 0, make([]byte, limit+1)))
	for _, root := range []int{-1, 3} {
		refused(fmt.Sprintf("Broadcast from %d", root), e.Broadcast(background, g.call(0), g.members, root, nil))
	}
	for _, sizes := range [][2]int{{limit + 1, limit + 1}, {0, limit + 1}, {0, -1}, {3, 4}, {5, 4}, {1, 0}} {
		_, _, err := e.Gather(background, g.call(0), g.members, make([]byte, sizes[0]), sizes[1], combine{})
		refused(fmt.Sprintf("Gather of %d bytes, size %d", sizes[0], sizes[1]), err)
	}
	peers(t, eps, func(e transport.PeerMemory) error {
		if err := g.gathering(e, limit, 0, 0, nil); err != nil {
			return err
		}
		return g.meeting(e, 100, 1, 1)
	})
	// Members other than those that the group has.
	for rank, err := range each(t, eps, func(e transport.Endpoint) error {
		members := g.members
		if e.Rank() == 1 {
			members = []int{2, 1, 0}
		}
		_, err := e.(transport.PeerMemory).Meet(background, g.call(2), members, transport.Memory{})
		return err
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

// meetBusy calls what may not be called between Meet and Part, and Sync and Part without Meet.
func (s *suite) meetBusy(t *testing.T) {
	s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		g := everybody(n)
		peers(t, eps, func(e transport.PeerMemory) error {
			if e.Sync(background) == nil || e.Part(background) == nil {
				t.Error("Sync or Part succeed without Meet")
			}
			for seq := range 20 {
				if _, err := e.Meet(background, g.call(seq), g.members, transport.Memory{}); err != nil {
					return err
				}
				_, met := e.Meet(background, g.call(seq), g.members, transport.Memory{})
				_, _, gathered := e.Gather(background, g.call(seq), g.members, nil, 0, nil)
				shared := e.Share(background, g.call(seq), g.members, transport.Memory{}, 1, &worker{})
				broadcast := e.Broadcast(background, g.call(seq), g.members, 0, nil)
				for what, err := range map[string]error{"Meet": met, "Gather": gathered, "Share": shared, "Broadcast": broadcast, "Exchange": e.Exchange(background, call(0, 0), nil)} {
					if !errors.Is(err, transport.ErrBusy) {
						t.Errorf("%s between Meet and Part: %v", what, err)
					}
				}
				if err := e.Part(background); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// meetMismatch has one member in another call. All get an error, and nothing is touched.
func (s *suite) meetMismatch(t *testing.T) {
	for _, what := range []string{"meet", "gather", "share"} {
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
						e, me := ep.(transport.PeerMemory), ep.Rank()
						for seq := range before {
							if err := g.meeting(e, 100, seq, 0); err != nil {
								return err
							}
						}
						mine := good
						if me == odd {
							mine = bad
						}
						buf := made(1000, origin{me, 0, 0, 0})
						var err error
						switch what {
						case "gather":
							_, _, err = e.Gather(background, mine, g.members, buf[:100], 100, combine{})
						case "share":
							err = e.Share(background, mine, g.members, transport.Memory{In: buf, Out: buf, Scratch: buf}, 1, &worker{})
						default:
							var mems []transport.Memory
							if mems, err = e.Meet(background, mine, g.members, transport.Memory{In: buf, Out: buf, Scratch: buf}); err == nil {
								t.Errorf("replica %d: Meet succeeds", me)
								for _, m := range mems {
									scribble(m.Out)
								}
								return errors.Join(errors.New("met"), e.Part(background))
							}
						}
						if err := same(fmt.Sprintf("replica %d: buffer after the error", me), buf, made(1000, origin{me, 0, 0, 0})); err != nil {
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

// meetExchange has one replica wait in Exchange for those who wait for it at a meeting.
func (s *suite) meetExchange(t *testing.T) {
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
							_, err := e.(transport.PeerMemory).Meet(background, g.call(0), g.members, transport.Memory{In: buf, Out: buf})
							return err
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
			_, err := e.(transport.PeerMemory).Meet(background, g.call(0), g.members, transport.Memory{})
			return err
		}) {
			wantWhere(t, rank, err)
			if d := new(*transport.DeadlockError); !errors.As(err, d) || len((*d).Replicas) != n {
				t.Errorf("replica %d: no DeadlockError of %d in %v", rank, n, err)
			}
		}
	})
}

// openHouse holds meetings until one fails. At each point it calls hook. Buffers are spoiled as soon as they are the
// replica's own again.
func openHouse(ctx context.Context, e transport.PeerMemory, g group, mine transport.Memory, hook func(point, round int)) error {
	size := len(mine.In)
	for round := range enough {
		runtime.Gosched() // whoever breaks this off must get a processor
		hook(0, round)
		if round%5 == 4 {
			if _, _, err := e.Gather(ctx, g.call(round), g.members, mine.In[:min(100, size)], min(100, size), combine{}); err != nil {
				scribble(mine.In, mine.Out)
				return err
			}
			continue
		}
		mems, err := e.Meet(ctx, g.call(round), g.members, mine)
		if err != nil {
			scribble(mine.In, mine.Out)
			return err
		}
		hook(1, round)
		work := func() {
			for i := e.Rank(); i*meetPiece < size; i += len(mems) {
				share(mems, i, nil)
				if e.Err() != nil { // between pieces, not before the first: that Meet has succeeded is enough
					return
				}
			}
		}
		work()
		if round%2 == 0 {
			if err := e.Sync(ctx); err != nil {
				scribble(mine.In, mine.Out)
				if e.Part(ctx) == nil {
					return errors.New("no error of Part after one of Sync")
				}
				return err
			}
			for i := 0; i*meetPiece < size && e.Err() == nil; i++ {
				_ = append([]byte{}, mems[(e.Rank()+1)%len(mems)].Out[i*meetPiece:min(size, (i+1)*meetPiece)]...)
			}
		}
		hook(2, round)
		err = e.Part(ctx)
		scribble(mine.In, mine.Out)
		if err != nil {
			return err
		}
	}
	return nil
}

// meetBreak cancels, aborts or closes at each point of a meeting.
func (s *suite) meetBreak(t *testing.T) {
	cause := errors.New("no more meetings")
	for _, how := range []string{"cancel", "abort", "close"} {
		for point, where := range []string{"before", "inside", "part"} {
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
						e, mine := ep.(transport.PeerMemory), background
						hook := func(int, int) {}
						if e.Rank() == who {
							mine = ctx
							fired := false
							hook = func(at, round int) {
								if fired || at != point || round < when {
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
								if i%3 == 0 && (how != "close" || point == 0) { // an open meeting cannot be closed by who is in it
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
						if how == "close" && e.Rank() == who {
							return openHouseKept(mine, e, g, mems[who], hook)
						}
						return openHouse(mine, e, g, mems[e.Rank()], hook)
					})
					await(t, trigger.Wait)
					for r, m := range mems {
						for _, buf := range [][]byte{m.In, m.Out} {
							want := make([]byte, size)
							scribble(want)
							if err := same(fmt.Sprintf("%d: buffer of replica %d after the error", i, r), buf, want); err != nil {
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

// openHouseKept is openHouse for the replica that is closed: who closes it spoils the buffers.
func openHouseKept(ctx context.Context, e transport.PeerMemory, g group, mine transport.Memory, hook func(point, round int)) error {
	size := len(mine.In)
	for round := range enough {
		runtime.Gosched() // whoever breaks this off must get a processor
		hook(0, round)
		if round%5 == 4 {
			if _, _, err := e.Gather(ctx, g.call(round), g.members, make([]byte, min(100, size)), min(100, size), combine{}); err != nil {
				return err
			}
			continue
		}
		if _, err := e.Meet(ctx, g.call(round), g.members, mine); err != nil {
			return err
		}
		hook(1, round)
		if round%2 == 0 {
			if err := e.Sync(ctx); err != nil {
				_ = e.Part(ctx) // says the same
				return err
			}
		}
		hook(2, round)
		if err := e.Part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// meetMissing has one member never come, but close, abort or have its context end while the others have been waiting
// for long.
func (s *suite) meetMissing(t *testing.T) {
	cause := errors.New("never")
	for _, how := range []string{"abort", "close", "cancel"} {
		t.Run("how="+how, func(t *testing.T) {
			s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
				eps := s.connect(t, n)
				g := everybody(n)
				ctx, cancel := context.WithCancelCause(background)
				defer cancel(nil)
				errs := each(t, eps, func(ep transport.Endpoint) error {
					e := ep.(transport.PeerMemory)
					if e.Rank() > 0 {
						return openHouse(ctx, e, g, transport.Memory{In: make([]byte, 100), Out: make([]byte, 100)}, func(int, int) {})
					}
					if err := g.gathering(e, 100, 100, 0, nil); err == nil {
						t.Error("a Gather meets a Meet of another call")
					}
					return nil
				}, func() {})
				for rank, err := range errs[1:] {
					wantFailure(t, rank+1, err)
				}
				shut(t, eps)

				eps = s.connect(t, n)
				errs = each(t, eps, func(ep transport.Endpoint) error {
					e := ep.(transport.PeerMemory)
					if e.Rank() > 0 {
						_, err := e.Meet(ctx, g.call(0), g.members, transport.Memory{})
						return err
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
			_, _, err = e.(transport.PeerMemory).Gather(background, g.call(0), g.members, make([]byte, 100), 100, panics{})
			return err
		})
		for rank, err := range errs {
			if (err == nil) != (errs[0] == nil) {
				t.Errorf("replica %d: %v, replica 0: %v", rank, err, errs[0])
			}
		}
	})
}
