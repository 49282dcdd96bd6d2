package transporttest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// worker is a Worker that does what share does, and counts in the scratch of the first member.
type worker struct {
	before func(i int)
	random *rand.Rand // or nil: sleeps now and then
	acc    []byte     // room for a piece, or nil
}

// Piece implements transport.Worker.
func (w *worker) Piece(all []transport.Memory, _, i int) {
	if w.before != nil {
		w.before(i)
	}
	if w.random != nil {
		tardy(w.random)
	}
	all[0].Scratch[i]++
	share(all, i, w.acc)
}

// share works on a piece of the index range, which may be past its end: from all inputs to all outputs. acc is room
// for it, or nil.
func share(mems []transport.Memory, piece int, acc []byte) {
	lo := min(piece*meetPiece, len(mems[0].In))
	hi := min(lo+meetPiece, len(mems[0].In))
	acc = append(acc[:0], mems[0].In[lo:hi]...)
	for _, m := range mems[1:] {
		op(acc, acc, m.In[lo:hi])
	}
	for _, m := range mems {
		copy(m.Out[lo:hi], acc)
	}
}

// sharing carries out one Share, checks it, and spoils its buffers.
func (g group) sharing(e near, size, seq int) error {
	me := e.Rank()
	pieces := (size + meetPiece - 1) / meetPiece
	mine := transport.Memory{In: made(size, origin{me, me, int(g.id), seq}), Out: make([]byte, size),
		Scratch: make([]byte, pieces)}
	defer scribble(mine.In, mine.Out, mine.Scratch)
	random := rand.New(rand.NewPCG(uint64(me), uint64(seq)))
	if err := e.Share(background, g.call(seq), g.members, mine, []int{pieces}, &worker{random: random}); err != nil {
		return err
	}
	if me == g.members[0] {
		if err := once(mine.Scratch); err != nil {
			return err
		}
	}
	if err := same("input after Share", mine.In, made(size, origin{me, me, int(g.id), seq})); err != nil {
		return err
	}
	return same("output after Share", mine.Out, g.folded(size, seq))
}

func (s *suite) share(t *testing.T) {
	s.sizes(t, []int{1, 2, 3, 5, 8}, []int{0, 1, 5000, 60000}, func(t *testing.T, n, size int) {
		eps := s.connect(t, n)
		g := everybody(n)
		peers(t, eps, func(e near) error {
			random := rand.New(rand.NewPCG(uint64(e.Rank()), 7))
			for seq := range s.few(100) {
				tardy(random)
				if err := g.sharing(e, size, seq); err != nil {
					return fmt.Errorf("share %d: %w", seq, err)
				}
			}
			return nil
		})
	})
}

// broadcasting carries out one Broadcast, checks it, and spoils its buffer.
func (g group) broadcasting(e near, size, seq, root int) error {
	me, from := e.Rank(), g.members[root]
	buf := make([]byte, size)
	want := made(size, origin{from, from, int(g.id), seq})
	if me == from {
		copy(buf, want)
	}
	defer scribble(buf)
	if err := e.Broadcast(background, g.call(seq), g.members, root, buf); err != nil {
		return err
	}
	return same("broadcast", buf, want)
}

// broadcast has roots run ahead, change, and wait for those who are slow.
func (s *suite) broadcast(t *testing.T) {
	s.replicas(t, []int{1, 2, 3, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		g := everybody(n)
		limit := eps[0].(near).SmallLimit()
		peers(t, eps, func(e near) error {
			plan, own := rand.New(rand.NewPCG(uint64(n), 8)), rand.New(rand.NewPCG(uint64(e.Rank()), 9))
			seq := 0
			for _, size := range []int{0, 1, 8, 9, 100, limit} {
				for i := range s.few(400) {
					root := 0
					if plan.IntN(10) == 0 {
						root = plan.IntN(n)
					}
					tardy(own)
					if err := g.broadcasting(e, size, seq, root); err != nil {
						return fmt.Errorf("broadcast %d of %d bytes from %d: %w", i, size, root, err)
					}
					seq++
				}
			}
			return nil
		})
	})
}

// broadcastMismatch has one member in another call. Somebody gets a mismatch, and nobody is left waiting, whatever
// comes after: more broadcasts, another operation, or Close.
func (s *suite) broadcastMismatch(t *testing.T) {
	for _, f := range fields {
		for _, after := range []string{"broadcasts", "gather", "close"} {
			t.Run("field="+f.name+"/after="+after, func(t *testing.T) {
				s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
					for odd := range min(n, 3) {
						eps := s.connect(t, n)
						g := everybody(n)
						errs := each(t, eps, func(ep transport.Endpoint) error {
							e := ep.(near)
							buf := make([]byte, 20)
							mine, root := g.call(3), 0
							if e.Rank() == odd {
								if f.change(&mine); f.name == "Root" {
									root = n - 1
									if odd == n-1 { // two roots
										root = odd
									}
								}
							}
							err := e.Broadcast(background, mine, g.members, root, buf)
							for seq := 4; err == nil && seq < 300 && after == "broadcasts"; seq++ {
								err = e.Broadcast(background, g.call(seq), g.members, 1, buf)
							}
							if err == nil && after != "close" {
								_, _, err = e.Gather(background, g.call(1000), g.members, nil, 0, nil)
							}
							return errors.Join(err, e.Close())
						})
						failed := false
						for _, err := range errs {
							failed = failed || err != nil
						}
						if !failed {
							t.Errorf("odd member %d: nobody gets an error", odd)
						}
						if after != "close" && f.name != "Group" {
							for rank, err := range errs {
								if err == nil {
									t.Errorf("odd member %d: replica %d gets no error", odd, rank)
								}
							}
						}
					}
				})
			})
		}
	}
}

// broadcastUnheard has a member leave before it has taken a broadcast: whoever leaves last hears of it.
func (s *suite) broadcastUnheard(t *testing.T) {
	for _, first := range []int{0, 1} {
		t.Run(fmt.Sprintf("first=%d", first), func(t *testing.T) {
			eps := s.connect(t, 2)
			g := everybody(2)
			root := eps[0].(near)
			for seq := range 3 {
				if err := root.Broadcast(background, g.call(seq), g.members, 0, []byte{1}); err != nil {
					t.Fatal(err)
				}
			}
			// The other one knows the group, and has taken one broadcast of three.
			if err := eps[1].(near).Broadcast(background, g.call(0), g.members, 0, []byte{0}); err != nil {
				t.Fatal(err)
			}
			if first == 1 { // and then no more: it is the one to say so
				unmatched(t, eps[1].Close())
				if err := root.Broadcast(background, g.call(3), g.members, 0, []byte{1}); err == nil {
					t.Error("no error for a broadcast to one that has left")
				}
				return
			}
			if err := root.Close(); err != nil {
				t.Errorf("the others can still take it: %v", err)
			}
			unmatched(t, eps[1].Close())
		})
	}
}

// broadcastArguments has members that disagree on what is in no call: the length, and who is the root.
func (s *suite) broadcastArguments(t *testing.T) {
	for name, x := range map[string]struct{ size, root [3]int }{
		"longer":    {size: [3]int{4, 24, 4}},
		"shorter":   {size: [3]int{20, 20, 10}},
		"roots":     {size: [3]int{20, 20, 20}, root: [3]int{1, 1, 0}},
		"two roots": {size: [3]int{20, 20, 20}, root: [3]int{0, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			eps := s.connect(t, 3)
			g := everybody(3)
			errs := each(t, eps, func(ep transport.Endpoint) error {
				e := ep.(near)
				err := e.Broadcast(background, g.call(0), g.members, x.root[e.Rank()], make([]byte, x.size[e.Rank()]))
				if err == nil {
					_, _, err = e.Gather(background, g.call(1), g.members, nil, 0, nil)
				}
				return err
			})
			for rank, err := range errs {
				wantFailure(t, rank, err)
			}
		})
	}
}

// unmatched checks the error of replica 1 that leaves without a broadcast of replica 0.
func unmatched(t *testing.T, err error) {
	t.Helper()
	var u *transport.UnmatchedError
	if !errors.As(err, &u) || u.Replica != 1 || u.Peer != 0 || u.Theirs.Seq != call(1, 0).Seq {
		t.Errorf("got %v, want an UnmatchedError of the second call", err)
	}
}

// workerPanics wants all to hear of a Worker that panics.
func (s *suite) workerPanics(t *testing.T) {
	s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		g := everybody(n)
		errs := each(t, eps, func(ep transport.Endpoint) (err error) {
			defer func() {
				if recover() != nil {
					err = errors.New("panicked")
				}
			}()
			mine := transport.Memory{Scratch: make([]byte, n)}
			return ep.(near).Share(background, g.call(0), g.members, mine, []int{n}, &worker{before: func(i int) {
				if i == n-1 {
					panic("no")
				}
			}})
		})
		for rank, err := range errs {
			if err == nil {
				t.Errorf("replica %d hears of nothing", rank)
			}
		}
	})
}

// shareBreak cancels, aborts or closes in the midst of Shares. Buffers are spoilt as soon as Share has returned.
func (s *suite) shareBreak(t *testing.T) {
	cause := errors.New("no more work")
	for _, how := range []string{"cancel", "abort", "close"} {
		t.Run("how="+how, func(t *testing.T) {
			for i := range s.few(60) {
				n, size := 2+i%4, 60000
				who := i % n
				eps := s.connect(t, n)
				g := everybody(n)
				ctx, cancel := context.WithCancelCause(background)
				middle := make(chan bool)
				errs := each(t, eps, func(ep transport.Endpoint) error {
					e, mine := ep.(near), background
					if e.Rank() == who {
						mine = ctx
					}
					mem := transport.Memory{In: make([]byte, size), Out: make([]byte, size), Scratch: make([]byte, 15)}
					bufs := [][]byte{mem.In, mem.Out, mem.Scratch}
					for seq := 0; ; seq++ {
						runtime.Gosched() // whoever breaks this off must get a processor
						if e.Rank() == who && seq == i%7 {
							close(middle)
						}
						err := e.Share(mine, g.call(seq), g.members, mem, []int{15}, &worker{})
						scribble(bufs...)
						if err == nil {
							continue
						}
						time.Sleep(100 * time.Microsecond)
						for k, b := range bufs {
							want := make([]byte, len(b))
							scribble(want)
							if err := same(fmt.Sprintf("%d: buffer %d of replica %d after the error", i, k, e.Rank()),
								b, want); err != nil {
								t.Error(err)
							}
						}
						return err
					}
				}, func() {
					<-middle
					for range 3 * i {
						runtime.Gosched()
					}
					switch how {
					case "cancel":
						cancel(cause)
					case "abort":
						eps[who].Abort(cause)
					default:
						_ = eps[who].Close() // says perhaps what the others say
					}
				})
				s.wantBroken(t, errs, how, who, cause)
				cancel(nil)
				shut(t, eps)
			}
		})
	}
}
