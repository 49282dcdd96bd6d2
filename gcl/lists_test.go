package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport/tcp"
)

// lists is the Group of lists that are right.
func lists(groups ...[]int) commgroup.Group {
	g, err := commgroup.Lists(groups)
	if err != nil {
		panic(err)
	}
	return g
}

// dealt is a random partition of n replicas, each group ascending, by their first members.
func dealt(r *rand.Rand, n int) [][]int {
	groups := make([][]int, 1+r.IntN(n))
	for replica := range n {
		g := r.IntN(len(groups))
		groups[g] = append(groups[g], replica)
	}
	groups = slices.DeleteFunc(groups, func(members []int) bool { return len(members) == 0 })
	slices.SortFunc(groups, slices.Compare)
	return groups
}

// withMember is the group that holds a replica.
func withMember(groups [][]int, replica int) []int {
	return groups[slices.IndexFunc(groups, func(members []int) bool { return slices.Contains(members, replica) })]
}

// among are the data of members, by rank.
func among[T any](data []T, members []int) []T {
	var own []T
	for _, r := range members {
		own = append(own, data[r])
	}
	return own
}

// listedCases are what TestListedGroups tries in one group. The data tells replicas apart, not only ranks.
type listedCases struct {
	sum      reduceCase[int64]
	greatest reduceCase[tensor.BFloat16]
	placed   moveCase[int64]
	rooted   rootedCase[int64]
	many     manyCase
}

func newListedCases(n, size int, members []int) listedCases {
	whole, narrow := inputs[int64](gcl.Local, n, size), inputs[tensor.BFloat16](gcl.Max, n, size)
	own := among(whole, members)
	return listedCases{
		newReduceCase(gcl.Add, own), newReduceCase(gcl.Max, among(narrow, members)), newMoveCase(own),
		newRootedCase(gcl.Add, size%len(members), own), newManyCase(gcl.Add, len(members), []int{3, 0, size}),
	}
}

func (x *listedCases) try(ctx context.Context, c *gcl.Comm) error {
	err := errors.Join(
		x.sum.try(ctx, c),
		x.greatest.try(ctx, c),
		x.placed.try(ctx, c),
		x.rooted.try(ctx, c),
		x.many.tryReductions(ctx, c),
		x.many.tryMoves(ctx, c),
		c.Barrier(ctx),
	)
	for _, collective := range schedule.Collectives() {
		if err == nil && (c.Size() > 1 || !collective.Contract().Rooted()) { // its root is rank 1
			err = tryBatch(ctx, c, collective, []int{5, 200})
		}
	}
	return err
}

// listedWays are how TestListedGroups carries calls out.
func listedWays() []gcl.Options {
	return append(bothWays(), gcl.Options{Reproducible: true}, gcl.Options{Reproducible: true,
		Implementation: gcl.Syncless}, gcl.Options{MaxBytesPerTile: 7, StageFragments: true})
}

// tryListed tries all in the group that a replica has in a partition.
func tryListed(ctx context.Context, c *gcl.Comm, groups [][]int, x *listedCases, ways []gcl.Options) error {
	members := withMember(groups, c.Replica())
	c, err := c.Group(lists(groups...))
	if err != nil {
		return err
	}
	if got := c.Members(); !slices.Equal(got, members) || c.Size() != len(members) ||
		members[c.Rank()] != c.Replica() {
		return fmt.Errorf("replica %d is rank %d of %d in %v, want one of %v", c.Replica(), c.Rank(), c.Size(), got,
			members)
	}
	for _, o := range ways {
		c, err := c.With(o)
		if err != nil {
			return err
		}
		if err := x.try(ctx, c); err != nil {
			return fmt.Errorf("method=%v implementation=%v reproducible=%v: %w", o.Method, o.Implementation,
				o.Reproducible, err)
		}
	}
	return nil
}

// TestListedGroups tries every collective, in all forms, by all methods, against the dumb implementation, in random
// groups of any sizes.
func TestListedGroups(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 4))
	for n := 1; n <= 9; n++ {
		tries := 3
		if underRace || testing.Short() {
			tries = 1
		}
		for range tries {
			groups := dealt(random, n)
			size := random.IntN(5 * n)
			ways := listedWays()
			if underRace {
				random.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
				ways = ways[:5]
			}
			t.Run(fmt.Sprintf("n=%d/group=%v", n, lists(groups...)), func(t *testing.T) {
				cases := make([]listedCases, n)
				for r := range n {
					cases[r] = newListedCases(n, size, withMember(groups, r))
				}
				replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
					return tryListed(ctx, c, groups, &cases[c.Replica()], ways)
				})
			})
		}
	}
}

// TestListedGroupsInHybrid: groups that hosts hold evenly work, and others are refused.
func TestListedGroupsInHybrid(t *testing.T) {
	machine := hosts(t, 3, 3, 2)
	even, uneven := [][]int{{0, 2, 4, 5}, {1, 6}, {3, 7}}, [][]int{{0, 1, 3}, {2, 4, 5}, {6, 7}}
	hybrid := gcl.Options{Implementation: gcl.Hybrid}
	cases := make([]listedCases, 8)
	for r := range cases {
		cases[r] = newListedCases(8, 29, withMember(even, r))
	}
	replicas(t, 8, func(ctx context.Context, c *gcl.Comm) error {
		if err := tryListed(ctx, c, even, &cases[c.Replica()], []gcl.Options{hybrid}); err != nil {
			return err
		}
		_, err := grouped(c, lists(uneven...)).With(hybrid)
		var option *gcl.OptionError
		if all := c.Replica() >= 6; all != (err == nil) || !all && !errors.As(err, &option) {
			return fmt.Errorf("replica %d: %v", c.Replica(), err)
		}
		return nil
	}, gcl.WithTopology(machine))
}

// TestListedGroupsOnSockets is TestListedGroups, thinned out.
func TestListedGroupsOnSockets(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		groups := [][]int{{0, 3}, {1, 2, 4}, {5}}
		cases := make([]listedCases, 6)
		for r := range cases {
			cases[r] = newListedCases(6, 23, withMember(groups, r))
		}
		replicas(t, 6, func(ctx context.Context, c *gcl.Comm) error {
			return tryListed(ctx, c, groups, &cases[c.Replica()], fewWaysOnSockets())
		}, sockets(t, network, 6))
	})
}

func fewWaysOnSockets() []gcl.Options {
	return append(eachMethod(), gcl.Options{Reproducible: true})
}

// Several partitions in one program, of which some groups have the same members: none takes the other's messages.
func TestListedGroupsInterleave(t *testing.T) {
	for _, m := range testMethods {
		replicas(t, 5, func(ctx context.Context, c *gcl.Comm) error {
			c = with(c, m)
			var comms []*gcl.Comm
			for _, g := range []commgroup.Group{
				lists([]int{0, 3}, []int{1, 2, 4}), lists([]int{0, 3}, []int{1}, []int{2, 4}),
				{}, lists([]int{0}, []int{1, 2, 3, 4}),
			} {
				comms = append(comms, grouped(c, g))
			}
			for step := range 12 {
				for k := range comms {
					g := comms[(k*3+step)%len(comms)]
					got, err := gcl.AllGather(ctx, g, []int32{int32(100*g.Replica() + step)})
					var want []int32
					for _, r := range g.Members() {
						want = append(want, int32(100*r+step))
					}
					if err := errors.Join(err, check("all-gather", got, want)); err != nil {
						return fmt.Errorf("method=%v step %d, group %v: %w", m, step, g.Members(), err)
					}
				}
			}
			return nil
		})
	}
}

// Lists that a size and a stride can say are that group: their calls count together.
func TestListsOfARegularGroup(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		a := grouped(c, lists([]int{2, 0}, []int{3, 1}))
		b := grouped(c, commgroup.Group{Type: commgroup.Orthogonal, Size: 2})
		for i := range 10 {
			by := a
			if c.Replica() >= 2 && i%3 > 0 {
				by = b
			}
			sum, err := gcl.AllReduce(ctx, by, []int32{int32(i)}, gcl.Add)
			if err := errors.Join(err, check("sum", sum, []int32{int32(2 * i)})); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestListedGroupErrors(t *testing.T) {
	replicas(t, 5, func(ctx context.Context, c *gcl.Comm) error {
		for _, x := range []struct {
			group commgroup.Group
			want  string
		}{
			{lists([]int{0, 3}, []int{1, 2}), "replica 4 is in no group of LISTS({0 3} {1 2})"},
			{lists([]int{0, 3}, []int{1, 2, 4, 5}), "replica 5 of group {1 2 4 5} does not exist among 5 replicas"},
			{commgroup.Group{Type: commgroup.Listed}, "LISTS group without lists"},
		} {
			out, err := c.Group(x.group)
			if err == nil || out != nil || !contains(err, x.want) {
				return fmt.Errorf("%v of 5: %v, error %v, want %q in it", x.group, out, err, x.want)
			}
		}
		return c.Barrier(ctx)
	})
}

// agreed reports whether every two replicas that one of them takes for members of a group have the same lists.
func agreed(views []*[][]int) bool {
	for r, view := range views {
		for _, peer := range withMember(*view, r) {
			if views[peer] != view {
				return false
			}
		}
	}
	return true
}

// unequalViews has each replica reduce in its group of its own view of the lists, and then call one of all. It returns
// what is wrong: where views differ among those that meet, all must get ErrMismatch with both groups.
func unequalViews(ctx context.Context, t *testing.T, views []*[][]int, o gcl.Options,
	opts ...gcl.CommOption) (wrong []string) {
	errs := failuresIn(ctx, t, len(views), func(ctx context.Context, c *gcl.Comm) error {
		g := withOptions(grouped(c, lists(*views[c.Replica()]...)), o)
		if err := gcl.AllReduceInPlace(ctx, g, make([]int32, 30), gcl.Add); err != nil {
			return err
		}
		return last(ctx, c)
	}, opts...)
	ok := agreed(views)
	for r, err := range errs {
		why := ""
		switch {
		case ok && err != nil:
			why = "want none"
		case ok:
		case err == nil:
			why = "want ErrMismatch"
		case !errors.Is(err, gcl.ErrMismatch):
			why = "not ErrMismatch"
		case len(groupsIn(err.Error())) < 2 && !contains(err, "(uint8 x 1, "): // the last call, of all
			why = "names one group"
		}
		if why != "" {
			var text strings.Builder
			for _, v := range views {
				fmt.Fprint(&text, *v, " ")
			}
			wrong = append(wrong, fmt.Sprintf("%smethod=%v implementation=%v: replica %d: %v: %s",
				text.String(), o.Method, o.Implementation, r, err, why))
		}
	}
	return wrong
}

// randomViews gives each of n replicas one of two random partitions.
func randomViews(random *rand.Rand, n int) []*[][]int {
	a, b := dealt(random, n), dealt(random, n)
	for fmt.Sprint(a) == fmt.Sprint(b) {
		b = dealt(random, n)
	}
	views := make([]*[][]int, n)
	for r := range views {
		views[r] = []*[][]int{&a, &b}[random.IntN(2)]
	}
	return views
}

// TestUnequalLists tries random views, in bubbles in which the clock runs only when everybody waits: a hang would end
// at once.
func TestUnequalLists(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 7))
	tried, disagree := 0, 0
	for n := 2; n <= 8; n++ {
		tries := 150
		if underRace || testing.Short() {
			tries = 25
		}
		for range tries {
			views := randomViews(random, n)
			ways := bothWays()
			o := ways[random.IntN(len(ways))]
			tried++
			if !agreed(views) {
				disagree++
			}
			var wrong []string
			synctest.Test(t, func(t *testing.T) { wrong = unequalViews(watched(t), t, views, o) })
			for _, w := range wrong {
				t.Error(w)
			}
		}
	}
	t.Logf("%d views, %d of them unequal", tried, disagree)
	if disagree < tried/2 || disagree == tried {
		t.Errorf("%d of %d views are unequal", disagree, tried)
	}
}

// TestUnequalListsOfBroadcasts: a root may have gone on, to a Close that says what is wrong. Nobody waits for ever, and
// somebody hears of it.
func TestUnequalListsOfBroadcasts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	for n := 2; n <= 6; n++ {
		for range 20 {
			views := randomViews(random, n)
			ways := bothWays()
			o, root := ways[random.IntN(len(ways))], random.IntN(n)
			synctest.Test(t, func(t *testing.T) {
				err := gcl.Run(watched(t), n, func(ctx context.Context, c *gcl.Comm) error {
					g := withOptions(grouped(c, lists(*views[c.Replica()]...)), o)
					return gcl.BroadcastInPlace(ctx, g, make([]int32, 30), root%g.Size())
				})
				var peer *gcl.PeerError
				typed := errors.Is(err, gcl.ErrMismatch) || errors.As(err, &peer)
				if ok := agreed(views); ok != (err == nil) || !ok && !typed {
					t.Errorf("n=%d method=%v implementation=%v root=%d, equal %v: %v",
						n, o.Method, o.Implementation, root, ok, err)
				}
			})
		}
	}
}

// TestUnequalListsOnSockets is TestUnequalLists over sockets, in real time.
func TestUnequalListsOnSockets(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		random := rand.New(rand.NewPCG(1, 8))
		for i := range 24 {
			n := 2 + i%4
			views := randomViews(random, n)
			ways := eachMethod()
			o := ways[random.IntN(len(ways))]
			ctx, stop := lookOn(t)
			for _, w := range unequalViews(ctx, t, views, o, sockets(t, network, n)) {
				t.Error(w)
			}
			stop()
		}
	})
}

// TestUnequalListsTexts: the error has the lists of both.
func TestUnequalListsTexts(t *testing.T) {
	views := [][][]int{{{0, 1}, {2}, {3}}, {{0, 1}, {2, 3}}}
	for r, err := range failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		g := with(grouped(c, lists(views[min(c.Replica(), 1)]...)), methods.Direct)
		if err := gcl.AllReduceInPlace(ctx, g, make([]int32, 3), gcl.Add); err != nil {
			return err
		}
		return last(ctx, c)
	}) {
		if err == nil || !contains(err, "group {0, 1} of LISTS({0 1} {2} {3})") ||
			!contains(err, ", group {0, 1})") { // CONSECUTIVE(2), by lists
			t.Errorf("replica %d: %v", r, err)
		}
	}
	apart := apartOn(t, tcp.TCP, 3)
	views = [][][]int{{{0, 2}, {1}}, {{0}, {1, 2}}, {{0}, {1, 2}}}
	errs := make(chan error, len(apart))
	for r, c := range apart {
		go func() {
			ctx := watched(t)
			g := grouped(c, lists(views[r]...))
			err := gcl.AllReduceInPlace(ctx, g, make([]int32, 3), gcl.Add)
			if err == nil {
				err = last(ctx, c)
			}
			errs <- err
		}()
	}
	for range apart {
		err := <-errs
		// A replica of another process shows by its members and a number of its lists.
		if !errors.Is(err, gcl.ErrMismatch) || strings.Count(err.Error(), " of LISTS(")+
			strings.Count(err.Error(), " of lists ") < 1 {
			t.Errorf("%v", err)
		}
	}
	for _, c := range apart {
		c.Close()
	}
}

// Dump and Explain tell of the group that the replica is in.
func TestListedGroupsAreTold(t *testing.T) {
	replicas(t, 5, func(ctx context.Context, c *gcl.Comm) error {
		g := grouped(c, lists([]int{0, 3}, []int{1, 2, 4}))
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		want := "group {0, 3} of LISTS({0 3} {1 2 4})"
		if g.Size() == 3 {
			want = "group {1, 2, 4} of LISTS({0 3} {1 2 4})"
		}
		if text := g.Dump(); !strings.Contains(text, want) {
			return fmt.Errorf("no %q in\n%s", want, text)
		}
		for _, collective := range schedule.Collectives() {
			if collective == schedule.Barrier {
				continue
			}
			e, err := g.Explain(collective, int64(24*g.Size()), tensor.F32)
			if err != nil || e.Ranks != g.Size() {
				return fmt.Errorf("%v among %d ranks, want %d: %v", collective, e.Ranks, g.Size(), err)
			}
		}
		return c.Barrier(ctx)
	})
}

// TestUnequalListsInHybrid: phases of groups of the same members, in lists that differ elsewhere.
func TestUnequalListsInHybrid(t *testing.T) {
	a, b := [][]int{{0, 1, 2, 3}, {4}, {5}}, [][]int{{0, 1, 2, 3}, {4, 5}}
	for _, method := range []methods.Method{methods.Auto, methods.ClockwiseRing} {
		for odd := range 4 {
			synctest.Test(t, func(t *testing.T) {
				errs := failuresIn(watched(t), t, 6, func(ctx context.Context, c *gcl.Comm) error {
					view := a
					if c.Replica() == odd {
						view = b
					}
					o := gcl.Options{Implementation: gcl.Hybrid, Method: method}
					g := withOptions(grouped(c, lists(view...)), o)
					if err := gcl.AllReduceInPlace(ctx, g, make([]int32, 3000), gcl.Add); err != nil {
						return err
					}
					return last(ctx, c)
				}, gcl.WithTopology(hosts(t, 2, 2, 2)))
				for r, err := range errs {
					if !errors.Is(err, gcl.ErrMismatch) || !contains(err, "the groups whose phases these are") {
						t.Errorf("replica %d: %v", r, err)
					}
				}
			})
		}
	}
}

// TestUnequalListsOfManyReplicas: a group of replicas that its number has no room for.
func TestUnequalListsOfManyReplicas(t *testing.T) {
	const n = 52
	var rest []int
	for r := 2; r < n-1; r++ {
		rest = append(rest, r)
	}
	a := [][]int{{0, n - 1}, {1}, rest}
	b := [][]int{{0, n - 1}, append([]int{1}, rest...)}
	views := make([]*[][]int, n)
	for r := range views {
		views[r] = &a
	}
	synctest.Test(t, func(t *testing.T) {
		for _, w := range unequalViews(watched(t), t, views, gcl.Options{}) {
			t.Error("equal lists: ", w)
		}
	})
	views[n-1] = &b
	synctest.Test(t, func(t *testing.T) {
		for _, w := range unequalViews(watched(t), t, views, gcl.Options{}) {
			t.Error(w)
		}
	})
}

func TestSplit(t *testing.T) {
	replicas(t, 7, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c.Named("grads"), gcl.Options{Method: methods.ClockwiseRing})
		colours := []int{5, -3, 5, 5, 1 << 30, -3, 0}
		pair := grouped(c, lists([]int{0, 1, 2}, []int{3, 4, 5, 6})) // of no account to Split
		for range 2 {
			g, err := pair.Split(ctx, colours[c.Replica()])
			if err != nil {
				return err
			}
			var want []int
			for r, colour := range colours {
				if colour == colours[c.Replica()] {
					want = append(want, r)
				}
			}
			if got := g.Members(); !slices.Equal(got, want) || g.Name() != "grads" || g.Options() != c.Options() {
				return fmt.Errorf("replica %d is in %v, want %v; %q %v", c.Replica(), got, want, g.Name(), g.Options())
			}
			sum, err := gcl.AllReduce(ctx, g, []int32{1}, gcl.Add)
			if err := errors.Join(err, check("sum", sum, []int32{int32(len(want))})); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestSplitErrors(t *testing.T) {
	if _, err := (*gcl.Comm)(nil).Split(t.Context(), 0); err == nil {
		t.Error("a nil Comm is split")
	}
	for r, err := range failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 1 { // does not split
			return c.Barrier(ctx)
		}
		_, err := c.Split(ctx, 0)
		return err
	}) {
		if !errors.Is(err, gcl.ErrMismatch) || r != 1 && !contains(err, "split, which all replicas call: all-gather") {
			t.Errorf("replica %d: %v, want ErrMismatch", r, err)
		}
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if _, err := c.Split(noContext, 0); err == nil || !contains(err, "context") {
			return fmt.Errorf("without a context: %v", err)
		}
		return nil
	})
}
