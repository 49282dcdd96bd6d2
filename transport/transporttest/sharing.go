package transporttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/transport"
)

// worker is a Worker that does what share does, and counts in the scratch of the first member.
type worker struct {
	tardy func() // or nil
	acc   []byte // room for a piece, or nil
}

// Piece implements transport.Worker.
func (w *worker) Piece(all []transport.Memory, _, i int) {
	if w.tardy != nil {
		w.tardy()
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
	defer e.borrowing()()
	pieces := (size + meetPiece - 1) / meetPiece
	mine := transport.Memory{In: e.made(size, origin{me, me, int(g.id), seq}), Out: e.buf(size), Scratch: e.buf(pieces)}
	defer scribble(mine.In, mine.Out, mine.Scratch)
	random := rand.New(rand.NewPCG(uint64(me), uint64(seq)))
	w := &worker{tardy: func() { e.tardy(random) }}
	if err := e.Share(background, g.call(seq), g.members, mine, []int{pieces}, w); err != nil {
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
		s.peers(t, eps, func(e near) error {
			random := rand.New(rand.NewPCG(uint64(e.Rank()), 7))
			for seq := range s.few(100) {
				e.tardy(random)
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
	defer e.borrowing()()
	buf := e.buf(size)
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
		limit := s.near(eps[0]).SmallLimit()
		s.peers(t, eps, func(e near) error {
			plan, own := rand.New(rand.NewPCG(uint64(n), 8)), rand.New(rand.NewPCG(uint64(e.Rank()), 9))
			seq := 0
			for _, size := range []int{0, 1, 8, 9, 100, limit} {
				for i := range s.few(400) {
					root := 0
					if plan.IntN(10) == 0 {
						root = plan.IntN(n)
					}
					e.tardy(own)
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
// comes after: more broadcasts, another operation, or Close. With Brief each field has one such member, another than
// the field before.
func (s *suite) broadcastMismatch(t *testing.T) {
	turn := 0
	cases(t, "field", fields, func(t *testing.T, f field) {
		turn++
		cases(t, "after", []string{"broadcasts", "gather", "close"}, func(t *testing.T, after string) {
			s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
				for odd := range min(n, 3) {
					if s.thin() && odd != turn%min(n, 3) {
						continue
					}
					s.testBroadcastMismatch(t, n, odd, f, after)
				}
			})
		})
	})
}

func (s *suite) testBroadcastMismatch(t *testing.T, n, odd int, f field, after string) {
	g := everybody(n)
	eps := s.connect(t, n)
	errs := each(t, eps, func(ep transport.Endpoint) error {
		e := s.near(ep)
		buf := e.buf(20)
		mine, root := g.call(3), 0
		if e.Rank() == odd {
			mine = f.of(mine)
			if f.name == "Root" && odd == n-1 { // two roots
				root = odd
			} else if f.name == "Root" {
				root = n - 1
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
	failed := s.failed(t, n, eps, errs)
	if !slices.Contains(failed, true) {
		t.Errorf("odd member %d: nobody gets an error", odd)
	}
	if after != "close" && f.name != "Group" && slices.Contains(failed, false) {
		t.Errorf("odd member %d: some get no error: %v by rank, here %v", odd, failed, errs)
	}
}

// broadcastUnheard has a member leave before it has taken a broadcast: whoever leaves last hears of it.
func (s *suite) broadcastUnheard(t *testing.T) {
	cases(t, "first", []int{0, 1}, func(t *testing.T, first int) {
		all(t, s.connect(t, 2), func(e transport.Endpoint) error {
			if e.Rank() == 0 {
				return s.unheardRoot(s.near(e), first == 0)
			}
			return s.unheardMember(t, s.near(e), first == 1)
		})
	})
}

// unheardRoot broadcasts three times, and leaves, or has the other one leave.
func (s *suite) unheardRoot(e near, first bool) error {
	g := everybody(2)
	for seq := range 3 {
		if err := e.Broadcast(background, g.call(seq), g.members, 0, []byte{1}); err != nil {
			return err
		}
	}
	s.board.post("sent", "")
	if first {
		if _, err := s.board.wait("taken"); err != nil {
			return err
		}
		if err := e.Close(); err != nil {
			return fmt.Errorf("the other one can still take it: %w", err)
		}
		s.board.post("left", "")
		return nil
	}
	if _, err := s.board.wait("left"); err != nil {
		return err
	}
	if err := e.Broadcast(background, g.call(3), g.members, 0, []byte{1}); err == nil {
		return errors.New("no error for a broadcast to one that has left")
	}
	return nil
}

// unheardMember knows the group, takes one broadcast of three, and leaves: it is the one to say so.
func (s *suite) unheardMember(t testing.TB, e near, first bool) error {
	g := everybody(2)
	if _, err := s.board.wait("sent"); err != nil {
		return err
	}
	if err := e.Broadcast(background, g.call(0), g.members, 0, []byte{0}); err != nil {
		return err
	}
	s.board.post("taken", "")
	if !first {
		if _, err := s.board.wait("left"); err != nil {
			return err
		}
	}
	unmatched(t, e.Close())
	if first {
		s.board.post("left", "")
	}
	return nil
}

// broadcastArguments has members that disagree on what is in no call: the length, and who is the root.
func (s *suite) broadcastArguments(t *testing.T) {
	for _, x := range []struct {
		name       string
		size, root [3]int
	}{
		{name: "longer", size: [3]int{4, 24, 4}},
		{name: "shorter", size: [3]int{20, 20, 10}},
		{name: "roots", size: [3]int{20, 20, 20}, root: [3]int{1, 1, 0}},
		{name: "two roots", size: [3]int{20, 20, 20}, root: [3]int{0, 1, 0}},
	} {
		t.Run(x.name, func(t *testing.T) {
			eps := s.connect(t, 3)
			g := everybody(3)
			play(t, eps, func(ep transport.Endpoint) error {
				e := s.near(ep)
				err := e.Broadcast(background, g.call(0), g.members, x.root[e.Rank()], e.buf(x.size[e.Rank()]))
				if err == nil {
					_, _, err = e.Gather(background, g.call(1), g.members, nil, 0, nil)
				}
				return err
			}, failure)
		})
	}
}

// unmatched checks the error of replica 1 that leaves without a broadcast of replica 0.
func unmatched(t testing.TB, err error) {
	t.Helper()
	var u *transport.UnmatchedError
	if !errors.As(err, &u) || u.Replica != 1 || u.Peer != 0 || u.Theirs.Seq != call(1, 0).Seq {
		t.Errorf("got %v, want an UnmatchedError of the second call", err)
	}
}
