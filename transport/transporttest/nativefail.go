package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// attempt is a call of Collective that is to fail.
type attempt struct {
	call    transport.Call
	members []int
	c       transport.NativeCollective
}

// do makes the call on an endpoint. After an error the buffers are overwritten at once.
func (a attempt) do(ctx context.Context, e transport.Endpoint) (err error, touched error) {
	rank := slices.Index(a.members, e.Rank())
	dst, src, whole := placed(a.c, rank, nativeInput(a.c, rank, 0), apart)
	defer scribble(whole...)
	before := slices.Clone(dst)
	if err = offersNative(e).Collective(ctx, a.call, a.members, a.c, dst, src); err != nil {
		touched = same(fmt.Sprintf("replica %d: dst after the error", e.Rank()), dst, before)
	}
	return err, touched
}

// joined is connect, for cases in which a replica fails at once: others may still be joining.
func (s *suite) joined(t *testing.T, n int) []transport.Endpoint {
	t.Helper()
	eps := s.connect(t, n)
	s.meet(t)
	return eps
}

// before makes the same call with the number before, and waits until all have made it.
func (s *suite) before(e transport.Endpoint, a attempt) error {
	a.call.Seq--
	if err, _ := a.do(background, e); err != nil {
		return fmt.Errorf("the call before: %w", err)
	}
	_, err := s.board.gather("before", e.Rank(), e.Size(), "")
	return err
}

// nativeSum is an all-reduce of all.
func nativeSum(n, bytes int) attempt {
	return attempt{call(1, 0), everyone(n), transport.NativeCollective{Collective: schedule.AllReduce,
		Operator: transport.NativeAdd, DType: tensor.I32, Size: n, Bytes: bytes}}
}

// nativeOdds are changes by which one member makes another call than the others. Its buffers are longer, shorter, or
// as long as theirs.
var nativeOdds = []struct {
	name       string
	least      int
	collective schedule.Collective // of the others
	change     func(a *attempt)
}{
	{"operator", 2, schedule.AllReduce, func(a *attempt) { a.c.Operator = transport.NativeMax }},
	{"dtype", 2, schedule.Reduce, func(a *attempt) { a.c.DType = tensor.F32 }},
	{"longer", 2, schedule.AllReduce, func(a *attempt) { a.c.Bytes *= 2 }},
	{"shorter", 2, schedule.AllReduce, func(a *attempt) { a.c.Bytes /= 2 }},
	{"longer broadcast", 2, schedule.Broadcast, func(a *attempt) { a.c.Bytes *= 2 }},
	{"long and staged", 2, schedule.AllReduce, func(a *attempt) { a.c.Bytes = 120_000 - a.c.Bytes }},
	{"shorter all-to-all", 2, schedule.AllToAll, func(a *attempt) { a.c.Bytes /= 2 }},
	{"collective", 2, schedule.AllReduce, func(a *attempt) { a.c.Collective = schedule.Reduce }},
	{"another collective", 2, schedule.AllGather, func(a *attempt) { a.c.Collective = schedule.AllToAll }},
	{"root", 2, schedule.Broadcast, func(a *attempt) { a.c.Root = 1 }},
	{"root of a reduce", 2, schedule.Reduce, func(a *attempt) { a.c.Root = 1 }},
	{"root of a scatter", 2, schedule.Scatter, func(a *attempt) { a.c.Root = 1 }},
	{"order", 2, schedule.AllGather, func(a *attempt) {
		a.members = slices.Clone(a.members)
		slices.Reverse(a.members)
	}},
}

// nativeMismatch has one member make another call. All get a MismatchError, and no dst is written.
func (s *suite) nativeMismatch(t *testing.T) {
	for i, bytes := range []int{240, 240_000} {
		for k, f := range fields {
			if s.world != nil && k%2 != i {
				continue
			}
			t.Run(fmt.Sprintf("bytes=%d/field=%s", bytes, f.name), func(t *testing.T) {
				s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
					good := nativeSum(n, bytes)
					bad := good
					f.change(&bad.call)
					s.testNativeMismatch(t, n, k%3 == 0, good, bad)
				})
			})
		}
		for k, x := range nativeOdds {
			for _, again := range []bool{false, true} {
				if x.name == "long and staged" && bytes > 8192 || again && x.name == "order" {
					continue // a group has the same members each time
				}
				if s.world != nil && again != (k%2 == i) && x.name != "order" {
					continue // processes take their time to come together
				}
				t.Run(fmt.Sprintf("bytes=%d/%s/again=%v", bytes, x.name, again), func(t *testing.T) {
					s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
						if n < x.least {
							t.Skipf("needs %d replicas", x.least)
						}
						good := nativeSum(n, bytes)
						if good.c.Collective = x.collective; !x.collective.Contract().Combines {
							good.c.Operator, good.c.DType = 0, tensor.U8
						}
						bad := good
						x.change(&bad)
						s.testNativeMismatch(t, n, again, good, bad)
					})
				})
			}
		}
	}
}

// testNativeMismatch has replica 1 make another call, with again not the first one of the group.
func (s *suite) testNativeMismatch(t *testing.T, n int, again bool, good, bad attempt) {
	eps := s.joined(t, n)
	errs := each(t, eps, func(e transport.Endpoint) error {
		if again {
			if err := s.before(e, good); err != nil {
				return err
			}
		}
		mine := good
		if e.Rank() == 1 {
			mine = bad
		}
		err, touched := mine.do(background, e)
		if touched != nil {
			t.Error(touched)
		}
		return err
	})
	for rank, err := range byRank(eps, errs) {
		var m *transport.MismatchError
		apart := good.call.Group != bad.call.Group || !slices.Equal(good.members, bad.members)
		if apart && errors.As(err, new(*transport.DeadlockError)) {
			continue // nothing says to the replicas how the two calls stand to each other
		}
		if !errors.As(err, &m) {
			t.Errorf("replica %d: no MismatchError in %v", rank, err)
			continue
		}
		wantWhere(t, rank, err)
		if m.Mine == m.Theirs && m.MineBytes == m.TheirsBytes {
			t.Errorf("replica %d: both calls are the same: %v", rank, m)
		}
		one, two := m.Mine, m.Theirs
		if good.call == bad.call { // then digests say it
			one.Digest, two.Digest = good.call.Digest, good.call.Digest
		}
		if !(one == good.call && two == bad.call || one == bad.call && two == good.call) {
			t.Errorf("replica %d: the mismatch is %v, want\n%+v\n%+v", rank, err, good.call, bad.call)
		}
	}
	shut(t, eps)
}

// nativeElsewhere has one member do something else while the others are in a Collective.
func (s *suite) nativeElsewhere(t *testing.T) {
	elsewhere := []struct {
		name string
		do   func(e transport.Endpoint, n, bytes int) error
	}{
		{"in an Exchange of another call", func(e transport.Endpoint, n, bytes int) error {
			buf := make([]byte, 100)
			defer scribble(buf)
			return e.Exchange(background, call(7, 0), []transport.Transfer{recv(0, 0, buf)})
		}},
		{"in a group of other members", func(e transport.Endpoint, n, bytes int) error {
			other := nativeSum(n, bytes)
			other.members = []int{1, 0}
			other.c.Size = 2
			other.call.Group++
			err, _ := other.do(background, e)
			return err
		}},
		{"in another group", func(e transport.Endpoint, n, bytes int) error {
			other := nativeSum(n, bytes)
			other.call.Group++
			err, _ := other.do(background, e)
			return err
		}},
		{"in the next call", func(e transport.Endpoint, n, bytes int) error {
			other := nativeSum(n, bytes)
			other.call.Seq++
			err, _ := other.do(background, e)
			return err
		}},
		{"gone", func(e transport.Endpoint, n, bytes int) error {
			if err := e.Close(); err != nil {
				return fmt.Errorf("an error of Close: %w", err)
			}
			return shift(e, 0, 0)
		}},
	}
	for i, bytes := range []int{100, 100_000} {
		for k, x := range elsewhere {
			for _, again := range []bool{false, true} {
				if s.world != nil && again != (k%2 == i) {
					continue
				}
				t.Run(fmt.Sprintf("bytes=%d/%s/again=%v", bytes, x.name, again), func(t *testing.T) {
					s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
						eps := s.joined(t, n)
						errs := each(t, eps, func(e transport.Endpoint) error {
							mine := nativeSum(n, bytes)
							if again {
								if err := s.before(e, mine); err != nil {
									return err
								}
							}
							if e.Rank() == 1 {
								return x.do(e, n, bytes)
							}
							err, touched := mine.do(background, e)
							if touched != nil && x.name != "gone" {
								t.Error(touched)
							}
							return err
						})
						for rank, err := range byRank(eps, errs) {
							switch {
							case x.name == "gone":
								wantClosed(t, rank, err, 1)
							case errors.As(err, new(*transport.DeadlockError)):
							case !errors.As(err, new(*transport.MismatchError)):
								t.Errorf("replica %d: no MismatchError and no DeadlockError in %v", rank, err)
							}
						}
						shut(t, eps)
					})
				})
			}
		}
	}
}

// nativeCancel ends a call by a context, in which one member is missing.
func (s *suite) nativeCancel(t *testing.T) {
	cause := errors.New("enough of it")
	for _, when := range []string{"before", "during", "everybody"} {
		for i, bytes := range []int{100, 100_000} {
			for _, again := range []bool{false, true} {
				if s.world != nil && when != "during" && again != (i == 0) {
					continue
				}
				t.Run(fmt.Sprintf("when=%s/bytes=%d/again=%v", when, bytes, again), func(t *testing.T) {
					s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
						s.testNativeCancel(t, n, bytes, when, again, cause)
					})
				})
			}
		}
	}
}

// testNativeCancel cancels the context of replica 1, or of all. Replica 0 comes when the others have left.
func (s *suite) testNativeCancel(t *testing.T, n, bytes int, when string, again bool, cause error) {
	eps := s.joined(t, n)
	ctx, cancel := context.WithCancelCause(background)
	defer cancel(nil)
	if when == "before" {
		cancel(cause)
	}
	errs := each(t, eps, func(e transport.Endpoint) error {
		defer s.board.post(key("left", e.Rank()), "")
		x := nativeSum(n, bytes)
		if again {
			if err := s.before(e, x); err != nil {
				return err
			}
		}
		mine := background
		if e.Rank() == 1 || when == "everybody" {
			mine = ctx
		}
		if e.Rank() == 0 {
			if err := s.others("left", 0, n); err != nil {
				return err
			}
		}
		s.board.post(key("entered", e.Rank()), "")
		for {
			if err, _ := x.do(mine, e); err != nil || !s.has(Buffers) {
				return err
			}
			x.call.Seq++ // what the others have sent was enough for the call
		}
	}, func() {
		if when != "before" {
			await(t, func() {
				if err := s.others("entered", 0, n); err != nil {
					t.Error(err)
				}
			})
			for range 200 {
				runtime.Gosched()
			}
			cancel(cause)
		}
	})
	for rank, err := range byRank(eps, errs) {
		s.wantCause(t, rank, err, rank == 1 && when != "everybody", cause)
		wantWhere(t, rank, err)
		if when != "everybody" && rank != 1 {
			wantAbort(t, rank, err, 1)
		}
	}
	shut(t, eps)
}

// untilNativeFails makes one call after the other until one fails. With spoil it overwrites the buffers of that one.
func untilNativeFails(e transport.Endpoint, bytes int, spoil bool, note func(times int, dst, src []byte)) error {
	n := e.Size()
	kinds := nativeCollectives(n)
	for times := 0; ; times++ {
		c := ofBytes(kinds[times%len(kinds)], bytes)
		if c.Collective.Contract().Rooted() {
			c.Root = times / len(kinds) % n
		}
		dst, src, whole := placed(c, e.Rank(), nativeInput(c, e.Rank(), times), apart)
		note(times, dst, src)
		if err := offersNative(e).Collective(background, call(times, 0), everyone(n), c, dst, src); err != nil {
			if spoil {
				scribble(whole...)
			}
			return err
		}
	}
}

// nativeAbort aborts while calls are under way.
func (s *suite) nativeAbort(t *testing.T) {
	cause := errors.New("the user has had enough")
	s.repeat(t, s.few(60), func(t *testing.T, i int) {
		n := s.number(2 + i%4)
		eps := s.joined(t, n)
		who, bytes := i%n, []int{100, 9000, 300_000}[i%3]
		reached := make(chan bool)
		errs := each(t, eps, func(e transport.Endpoint) error {
			return untilNativeFails(e, bytes, true, func(times int, _, _ []byte) {
				if e.Rank() == who && times == i {
					close(reached)
				}
			})
		}, func() {
			if e := at(eps, who); e != nil {
				<-reached
				for range i * 3 {
					runtime.Gosched()
				}
				e.Abort(cause)
			}
		})
		for rank, err := range byRank(eps, errs) {
			s.wantCause(t, rank, err, rank == who, cause)
			wantAbort(t, rank, err, who)
			wantWhere(t, rank, err)
		}
		stays(t, eps, who)
		shut(t, eps)
	})
}

// nativeClose closes an endpoint while calls are under way. When Close returns nobody looks at its buffers.
func (s *suite) nativeClose(t *testing.T) {
	s.repeat(t, s.few(60), func(t *testing.T, i int) {
		n := s.number(2 + i%4)
		eps := s.joined(t, n)
		bytes := []int{100, 9000, 300_000}[i%3]
		var current atomic.Pointer[[2][]byte]
		reached := make(chan bool)
		errs := each(t, eps, func(e transport.Endpoint) error {
			return untilNativeFails(e, bytes, e.Rank() > 0, func(times int, dst, src []byte) {
				if e.Rank() == 0 {
					current.Store(&[2][]byte{dst, src})
					if times == i {
						close(reached)
					}
				}
			})
		}, func() {
			e := at(eps, 0)
			if e == nil {
				return
			}
			<-reached
			for range i * 3 {
				runtime.Gosched()
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			scribble(current.Load()[:]...)
		})
		for rank, err := range byRank(eps, errs) {
			wantClosed(t, rank, err, 0)
		}
		shut(t, eps)
	})
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
					time.Sleep(late)
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
