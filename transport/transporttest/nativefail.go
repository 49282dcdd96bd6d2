package transporttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// attempt is a collective of an engine, among some replicas.
type attempt struct {
	members []int
	c       transport.NativeCollective
}

// sum is an all-reduce of all n replicas.
func sum(n, bytes int) attempt {
	return attempt{everyone(n), transport.NativeCollective{Collective: schedule.AllReduce,
		Operator: transport.NativeAdd, DType: tensor.I32, Size: n, Bytes: bytes}}
}

// inEngine is the act of one collective. A call that fails may not write its dst.
func inEngine(name string, of func(n int) attempt) act {
	return act{name: name, number: calls, begin: func(r *role) part {
		a, e := of(r.endpoint.Size()), offersNative(r.endpoint)
		rank := slices.Index(a.members, e.Rank())
		dst, src, whole := placed(a.c, rank, nativeInput(a.c, rank, 0), apart)
		return part{bufs: whole, out: [][]byte{dst}, do: func(ctx context.Context, c transport.Call) error {
			return e.Collective(ctx, c, a.members, a.c, dst, src)
		}}
	}}
}

// calls numbers calls of one round.
func calls(i int) transport.Call { return call(i, 0) }

// summing is the act of sums of all replicas, as the first call of their group or as a later one.
func summing(bytes int, warm bool) act {
	name := fmt.Sprintf("sum of %d bytes, warm %v", bytes, warm)
	a := inEngine(name, func(n int) attempt { return sum(n, bytes) })
	a.warm = warm
	return a
}

// sums are short and long. Taken by twos there is a first call and a later one among them.
func sums() []act {
	return []act{summing(100, false), summing(100, true), summing(100_000, true), summing(100_000, false)}
}

// allKinds is the act of one collective after the other.
func allKinds(bytes int) act {
	return act{name: fmt.Sprintf("%d bytes", bytes), number: calls, tries: 20, begin: func(r *role) part {
		e, n := offersNative(r.endpoint), r.endpoint.Size()
		var kinds []attempt
		var p part
		var in [][2][]byte // dst and src
		for i, c := range nativeCollectives(n) {
			if c = ofBytes(c, bytes); c.Collective.Contract().Rooted() {
				c.Root = i % n
			}
			dst, src, whole := placed(c, e.Rank(), nativeInput(c, e.Rank(), i), apart)
			kinds, in = append(kinds, attempt{everyone(n), c}), append(in, [2][]byte{dst, src})
			p.bufs = append(p.bufs, whole...)
		}
		p.do = func(ctx context.Context, c transport.Call) error {
			i := int(c.Seq) % len(kinds)
			return e.Collective(ctx, c, kinds[i].members, kinds[i].c, in[i][0], in[i][1])
		}
		return p
	}}
}

// odd is a change by which one member makes another call than the others. Its buffers are longer, shorter, or as long
// as theirs.
type odd struct {
	name       string
	collective schedule.Collective // of the others
	change     func(a *attempt)
}

func (o odd) String() string { return o.name }

var odds = []odd{
	{"operator", schedule.AllReduce, func(a *attempt) { a.c.Operator = transport.NativeMax }},
	{"dtype", schedule.Reduce, func(a *attempt) { a.c.DType = tensor.F32 }},
	{"longer", schedule.AllReduce, func(a *attempt) { a.c.Bytes *= 2 }},
	{"shorter", schedule.AllReduce, func(a *attempt) { a.c.Bytes /= 2 }},
	{"longer broadcast", schedule.Broadcast, func(a *attempt) { a.c.Bytes *= 2 }},
	{"long and staged", schedule.AllReduce, func(a *attempt) { a.c.Bytes = 120_000 - min(a.c.Bytes, 60_000) }},
	{"shorter all-to-all", schedule.AllToAll, func(a *attempt) { a.c.Bytes /= 2 }},
	{"collective", schedule.AllReduce, func(a *attempt) { a.c.Collective = schedule.Reduce }},
	{"another collective", schedule.AllGather, func(a *attempt) { a.c.Collective = schedule.AllToAll }},
	{"root", schedule.Broadcast, func(a *attempt) { a.c.Root = 1 }},
	{"root of a reduce", schedule.Reduce, func(a *attempt) { a.c.Root = 1 }},
	{"root of a scatter", schedule.Scatter, func(a *attempt) { a.c.Root = 1 }},
	{"order", schedule.AllGather, func(a *attempt) {
		a.members = slices.Clone(a.members)
		slices.Reverse(a.members)
	}},
}

// attempt returns what the odd member makes, or the others.
func (o odd) attempt(n, bytes int, isOdd bool) attempt {
	a := sum(n, bytes)
	if a.c.Collective = o.collective; !o.collective.Contract().Combines {
		a.c.Operator, a.c.DType = 0, tensor.U8
	}
	if isOdd {
		o.change(&a)
	}
	return a
}

// nativeMismatch has one member make another call. All get a MismatchError, and no dst is written.
func (s *suite) nativeMismatch(t *testing.T) {
	cases(t, "bytes", []int{240, 240_000}, func(t *testing.T, bytes int) {
		cases(t, "field", thinned(s, fields, bytes/240_000), func(t *testing.T, f field) {
			s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) { s.testOtherCall(t, n, bytes, f) })
		})
		cases(t, "odd", odds, func(t *testing.T, o odd) {
			cases(t, "warm", o.warm(), func(t *testing.T, warm bool) {
				if s.world != nil && warm == (bytes > 240) && o.name != "order" {
					t.Skip("between processes half of them: they take their time to come together")
				}
				s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) { s.testOdd(t, n, bytes, o, warm) })
			})
		})
	})
}

// warm says whether there may be a call before. A group has the same members each time.
func (o odd) warm() []bool {
	if o.name == "order" {
		return []bool{false}
	}
	return []bool{false, true}
}

// testOtherCall has replica 1 in another call of the same collective.
func (s *suite) testOtherCall(t *testing.T, n, bytes int, f field) {
	a := summing(bytes, n%2 == 0)
	good, bad := calling{a, a.number(1)}, calling{a, f.of(a.number(1))}
	want := otherCalls(good.call, bad.call)
	if f.name == "Group" { // nothing says to the replicas how the two calls stand to each other
		want = deadlocked(want)
	}
	s.differ(t, difference{n: n, odd: 1, good: good, bad: bad, want: want})
}

// testOdd has replica 1 make another collective by the same call.
func (s *suite) testOdd(t *testing.T, n, bytes int, o odd, warm bool) {
	good := inEngine("good", func(n int) attempt { return o.attempt(n, bytes, false) })
	bad := inEngine("bad", func(n int) attempt { return o.attempt(n, bytes, true) })
	good.warm = warm
	c := good.number(1)
	want := otherCalls(c, c)
	if o.name == "order" {
		want = deadlocked(want)
	}
	s.differ(t, difference{n: n, odd: 1, good: calling{good, c}, bad: calling{bad, c}, want: want})
}

// otherCalls wants a mismatch of two calls. Where they are the same, digests say what differs.
func otherCalls(good, bad transport.Call) outcome {
	return func(t testing.TB, rank int, err error) {
		t.Helper()
		located(t, rank, err)
		m, ok := errors.AsType[*transport.MismatchError](err)
		if !ok {
			t.Errorf("replica %d: no MismatchError in %v", rank, err)
			return
		}
		if m.Mine == m.Theirs && m.MineBytes == m.TheirsBytes {
			t.Errorf("replica %d: both calls are the same: %v", rank, m)
		}
		one, two := m.Mine, m.Theirs
		if good == bad {
			one.Digest, two.Digest = good.Digest, good.Digest
		}
		if !(one == good && two == bad || one == bad && two == good) {
			t.Errorf("replica %d: the mismatch is %v, want\n%+v\n%+v", rank, err, good, bad)
		}
	}
}

// nativeElsewhere has one member do something else while the others are in a Collective.
func (s *suite) nativeElsewhere(t *testing.T) {
	for k, bytes := range []int{100, 100_000} {
		for _, warm := range thinned(s, []bool{false, true}, k) {
			t.Run(fmt.Sprintf("bytes=%d/warm=%v", bytes, warm), func(t *testing.T) {
				s.testNativeElsewhere(t, bytes, summing(bytes, warm))
			})
		}
	}
}

// testNativeElsewhere has replica 1 elsewhere than in a sum.
func (s *suite) testNativeElsewhere(t *testing.T, bytes int, a act) {
	good := calling{a, a.number(1)}
	anotherGroup, next := good, calling{a, a.number(2)}
	anotherGroup.call.Group++
	anotherGroup.name, next.name = "another group", "the next call"
	two := calling{inEngine("a group of other members", func(n int) attempt {
		x := sum(n, bytes)
		x.members, x.c.Size = []int{1, 0}, 2
		return x
	}), anotherGroup.call}
	exchange := calling{oneTransfer(transport.Recv, 0), call(7, 0)}
	cases(t, "other", []calling{exchange, two, anotherGroup, next}, func(t *testing.T, bad calling) {
		s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
			s.differ(t, difference{n: n, odd: 1, good: good, bad: bad, want: deadlocked(disagreement)})
		})
	})
}

// thinned is every second value between processes, which take their time to come together.
func thinned[T any](s *suite, values []T, first int) (some []T) {
	for i, v := range values {
		if s.world == nil || (i+first)%2 == 0 {
			some = append(some, v)
		}
	}
	return some
}

// nativeClosed calls on an endpoint that has been closed, in a group that has made a call before and in one that has
// not: a *transport.ClosedError, at once.
func (s *suite) nativeClosed(t *testing.T) {
	s.replicas(t, []int{1, 2, 3}, func(t *testing.T, n int) {
		all(t, s.connect(t, n), func(e transport.Endpoint) error {
			c := ofBytes(nativeCollectives(n)[0], 100)
			d, err := e.Dup(background)
			if err != nil {
				return err
			}
			if err := collective(offersNative(d), call(0, 0), everyone(n), c, apart, 0); err != nil {
				return err
			}
			if err := d.Close(); err != nil {
				return err
			}
			for group := range 2 {
				k := call(1, 0)
				k.Group += uint64(group)
				err := collective(offersNative(d), k, everyone(n), c, apart, 1)
				if closed, ok := errors.AsType[*transport.ClosedError](err); !ok || closed.Replica != e.Rank() {
					return fmt.Errorf("%v, want that replica %d is closed", err, e.Rank())
				}
			}
			return nil
		})
	})
}

// nativeLateMember has a member come late to a broadcast whose root may have left before the others are through, with a
// call that has a number and one that has none: that is no error.
func (s *suite) nativeLateMember(t *testing.T) {
	s.replicas(t, []int{3}, func(t *testing.T, n int) {
		all(t, s.connect(t, n), func(e transport.Endpoint) error {
			for i, late := range []time.Duration{50 * time.Millisecond, 2500 * time.Millisecond} {
				d, err := e.Dup(background)
				if err != nil {
					return err
				}
				if e.Rank() == n-1 {
					s.clock.Sleep(e, late)
				}
				c := transport.NativeCollective{Collective: schedule.Broadcast, DType: tensor.U8, Bytes: 100, Size: n}
				k := call(i, 0)
				if i == 0 {
					k.Seq = 0
				}
				if err := collective(offersNative(d), k, everyone(n), c, apart, i); err != nil {
					return fmt.Errorf("late by %v: %w", late, err)
				}
				if err := d.Close(); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
