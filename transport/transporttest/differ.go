package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gogcl.dev/transport"
)

// field changes a call in one field.
type field struct {
	name   string
	change func(c *transport.Call)
}

func (f field) String() string { return f.name }

// of returns the call, changed.
func (f field) of(c transport.Call) transport.Call {
	f.change(&c)
	return c
}

var fields = []field{
	{"Group", func(c *transport.Call) { c.Group ^= 1 << 63 }},
	{"Seq", func(c *transport.Call) { c.Seq++ }},
	{"Count", func(c *transport.Call) { c.Count ^= 1 << 32 }},
	{"Digest", func(c *transport.Call) { c.Digest ^= 1 }},
	{"Root", func(c *transport.Call) { c.Root ^= 1 << 31 }},
	{"Round", func(c *transport.Call) { c.Round ^= 1 << 31 }},
	{"Collective", func(c *transport.Call) { c.Collective ^= 1 << 7 }},
	{"Operator", func(c *transport.Call) { c.Operator ^= 1 << 7 }},
	{"DType", func(c *transport.Call) { c.DType ^= 1 << 7 }},
	{"Method", func(c *transport.Call) { c.Method ^= 1 << 7 }},
}

// calling is what a replica is in.
type calling struct {
	act
	call transport.Call
}

// difference is a scene in which one of n replicas is in something else than the others.
type difference struct {
	n, odd    int
	good, bad calling
	want      outcome
	// meets says of a replica whether it is sure to hear of the difference in its first call, and whether nothing may
	// be written of it. Nil: both, for all.
	meets func(rank int) (first, unwritten bool)
}

// differ plays the scene. Where sends are buffered, those who find nothing go on.
func (s *suite) differ(t *testing.T, d difference) {
	t.Helper()
	eps := s.connect(t, d.n)
	s.meet(t)
	play(t, eps, func(e transport.Endpoint) error {
		if d.good.warm {
			p := s.begin(t, d.good.act, e)
			if _, err := s.warmUp(d.good.act, p, e); err != nil {
				return err
			}
			scribble(p.bufs...)
		}
		mine := d.good
		if e.Rank() == d.odd {
			mine = d.bad
		}
		return s.testDiffer(t, d, mine, e)
	}, d.want)
	shut(t, eps)
}

func (s *suite) testDiffer(t testing.TB, d difference, mine calling, e transport.Endpoint) error {
	first, unwritten := true, true
	if d.meets != nil {
		first, unwritten = d.meets(e.Rank())
	}
	p := s.begin(t, mine.act, e)
	defer scribble(p.bufs...)
	var before [][]byte
	for _, b := range p.out {
		before = append(before, slices.Clone(fill(b, origin{9, 9, 9, 9})))
	}
	for round := uint64(0); ; round++ {
		c := mine.call
		c.Seq += round
		err := p.do(background, c)
		if err == nil {
			continue
		}
		if first && round > 0 {
			t.Errorf("replica %d: the call with the difference succeeds", e.Rank())
		}
		for i, b := range p.out {
			if !unwritten || round > 0 {
				break
			}
			if err := same(fmt.Sprintf("replica %d: memory after the error", e.Rank()), b, before[i]); err != nil {
				t.Error(err)
			}
		}
		return err
	}
}

// kinds are those of receives.
var kinds = []transport.Kind{transport.Recv, transport.RecvFold}

// callMismatch has one replica of a ring in another call. All get an error with both calls, and nobody writes what
// comes from the other camp.
func (s *suite) callMismatch(t *testing.T) {
	step := 1
	if s.thin() {
		step = 2 // one of the sizes for each number of replicas
	}
	cases(t, "kind", kinds, func(t *testing.T, kind transport.Kind) {
		cases(t, "field", fields, func(t *testing.T, f field) {
			s.everyNth(t, step, []int{2, 3, 5, 8}, []int{0, 100}, func(t *testing.T, n, size int) {
				a := around(kind, size, size)
				good, bad := calling{a, call(0, 0)}, calling{a, f.of(call(0, 0))}
				s.differ(t, difference{n: n, odd: 1, good: good, bad: bad, want: mismatch(good.call, bad.call),
					meets: s.neighbours(n, true)})
			})
		})
	})
}

// lengthMismatch has one replica send more or less than the next one expects.
func (s *suite) lengthMismatch(t *testing.T) {
	cases(t, "kind", kinds, func(t *testing.T, kind transport.Kind) {
		cases(t, "sizes", [][2]int{{100, 101}, {100, 99}, {0, 1}, {1, 0}, {65536, 131072}},
			func(t *testing.T, size [2]int) {
				s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
					c := call(0, 0)
					s.differ(t, difference{n: n, odd: 1, want: lengths(c, c, size[0], size[1]),
						good:  calling{around(kind, size[0], size[0]), c},
						bad:   calling{around(kind, size[1], size[0]), c},
						meets: s.neighbours(n, false)})
				})
			})
	})
}

// neighbours says who meets replica 1 of a ring, which is in another call, or sends another length only.
func (s *suite) neighbours(n int, calls bool) func(rank int) (first, unwritten bool) {
	const odd = 1
	return func(rank int) (first, unwritten bool) {
		unwritten = rank == (odd+1)%n || rank == odd && calls
		if s.has(Buffers) { // a send may end before its receiver has looked at it
			return unwritten, unwritten
		}
		return unwritten || rank == odd || calls && rank == (odd+n-1)%n, unwritten
	}
}

// mismatch has one replica in another call of an act that is a meeting of all.
func (s *suite) mismatch(t *testing.T, a act) {
	cases(t, "field", fields, func(t *testing.T, f field) {
		s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
			good := calling{a, a.number(1)}
			bad := calling{a, f.of(good.call)}
			want := mismatch(good.call, bad.call)
			if f.name == "Group" { // they wait for each other at different places
				want = deadlocked(want)
			}
			s.differ(t, difference{n: n, odd: 1, good: good, bad: bad, want: want})
		})
	})
}

// standoff is what the replicas exchange, in one round, by which nobody is served. One replica may be in another one.
type standoff struct {
	name   string
	least  int // replicas
	change field
	batch  func(t testing.TB, me, n int, odd bool) []transport.Transfer
}

func (p standoff) String() string { return p.name }

// act returns that of the odd replica, or of the others.
func (p standoff) act(odd bool) act {
	return exchanging(p.name, func(t testing.TB, me, n int) []transport.Transfer { return p.batch(t, me, n, odd) })
}

// standoffs calls test for each number of replicas that a standoff is for.
func (s *suite) standoffs(t *testing.T, all []standoff, replicas []int, test func(t *testing.T, p standoff, n int)) {
	cases(t, "standoff", all, func(t *testing.T, p standoff) {
		s.replicas(t, slices.DeleteFunc(slices.Clone(replicas), func(n int) bool { return n < p.least }),
			func(t *testing.T, n int) { test(t, p, n) })
	})
}

// noMeeting has replicas in different calls that exchange no message by which to find out.
func (s *suite) noMeeting(t *testing.T) {
	s.standoffs(t, []standoff{
		{"roots send", 2, fields[4], func(_ testing.TB, me, n int, odd bool) []transport.Transfer {
			return star(me, n, odd, true)
		}},
		{"roots receive", 2, fields[4], func(_ testing.TB, me, n int, odd bool) []transport.Transfer {
			return star(me, n, odd, false)
		}},
		{"directions", 4, fields[9], func(_ testing.TB, me, n int, odd bool) []transport.Transfer { // fewer meet
			to, from := (me+1)%n, (me+n-1)%n
			if odd {
				to, from = from, to
			}
			return []transport.Transfer{send(to, 0, make([]byte, 100)), recv(from, 0, make([]byte, 100))}
		}},
		{"all wait", 2, fields[7], func(_ testing.TB, me, n int, _ bool) []transport.Transfer {
			return []transport.Transfer{recv((me+1)%n, 0, make([]byte, 100))}
		}},
	}, []int{2, 3, 5, 8}, func(t *testing.T, p standoff, n int) {
		good, bad := calling{p.act(false), call(0, 0)}, calling{p.act(true), p.change.of(call(0, 0))}
		s.differ(t, difference{n: n, odd: n - 1, good: good, bad: bad, want: mismatch(good.call, bad.call),
			meets: func(int) (bool, bool) { return false, false }})
	})
}

// star is a round in which one root sends to all or receives from all: replica 0, but the odd replica believes in
// itself.
func star(me, n int, odd, down bool) (batch []transport.Transfer) {
	kinds := [2]transport.Kind{transport.Send, transport.Recv} // of the root, of the others
	if !down {
		slices.Reverse(kinds[:])
	}
	transfer := func(peer int, kind transport.Kind) {
		batch = append(batch, transport.Transfer{Peer: peer, Kind: kind, Buf: make([]byte, 100)})
	}
	if me > 0 && !odd {
		transfer(0, kinds[1])
		return batch
	}
	for p := range n {
		if p != me {
			transfer(p, kinds[0])
		}
	}
	return batch
}

// deadlock has replicas wait for each other in a circle, all of them in one call.
func (s *suite) deadlock(t *testing.T) {
	buf := func() []byte { return make([]byte, 100) }
	s.standoffs(t, []standoff{
		{name: "all receive", batch: func(_ testing.TB, me, n int, _ bool) []transport.Transfer {
			return []transport.Transfer{recv((me+1)%n, 0, buf())}
		}},
		{name: "all send", batch: func(_ testing.TB, me, n int, _ bool) []transport.Transfer {
			return []transport.Transfer{send((me+1)%n, 0, buf())}
		}},
		{name: "wrong tag", batch: func(_ testing.TB, me, n int, _ bool) []transport.Transfer {
			return []transport.Transfer{send((me+1)%n, 0, buf()), recv((me+n-1)%n, 1, buf())}
		}},
		{name: "behind a fold", least: 3, batch: func(t testing.TB, me, n int, _ bool) []transport.Transfer {
			// Replica 1 must fold what 2 sends before what 0 sends; 2 sends only when it has heard from 0; and 0 waits
			// for 1.
			x := buf()
			switch me {
			case 0:
				return []transport.Transfer{send(1, 0, buf())}
			case 1:
				return []transport.Transfer{recv(2, 0, x), next(t, 0, 0, x, nil)}
			case 2:
				return []transport.Transfer{recv(0, 0, buf())}
			}
			return []transport.Transfer{recv(me-1, 0, buf())} // these wait for those
		}},
	}, []int{2, 3, 8}, s.testDeadlock)
}

// testDeadlock wants a *DeadlockError or, where none is promised, with a context that is done, merely an end.
func (s *suite) testDeadlock(t *testing.T, p standoff, n int) {
	eps := s.lanes(t, s.connect(t, n))
	ctx, want := background, circle
	if !s.has(NamesDeadlocks) {
		done, cancel := context.WithCancel(background)
		cancel()
		ctx, want = done, failure
	}
	play(t, eps, func(e transport.Endpoint) error {
		mine := s.begin(t, p.act(false), e)
		defer scribble(mine.bufs...)
		return mine.do(ctx, call(0, 0))
	}, want)
}

// circle wants a deadlock of replicas that are all in the first call.
func circle(t testing.TB, rank int, err error) {
	t.Helper()
	located(t, rank, err)
	var d *transport.DeadlockError
	if !errors.As(err, &d) {
		t.Errorf("replica %d: no DeadlockError in %q", rank, fmt.Sprint(err))
		return
	}
	if len(d.Replicas) < 2 || len(d.Calls) != len(d.Replicas) {
		t.Errorf("replica %d: ranks %v, %d calls", rank, d.Replicas, len(d.Calls))
	}
	for i, r := range d.Replicas {
		if r < 0 || slices.Contains(d.Replicas[:i], r) {
			t.Errorf("replica %d: the circle is of replicas %v", rank, d.Replicas)
		}
	}
	for _, c := range d.Calls {
		if c != call(0, 0) {
			t.Errorf("replica %d: %+v is not the call", rank, c)
		}
	}
}

// unpaired has replicas go through one round, of which one has a transfer that the other has not, and leave: the parts
// of an all-to-all by counts differ, say. That is a mismatch that names both lengths, and not a replica that has left.
func (s *suite) unpaired(t *testing.T) {
	s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
		for _, kind := range []transport.Kind{transport.Send, transport.Recv} {
			t.Run(kind.String(), func(t *testing.T) { s.testUnpaired(t, n, kind) })
		}
	})
}

func (s *suite) testUnpaired(t *testing.T, n int, kind transport.Kind) {
	const size = 100 // of oneTransfer
	eps := s.connect(t, n)
	want := transport.MismatchError{Replica: 0, Peer: 1, Mine: call(0, 0), Theirs: call(0, 0), TheirsBytes: size}
	if kind == transport.Recv {
		want.Replica, want.Peer, want.MineBytes, want.TheirsBytes = 1, 0, size, 0
	}
	play(t, eps, func(e transport.Endpoint) error {
		p := part{do: func(ctx context.Context, c transport.Call) error { return e.Exchange(ctx, c, nil) }}
		if e.Rank() == 1 {
			p = s.begin(t, oneTransfer(kind, 0), e)
		}
		err := p.do(background, call(0, 0))
		if e.Rank() > 1 { // has no part in it, and hears of it or not
			return nil
		}
		return errors.Join(err, e.Close())
	}, func(t testing.TB, rank int, err error) {
		var got *transport.MismatchError
		if rank > 1 || rank == 0 && err == nil { // replica 0 may have left before
			return
		}
		if !errors.As(err, &got) || *got != want {
			t.Errorf("replica %d: %v, want %v", rank, err, &want)
		}
	})
	each(t, eps, func(e transport.Endpoint) error { return e.Close() }) // who left before hears of it now
}

// settles has a replica of which another has made another call, or none, ask before it leaves. Where it agrees nobody
// has an error.
func (s *suite) settles(t *testing.T) {
	for _, odd := range []int{-1, 0} {
		t.Run(fmt.Sprintf("odd=%d", odd), func(t *testing.T) {
			s.replicas(t, []int{2, 3}, func(t *testing.T, n int) { s.testSettles(t, n, odd) })
		})
	}
}

// testSettles has a replica that differs, or none.
func (s *suite) testSettles(t *testing.T, n, odd int) {
	eps := s.connect(t, n)
	made := func(rank int) transport.Call {
		c := call(0, 0)
		if rank == odd {
			c.Count++
		}
		return c
	}
	for _, e := range eps {
		a, ok := e.(transport.Settler)
		if !ok {
			t.Skip("the transport offers no Settler")
		}
		a.AnswerBy(func(transport.Call) (transport.Call, bool) { return made(e.Rank()), true })
	}
	all(t, eps, func(e transport.Endpoint) error { return e.Exchange(background, made(e.Rank()), nil) })
	s.meet(t)
	play(t, eps, func(e transport.Endpoint) error {
		others := slices.DeleteFunc(everyone(n), func(r int) bool { return r == e.Rank() })
		return errors.Join(e.(transport.Settler).Settle(made(e.Rank()), others, patience), e.Close())
	}, func(t testing.TB, rank int, err error) {
		var mismatch *transport.MismatchError
		if errors.As(err, &mismatch) != (odd >= 0) || err != nil && mismatch == nil {
			t.Errorf("replica %d: %v", rank, err)
		}
	})
}
