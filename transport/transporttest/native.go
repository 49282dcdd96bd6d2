package transporttest

import (
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// native holds endpoints that offer transport.Native to its promises.
func (s *suite) native(t *testing.T) {
	offered := true
	t.Run("Offered", func(t *testing.T) {
		eps := s.connect(t, s.number(2))
		for _, e := range eps {
			_, offered = e.(transport.Native)
		}
		s.agree(t, s.number(2), eps, fmt.Sprint(offered))
	})
	if !offered {
		if s.only {
			t.Fatal("the endpoints do not offer transport.Native")
		}
		t.Skip("the endpoints do not offer transport.Native")
	}
	some := thinned(s, sums(), 0)
	s.run(t, []test{
		{"Results", (*suite).nativeResults},
		{"Operators", (*suite).nativeOperators},
		{"Groups", (*suite).nativeGroups},
		{"Rounds", (*suite).nativeRounds},
		{"Lanes", (*suite).nativeLanes},
		{"BadArguments", (*suite).nativeBadArguments},
		{"Busy", (*suite).nativeBusy},
		{"Mismatch", (*suite).nativeMismatch},
		{"Elsewhere", (*suite).nativeElsewhere},
		{"Cancel", over((*suite).cancel, sums()...)},
		{"Abort", over((*suite).abort, some[0], some[len(some)-1])},
		{"Break", over((*suite).breakOff, allKinds(100), allKinds(9000), allKinds(300_000))},
		{"Gone", over((*suite).gone, some...)},
		{"Closed", (*suite).nativeClosed},
		{"LateMember", (*suite).nativeLateMember},
		{"NoAlloc", (*suite).nativeNoAlloc},
	})
}

// everyone is all replicas, in their order.
func everyone(n int) []int {
	members := make([]int, n)
	for i := range members {
		members[i] = i
	}
	return members
}

// nativeCollectives are all collectives, each with an operator and an element type that go with it.
func nativeCollectives(size int) []transport.NativeCollective {
	var out []transport.NativeCollective
	for _, x := range schedule.Collectives() {
		c := transport.NativeCollective{Collective: x, DType: tensor.U8, Size: size}
		if x.Contract().Combines {
			c.Operator, c.DType = transport.NativeAdd, tensor.F32
		}
		out = append(out, c)
	}
	return out
}

// rooted is a collective with each root that it may have.
func rooted(c transport.NativeCollective) []transport.NativeCollective {
	if !c.Collective.Contract().Rooted() {
		return []transport.NativeCollective{c}
	}
	var out []transport.NativeCollective
	for c.Root = range c.Size {
		out = append(out, c)
	}
	return out
}

// nativeUnit is what Bytes is a multiple of.
func nativeUnit(c transport.NativeCollective) int {
	if c.Collective.Contract().PerRank() {
		return c.Size * c.DType.Size()
	}
	return c.DType.Size()
}

// ofBytes is a collective of a length, rounded down.
func ofBytes(c transport.NativeCollective, bytes int) transport.NativeCollective {
	c.Bytes = bytes / nativeUnit(c) * nativeUnit(c)
	return c
}

// nativeLengths are those of a collective around the bounds that engines have: nothing, one element for each member, an
// odd number, both sides of 2 KiB and of 8 KiB, 32 KiB and a bit, 1 MiB.
func nativeLengths(c transport.NativeCollective) []int {
	unit := nativeUnit(c)
	return []int{0, unit, 7 * unit, 2048 / unit * unit, (2048/unit + 1) * unit,
		8192 / unit * unit, (8192/unit + 1) * unit, (32768/unit + 3) * unit,
		(1 << 20) / unit * unit}
}

// offersNative is the endpoint, which offers it.
func offersNative(e transport.Endpoint) transport.Native { return e.(transport.Native) }

// chore is a collective of all, with how its buffers lie.
type chore struct {
	c        transport.NativeCollective
	aliasing aliasing
	salt     int
}

// chores carries out collectives of all, each of which is another call.
func (s *suite) chores(t *testing.T, eps []transport.Endpoint, list iter.Seq[chore]) {
	t.Helper()
	all(t, eps, func(e transport.Endpoint) error {
		seq := 0
		for x := range list {
			seq++
			err := offersNative(e).Accepts(x.c)
			if errors.Is(err, errors.ErrUnsupported) {
				continue
			}
			if err == nil {
				err = collective(offersNative(e), call(seq, 0), everyone(e.Size()), x.c, x.aliasing, x.salt)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *suite) nativeResults(t *testing.T) {
	s.replicas(t, []int{1, 2, 3, 5}, func(t *testing.T, n int) { s.chores(t, s.connect(t, n), results(n)) })
}

// results are all collectives with all roots, of all lengths, in all aliasings. Of the longest there are few.
func results(n int) iter.Seq[chore] {
	return func(yield func(chore) bool) {
		for _, c := range slices.Concat(mapped(nativeCollectives(n), rooted)...) {
			isRooted := c.Collective.Contract().Rooted()
			for i := range len(nativeLengths(c)) * int(aliasings) {
				length, a := i/int(aliasings), aliasing(i%int(aliasings))
				c.Bytes = nativeLengths(c)[length]
				long := c.Bytes > 1<<17 && underRace ||
					c.Bytes > 1<<19 && isRooted && (c.Root != n-1 || a == evenRanks)
				if !long && !yield(chore{c, a, length}) {
					return
				}
			}
		}
	}
}

// mapped is what f makes of each value.
func mapped[T, U any](values []T, f func(T) U) (out []U) {
	for _, v := range values {
		out = append(out, f(v))
	}
	return out
}

// nativeOperators tries every operator on every element type that it takes.
func (s *suite) nativeOperators(t *testing.T) {
	s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) { s.chores(t, s.connect(t, n), operators(n)) })
}

// operators are all that combines, with every operator on every element type that it takes.
func operators(n int) iter.Seq[chore] {
	return func(yield func(chore) bool) {
		for i, c := range combining(n) {
			if c.Collective.Contract().Rooted() {
				c.Root = i % n
			}
			for k, bytes := range []int{7 * nativeUnit(c), 20000} {
				if !yield(chore{ofBytes(c, bytes), aliasing((2*i + k) % int(aliasings)), 2*i + k}) {
					return
				}
			}
		}
	}
}

// combining are the collectives that combine, with each operator and each type that it takes.
func combining(n int) (out []transport.NativeCollective) {
	for _, c := range nativeCollectives(n) {
		if !c.Collective.Contract().Combines {
			continue
		}
		for _, c.DType = range tensor.DTypes() {
			for c.Operator = transport.NativeAdd; c.Operator <= transport.NativeOr; c.Operator++ {
				if c.Operator.Accepts(c.DType) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// nativeGroupsOf are groups of some replicas, in any order.
func nativeGroupsOf(n int) [][]int {
	all := everyone(n)
	back := slices.Clone(all)
	slices.Reverse(back)
	groups := [][]int{all, back, {n - 1}, append(slices.Clone(all[1:]), 0)}
	if n > 2 {
		groups = append(groups, []int{n - 1, 0}, all[1:], []int{1, 0})
	}
	if n > 3 {
		groups = append(groups, []int{3, 1}, []int{0, 2})
	}
	return groups
}

// nativeGroups has members of several groups in turns, and messages among all of them between.
func (s *suite) nativeGroups(t *testing.T) {
	s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
		all(t, s.connect(t, n), func(e transport.Endpoint) error {
			seq := 0
			for turn := range 3 {
				for g, members := range nativeGroupsOf(n) {
					if err := inTurn(e, turn, g, members, seq); err != nil {
						return err
					}
					seq += len(nativeCollectives(1))
				}
				if err := shift(e, turn, turn); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// inTurn carries out a collective of each kind in a group, if the replica is a member of it.
func inTurn(e transport.Endpoint, turn, g int, members []int, seq int) error {
	if !slices.Contains(members, e.Rank()) {
		return nil
	}
	for _, c := range nativeCollectives(len(members)) {
		seq++
		if c.Collective.Contract().Rooted() {
			c.Root = seq % c.Size
		}
		c = ofBytes(c, []int{500, 9000, 100_000}[turn])
		mine := call(seq, 0)
		mine.Group = uint64(g + 1)
		if err := collective(offersNative(e), mine, members, c, aliasing(seq%int(aliasings)), seq); err != nil {
			return err
		}
	}
	return nil
}

// nativeRounds makes many calls that differ in their rounds alone, and other collectives among them.
func (s *suite) nativeRounds(t *testing.T) {
	s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
		all(t, s.connect(t, n), func(e transport.Endpoint) error {
			kinds := nativeCollectives(n)
			for round := range 200 {
				c := ofBytes(kinds[round*7%len(kinds)], 100+round%3*8000)
				if c.Collective.Contract().Rooted() {
					c.Root = round % n
				}
				if err := collective(offersNative(e), call(0, round), everyone(n), c, apart, round); err != nil {
					return err
				}
				if round%5 == 0 {
					if err := shift(e, 0, round); err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
}

// nativeLanes has calls on several lanes at the same time, whose groups have the same numbers.
func (s *suite) nativeLanes(t *testing.T) {
	s.replicas(t, []int{2, 3, 5}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		lanes := append(append(s.lanes(t, eps), s.lanes(t, eps)...), eps...)
		all(t, lanes, func(e transport.Endpoint) error {
			lane := slices.Index(lanes, e) / len(eps)
			seq := 0
			for times := range 10 {
				for _, c := range nativeCollectives(n) {
					seq++
					c = ofBytes(c, []int{64, 9000, 40_000}[(times+lane)%3])
					salt := 10*seq + lane
					if err := collective(offersNative(e), call(seq, 0), everyone(n), c, apart, salt); err != nil {
						return fmt.Errorf("lane %d: %w", lane, err)
					}
				}
			}
			return nil
		})
	})
}

// nativeBadArguments has calls that break a rule. Nothing comes of them.
func (s *suite) nativeBadArguments(t *testing.T) {
	good := transport.NativeCollective{Operator: transport.NativeAdd, DType: tensor.F32, Bytes: 8}
	s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
		all(t, s.connect(t, n), func(e transport.Endpoint) error {
			good := good
			good.Size = n
			gather := transport.NativeCollective{Collective: schedule.Gather, DType: tensor.U8, Size: n, Bytes: 8 * n}
			gathered := 0
			if e.Rank() == 0 {
				gathered = 8 * n
			}
			for _, x := range []struct {
				name     string
				change   func(c *transport.NativeCollective)
				members  []int
				from     transport.NativeCollective
				dst, src int
			}{
				{"collective", func(c *transport.NativeCollective) { c.Collective = 200 }, everyone(n), good, 8, 8},
				{"barrier", func(c *transport.NativeCollective) { c.Collective = schedule.Barrier }, everyone(n), good,
					8, 8},
				{"operator", func(c *transport.NativeCollective) { c.Operator = 200 }, everyone(n), good, 8, 8},
				{"no operator", func(c *transport.NativeCollective) { c.Operator = 0 }, everyone(n), good, 8, 8},
				{"and of floats", func(c *transport.NativeCollective) { c.Operator = transport.NativeAnd }, everyone(n), good,
					8, 8},
				{"no dtype", func(c *transport.NativeCollective) { c.DType = 0 }, everyone(n), good, 8, 8},
				{"float16", func(c *transport.NativeCollective) { c.DType = tensor.F16 }, everyone(n), good, 8, 8},
				{"gather of int32", func(c *transport.NativeCollective) { c.DType = tensor.I32 }, everyone(n), gather,
					gathered, 8},
				{"root", func(c *transport.NativeCollective) { c.Root = 1 }, everyone(n), good, 8, 8},
				{"far root", func(c *transport.NativeCollective) { c.Root = n }, everyone(n), gather, gathered, 8},
				{"size", func(c *transport.NativeCollective) { c.Size++ }, everyone(n), good, 8, 8},
				{"bytes", func(c *transport.NativeCollective) { c.Bytes = 7 }, everyone(n), good, 7, 7},
				{"less than none", func(c *transport.NativeCollective) { c.Bytes = -8 }, everyone(n), good, 0, 0},
				{"dst", func(*transport.NativeCollective) {}, everyone(n), good, 4, 8},
				{"src", func(*transport.NativeCollective) {}, everyone(n), good, 8, 12},
				{"no member", func(*transport.NativeCollective) {}, slices.Repeat([]int{n}, n), good, 8, 8},
				{"none", func(c *transport.NativeCollective) { c.Size = 0 }, nil, good, 8, 8},
			} {
				c := x.from
				x.change(&c)
				err := offersNative(e).Collective(background, call(0, 0), x.members, c, make([]byte, x.dst),
					make([]byte, x.src))
				if !errors.As(err, new(*transport.ArgumentError)) || e.Err() != nil {
					return fmt.Errorf("%s: no ArgumentError in %v, and Err is %v", x.name, err, e.Err())
				}
			}
			if rounds := offersNative(e).Agreement(n); rounds < 1 {
				return fmt.Errorf("%d members agree in %d rounds", n, rounds)
			}
			return collective(offersNative(e), call(1, 0), everyone(n), good, apart, 0)
		})
	})
}

// nativeBusy calls on an endpoint that is in a Collective. The others come when it has been refused.
func (s *suite) nativeBusy(t *testing.T) {
	cases(t, "in", sums(), func(t *testing.T, a act) {
		s.replicas(t, []int{2, 3}, func(t *testing.T, n int) {
			all(t, s.connect(t, n), func(e transport.Endpoint) error { return s.testNativeBusy(t, a, e) })
		})
	})
}

func (s *suite) testNativeBusy(t testing.TB, a act, e transport.Endpoint) error {
	p := s.begin(t, a, e)
	i, err := s.warmUp(a, p, e)
	if err != nil {
		return err
	}
	if e.Rank() != 0 {
		if _, err := s.board.wait("refused"); err != nil {
			return err
		}
		return p.do(background, a.number(i))
	}
	first := make(chan error, 1)
	go func() {
		err := p.do(background, a.number(i))
		for errors.Is(err, transport.ErrBusy) {
			runtime.Gosched()
			err = p.do(background, a.number(i))
		}
		first <- err
	}()
	for err == nil {
		err = e.Exchange(background, call(0, 0), nil)
	}
	other := s.begin(t, a, e).do(background, a.number(i))
	s.board.post("refused", "")
	for _, err := range []error{err, other} {
		if !errors.Is(err, transport.ErrBusy) {
			return errors.Join(fmt.Errorf("no ErrBusy in %v", err), <-first)
		}
	}
	return <-first
}

// nativeNoAlloc counts the allocations of collectives in steady state.
func (s *suite) nativeNoAlloc(t *testing.T) {
	if !s.has(NoAlloc) {
		t.Skip("not promised")
	}
	if underRace {
		t.Skip("the race detector allocates")
	}
	s.sizes(t, []int{2, 3}, []int{0, 100, 20000}, func(t *testing.T, n, size int) {
		s.steady(t, s.connect(t, n), 300, func(e transport.Endpoint) func(i int) error {
			type prepared struct {
				c        transport.NativeCollective
				dst, src []byte
			}
			var calls []prepared
			for _, c := range nativeCollectives(n) {
				c = ofBytes(c, size)
				dst, src, _ := placed(c, e.Rank(), nativeInput(c, e.Rank(), 0), apart)
				calls = append(calls, prepared{c, dst, src})
			}
			members, x := everyone(n), offersNative(e)
			return func(i int) error {
				// The last one is a meeting of all.
				for k := range calls {
					p := &calls[(k+1)%len(calls)]
					if err := x.Collective(background, call(i, k), members, p.c, p.dst, p.src); err != nil {
						return err
					}
				}
				return nil
			}
		})
	})
}
