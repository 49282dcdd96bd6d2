package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/topology"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
)

var errDies = errors.New("it dies")

// quiet has what is logged go nowhere during a test.
func quiet(t testing.TB) {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(before) })
}

// elastic runs body on n replicas of which one has to be left.
func elastic(t testing.TB, n int, body func(context.Context, *gcl.Comm) error, opts ...gcl.CommOption) {
	t.Helper()
	replicas(t, n, body, append(opts, gcl.WithElastic(gcl.Elastic{Min: 1}))...)
}

// dieAt returns a Trace that ends its replica at the event of a number, from 0 on.
func dieAt(event int) *gcl.Trace {
	tick := func() {
		if event--; event < 0 {
			runtime.Goexit()
		}
	}
	return &gcl.Trace{
		CollectiveStart: func(gcl.TraceCall) { tick() },
		MethodChosen:    func(gcl.TraceCall, gcl.TraceMethod) { tick() },
		RoundStart:      func(gcl.TraceCall, int) { tick() },
		Segment:         func(gcl.TraceCall, int, gcl.TraceSegment) { tick() },
		RoundEnd:        func(gcl.TraceCall, int, error) { tick() },
		CollectiveEnd:   func(gcl.TraceCall, error) { tick() },
	}
}

// roundingData are floats whose sum hangs on the order.
func roundingData(replica int) []float32 {
	out := make([]float32, 37)
	for i := range out {
		out[i] = 1 / float32(3+7*replica+i)
	}
	return out
}

// sumOf is the sum of the data of replicas, in a new job of them.
func sumOf(t testing.TB, left []int, o gcl.Options) []float32 {
	var out []float32
	replicas(t, len(left), func(ctx context.Context, c *gcl.Comm) error {
		sum, err := gcl.AllReduce(ctx, withOptions(c, o), roundingData(left[c.Rank()]), gcl.Add)
		if c.Rank() == 0 {
			out = sum
		}
		return err
	})
	return out
}

// TestRejoin: whoever dies, at whatever event of a loop of all-reduces, the others go on, with the bits of a new job.
func TestRejoin(t *testing.T) {
	quiet(t)
	const n = 4
	for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing, Implementation: gcl.Syncless},
		{Implementation: gcl.Syncful, Method: methods.Direct}} {
		for _, dead := range [][]int{{}, {0}, {2}, {3}, {0, 1}, {1, 3}, {1, 2, 3}, {0, 1, 2}} {
			var left []int
			for r := range n {
				if !slices.Contains(dead, r) {
					left = append(left, r)
				}
			}
			want := sumOf(t, left, o)
			for event := 0; event < 40; event += 1 + event/4 {
				if len(dead) == 0 && event > 0 {
					break
				}
				name := fmt.Sprintf("%v-%v/dead=%v/event=%d", o.Method, o.Implementation, dead, event)
				t.Run(name, func(t *testing.T) {
					elastic(t, n, func(ctx context.Context, c *gcl.Comm) error {
						o := o
						dies := slices.Index(dead, c.Replica())
						if dies >= 0 {
							o.Trace = dieAt(event + 5*dies)
						}
						return loseAndGoOn(ctx, withOptions(c, o).Named("sums"), dies >= 0, left, want)
					})
				})
			}
		}
	}
}

// loseAndGoOn sums up in c, until a replica dies, and then with those that are left.
func loseAndGoOn(ctx context.Context, c *gcl.Comm, dies bool, left []int, want []float32) error {
	own := roundingData(c.Replica())
	var err error
	for range 4 {
		if _, err = gcl.AllReduce(ctx, c, own, gcl.Add); err != nil {
			break
		}
	}
	if dies {
		return errDies
	}
	next, change, err := gcl.Rejoin(ctx, c)
	if err != nil {
		return err
	}
	var gone []int
	for _, d := range change.Left {
		gone = append(gone, d.Replica)
		if peer := (*gcl.PeerError)(nil); !errors.As(d.Why, &peer) || peer.Replica != d.Replica || d.When.IsZero() {
			return fmt.Errorf("departure %+v", d)
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(left, gone)))
	givers := make([]int, len(left))
	for i := range givers {
		givers[i] = i
	}
	switch {
	case change.Generation != 1 || !slices.Equal(change.Replicas, left) || change.Committed != 0,
		!slices.Equal(change.Givers, givers), !slices.Equal(all, []int{0, 1, 2, 3}), !slices.IsSorted(gone):
		return fmt.Errorf("%+v, want replicas %v left", change, left)
	case next.Size() != len(left) || left[next.Rank()] != c.Replica() || next.Name() != "sums",
		next.Options() != c.Options(), next.Err() != nil:
		return fmt.Errorf("rank %d of %d, %q, %v, error %w", next.Rank(), next.Size(), next.Name(), next.Options(),
			next.Err())
	case c.Err() == nil:
		return errors.New("the Comm before has no error")
	}
	if _, _, err := gcl.Rejoin(ctx, c); !errors.Is(err, gcl.ErrClosed) {
		return fmt.Errorf("a second Rejoin: %w, want ErrClosed", err)
	}
	if err := c.Close(); err != nil {
		return fmt.Errorf("closed twice: %w", err)
	}
	for range 3 {
		sum, err := gcl.AllReduce(ctx, next, own, gcl.Add)
		if err != nil {
			return err
		}
		if !slices.Equal(sum, want) {
			return fmt.Errorf("%v, want the bits of a new job: %v", sum, want)
		}
	}
	return nil
}

// TestRejoinAgain: replicas leave one after the other, the lowest or the last, until one is left. Dups and functions
// given to Start are no obstacle.
func TestRejoinAgain(t *testing.T) {
	quiet(t)
	const n = 6
	elastic(t, n, func(ctx context.Context, c *gcl.Comm) error {
		for generation := 1; ; generation++ {
			dup, err := c.Dup(ctx) // fails if somebody has left
			leaves := generation % 2 * (c.Size() - 1)
			switch {
			case c.Size() == 1:
				return err
			case c.Rank() == leaves && generation%3 == 0:
				return nil
			case c.Rank() == leaves:
				return errDies
			}
			if err != nil {
				dup = c
			}
			work := dup.Start(ctx, func(ctx context.Context, dup *gcl.Comm) error { return dup.Barrier(ctx) })
			next, change, err := gcl.Rejoin(ctx, c)
			if err != nil {
				return err
			}
			select {
			case <-work.Done():
			default:
				return errors.New("the function given to Start is not waited for")
			}
			if work.Wait() == nil || dup.Err() == nil {
				return fmt.Errorf("the Dup before has error %w, its call %w", dup.Err(), work.Wait())
			}
			if change.Generation != generation || len(change.Left) != 1 || change.Left[0].Replica != leaves {
				return fmt.Errorf("generation %d: %+v, want replica %d to have left", generation, change, leaves)
			}
			if c = next; c.Size() != n-generation {
				return fmt.Errorf("%d replicas in generation %d", c.Size(), generation)
			}
		}
	})
}

// TestRejoinTellsWhy: a replica whose body fails says why.
func TestRejoinTellsWhy(t *testing.T) {
	quiet(t)
	elastic(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 1 {
			return errDies
		}
		<-c.Done()
		_, change, err := gcl.Rejoin(ctx, c)
		if err != nil {
			return err
		}
		if why := change.Left[0].Why; !errors.Is(why, errDies) || !strings.HasPrefix(why.Error(), "gcl: peer 1: ") {
			return fmt.Errorf("%w, want %w", why, errDies)
		}
		return nil
	})
}

// TestRejoinRefuses: what is wrong with the arguments is an error at once, after which the Comm is as good as before.
func TestRejoinRefuses(t *testing.T) {
	refused := func(what string, err error, want string) error {
		if err == nil || !contains(err, want) {
			return fmt.Errorf("%s: error %w, want %q", what, err, want)
		}
		return nil
	}
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		rejoin := func(ctx context.Context, c *gcl.Comm, opts ...gcl.CommOption) error {
			_, _, err := gcl.Rejoin(ctx, c, opts...)
			return err
		}
		commit := func(ctx context.Context, c *gcl.Comm) error {
			_, err := c.Commit(ctx, func() error { return errors.New("called") })
			return err
		}
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		half := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2})
		errs := []error{
			refused("no Comm", rejoin(ctx, nil), "Rejoin needs a Comm and a context"),
			refused("no context", rejoin(noContext, c), "Rejoin needs a Comm and a context"),
			refused("a Dup", rejoin(ctx, dup), "Rejoin of a Dup"),
			refused("a group", rejoin(ctx, half), "Rejoin of a group of 2 of 4 replicas"),
			refused("a nil option", rejoin(ctx, c, nil), "option 0 is nil"),
			refused("endpoints", rejoin(ctx, c, gcl.WithEndpoints(must(inproc.New(4)))),
				"WithEndpoints is an option of Run"),
			refused("Min", rejoin(ctx, c, gcl.WithElastic(gcl.Elastic{})), "Min is 0, want 1 or more"),
			refused("Max", rejoin(ctx, c, gcl.WithElastic(gcl.Elastic{Min: 1, Max: 4, Replace: true})),
				"Max is 4 and Replace is set, want one of them"),
			refused("options", rejoin(ctx, c, gcl.WithOptions(gcl.Options{MaxBytesPerTile: -1})), "MaxBytesPerTile"),
			refused("a method", rejoin(ctx, c, gcl.WithMethod("direct", star)), "taken"),
			refused("Commit without a Comm", commit(ctx, nil), "Commit needs a Comm and a context"),
			refused("Commit without a context", commit(noContext, c), "Commit needs a Comm and a context"),
			refused("Commit of a Dup", commit(ctx, dup), "Commit of a Dup"),
			refused("Commit of a group", commit(ctx, half), "Commit of a group of 2 of 4 replicas"),
			c.Start(ctx, func(inner context.Context, s *gcl.Comm) error {
				return errors.Join(
					refused("in Start", rejoin(inner, s), "Rejoin inside a function given to Start"),
					refused("in Start", rejoin(inner, c), "Rejoin inside a function given to Start"),
					refused("Commit in Start", commit(inner, s), "Commit inside a function given to Start"),
				)
			}).Wait(),
		}
		_, err = c.Commit(ctx, nil)
		errs = append(errs, refused("Commit without a function", err, "Commit needs a function"))
		return errors.Join(append(errs, c.Barrier(ctx))...)
	})
	for min, want := range map[int]string{-1: "Min is -1, want 1 or more", 0: "Min is 0, want 1 or more",
		4: "Min is 4, want 3 at most, which is the number of replicas"} {
		err := gcl.Run(t.Context(), 3, func(context.Context, *gcl.Comm) error { return nil },
			gcl.WithElastic(gcl.Elastic{Min: min}))
		if err == nil || !contains(err, want) {
			t.Errorf("Min %d: %v, want %q", min, err, want)
		}
	}
}

// TestRejoinUnsupported: a transport that cannot do it is told of before anything is aborted.
func TestRejoinUnsupported(t *testing.T) {
	ends, err := faulty.Wrap(must(inproc.New(2)), 1)
	if err != nil {
		t.Fatal(err)
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		_, _, err := gcl.Rejoin(ctx, c)
		if !errors.Is(err, errors.ErrUnsupported) || !contains(err, "cannot go on without replicas that are gone") {
			return fmt.Errorf("error %w, want ErrUnsupported", err)
		}
		return c.Barrier(ctx)
	}, gcl.WithEndpoints(ends))
}

// TestRejoinEnds: a context that is done, a Comm that is closed, and too few that are left are errors, after which the
// Comm is closed, and the others go on.
func TestRejoinEnds(t *testing.T) {
	quiet(t)
	boom := errors.New("boom")
	elastic(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		own := ctx
		switch c.Rank() {
		case 1:
			ended, cancel := context.WithCancelCause(ctx)
			cancel(boom)
			own = ended
		case 2:
			if err := c.Close(); err != nil {
				return err
			}
		}
		next, change, err := gcl.Rejoin(own, c)
		switch {
		case c.Rank() == 1 && !errors.Is(err, boom), c.Rank() == 2 && !errors.Is(err, gcl.ErrClosed):
			return fmt.Errorf("rank %d: error %w", c.Rank(), err)
		case c.Rank() == 1 || c.Rank() == 2:
			if c.Err() == nil {
				return fmt.Errorf("rank %d: the Comm has no error", c.Rank())
			}
			return nil
		case err != nil:
			return err
		case !slices.Equal(change.Replicas, []int{0, 3}):
			return fmt.Errorf("%+v", change)
		}
		return next.Barrier(ctx)
	})
	var mu sync.Mutex
	few := 0
	err := gcl.Run(watched(t), 4, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() < 2 {
			return boom
		}
		_, _, err := gcl.Rejoin(context.WithoutCancel(ctx), c)
		if err != nil && contains(err, "2 of 4 replicas are left, want 3 or more by WithElastic") {
			mu.Lock()
			defer mu.Unlock()
			few++
		}
		return err
	}, gcl.WithElastic(gcl.Elastic{Min: 3}))
	if !errors.Is(err, boom) || few != 2 {
		t.Errorf("Run: %v; %d replicas heard that too few are left", err, few)
	}
}

// TestElastic: Run is well as long as enough bodies are, and cancels the context of all when they are not.
func TestElastic(t *testing.T) {
	quiet(t)
	for _, x := range []struct{ min, fail int }{{1, 0}, {1, 3}, {1, 4}, {2, 2}, {2, 3}, {4, 1}, {4, 0}} {
		well := 4-x.fail >= x.min
		err := gcl.Run(watched(t), 4, func(ctx context.Context, c *gcl.Comm) error {
			switch {
			case c.Rank() < x.fail && c.Rank()%2 == 1:
				panic(errDies)
			case c.Rank() < x.fail:
				return errDies
			case !well:
				<-ctx.Done()
				return nil
			}
			return ctx.Err()
		}, gcl.WithElastic(gcl.Elastic{Min: x.min}))
		if (err == nil) != well || err != nil && !errors.Is(err, errDies) {
			t.Errorf("%d of 4 fail, Min %d: %v", x.fail, x.min, err)
		}
	}
}

// TestRejoinTopology: a topology and a network stay as long as their number of replicas does, and others may be given.
func TestRejoinTopology(t *testing.T) {
	quiet(t)
	machine := func(domains ...int) topology.Topology {
		out, err := topology.New(topology.Config{Domains: domains})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	pairs := machine(0, 0, 1, 1)
	network := gcl.WithNetwork(cost.Model{Network: cost.Machine(pairs)})
	domains := func(c *gcl.Comm) int { // that a ring of all needs
		in, err := c.With(gcl.Options{Link: gcl.IPULink})
		if err == nil && in != nil {
			return 1
		}
		return 2
	}
	for _, x := range []struct {
		name string
		dies bool
		opts []gcl.CommOption
		want int
		err  string
	}{
		{"kept", false, nil, 2, ""},
		{"dropped", true, nil, 1, ""},
		{"replaced", false, []gcl.CommOption{gcl.WithTopology(machine(0, 0, 0, 0))}, 1, ""},
		{"given", true, []gcl.CommOption{gcl.WithTopology(machine(0, 1, 1))}, 2, ""},
		{"wrong", true, []gcl.CommOption{gcl.WithTopology(pairs)}, 0, "a topology of 4 replicas for 3"},
		{"wrong network", true, []gcl.CommOption{network}, 0, "WithNetwork: a network of 4 replicas for 3"},
	} {
		elastic(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			if x.dies && c.Rank() == 1 {
				return errDies
			}
			next, _, err := gcl.Rejoin(ctx, c, x.opts...)
			if x.err != "" {
				if err == nil || !contains(err, x.err) {
					return fmt.Errorf("%s: error %w, want %q", x.name, err, x.err)
				}
				return nil
			}
			if err != nil {
				return err
			}
			if got := domains(next); got != x.want {
				return fmt.Errorf("%s: %d domains, want %d", x.name, got, x.want)
			}
			return next.Barrier(ctx)
		}, gcl.WithTopology(pairs), network)
	}
}

// TestRejoinOptions: own methods, options and the environment's stay; options that are given go before.
func TestRejoinOptions(t *testing.T) {
	quiet(t)
	t.Setenv("GCL_OPTIONS", `{"maxBytesPerTile": "1000"}`)
	m := own(t, "star")
	opts := []gcl.CommOption{gcl.WithMethod("star", star), gcl.WithOptions(gcl.Options{Method: m})}
	for name, again := range map[string][]gcl.CommOption{"none": nil, "the same": opts,
		"others": {gcl.WithOptions(gcl.Options{Method: methods.Direct, MaxBytesPerTile: 7})}} {
		elastic(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 2 {
				return errDies
			}
			next, _, err := gcl.Rejoin(ctx, withOptions(c, gcl.Options{Method: m, CheckEqual: 3}), again...)
			if err != nil {
				return err
			}
			want := gcl.Options{Method: m, CheckEqual: 3, MaxBytesPerTile: 1000}
			switch name {
			case "the same":
				want.CheckEqual = 0
			case "others":
				want = gcl.Options{Method: methods.Direct, MaxBytesPerTile: 1000}
			}
			if next.Options() != want {
				return fmt.Errorf("%s: options %+v, want %+v", name, next.Options(), want)
			}
			if next, err = next.With(gcl.Options{Method: m}); err != nil {
				return err
			}
			return gcl.AllReduceInPlace(ctx, next, []int32{1, 2, 3}, gcl.Add)
		}, opts...)
	}
}
