package gcl_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport/inproc"
)

// networkOf is a network by its name.
func networkOf(t testing.TB, name string) cost.Model {
	t.Helper()
	n, err := cost.ParseNetwork(name)
	if err != nil {
		t.Fatal(err)
	}
	return cost.Model{Network: n, Overhead: 500 * time.Nanosecond}
}

// TestAutoByPrice: on a known network all members take the cheapest method, Explain cites the price, and results are
// right, of all collectives, in the group of all and in others.
func TestAutoByPrice(t *testing.T) {
	t.Parallel()
	const n = 8
	for _, name := range []string{"torus:2x2x2", "fattree:4x2"} {
		for _, elements := range []int{8, 1 << 12, 1 << 16} {
			var mu sync.Mutex
			seen := map[string]map[string]bool{}
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, gcl.Options{Implementation: gcl.Syncless})
				for _, g := range []commgroup.Group{{}, {Type: commgroup.Consecutive, Size: 4},
					{Type: commgroup.Consecutive, Size: 4, Stride: 2}} {
					in := grouped(c, g)
					own := slices.Repeat([]float32{float32(in.Rank() + 1)}, elements)
					sum, err := gcl.AllReduce(ctx, in, own, gcl.Add)
					if err != nil {
						return err
					}
					k := in.Size()
					if want := float32(k * (k + 1) / 2); sum[0] != want || sum[elements-1] != want {
						t.Errorf("%s: sums %v and %v, want %v", name, sum[0], sum[elements-1], want)
					}
					all, err := gcl.AllGather(ctx, in, slices.Repeat([]int32{int32(in.Rank())}, elements))
					if err != nil {
						return err
					}
					for r := range k {
						if all[r*elements] != int32(r) {
							t.Errorf("%s: rank %d has %d of rank %d", name, in.Rank(), all[r*elements], r)
						}
					}
					for _, collective := range schedule.Collectives() {
						e, err := in.Explain(collective, 4*int64(elements), tensor.F32)
						if err != nil {
							return err
						}
						if !strings.Contains(e.Why, "by price: ") ||
							!strings.HasPrefix(e.Machine, "network of 8 replicas and") {
							t.Errorf("%s: %s on %s", name, e.Why, e.Machine)
						}
						least := time.Duration(math.MaxInt64)
						for _, x := range e.Candidates {
							if x.Implementation == gcl.Syncless && !(x.Method == methods.SendToAll && g.Stride > 1) {
								least = min(least, x.Estimate)
							}
						}
						i := slices.IndexFunc(e.Candidates, func(x gcl.Candidate) bool { return x.Chosen })
						if i < 0 || float64(e.Candidates[i].Estimate) > 1.05*float64(least) {
							t.Errorf("%s: the choice is not within 1.05 of %v:\n%v", name, least, e)
						}
						mu.Lock()
						key := collective.String() + g.String()
						if seen[key] == nil {
							seen[key] = map[string]bool{}
						}
						seen[key][e.Why] = true
						mu.Unlock()
					}
				}
				return nil
			}, gcl.WithNetwork(networkOf(t, name)))
			for key, whys := range seen {
				if len(whys) != 1 {
					t.Errorf("%s: members differ in %s: %v", name, key, whys)
				}
			}
		}
	}
}

// TestPricedAfterOptions: what options say goes before a price, and replicas that share memory go over it.
func TestPricedAfterOptions(t *testing.T) {
	t.Parallel()
	rules, err := methods.ParseRules([]byte("all-reduce 8 0 meet_in_middle_ring"))
	if err != nil {
		t.Fatal(err)
	}
	replicas(t, 8, func(_ context.Context, c *gcl.Comm) error {
		if c.Replica() > 0 {
			return nil
		}
		for _, x := range []struct {
			options gcl.Options
			bytes   int64
			method  methods.Method // Auto: any
			why     string
		}{
			{gcl.Options{}, 1 << 20, methods.Direct, "since on peer memory it is one pass"},
			{gcl.Options{Implementation: gcl.Syncless}, 1 << 20, methods.Auto, "by price: "},
			{gcl.Options{Implementation: gcl.Syncless, Reproducible: true}, 1 << 20, methods.Auto, "by price: "},
			{gcl.Options{Implementation: gcl.Syncless, Method: methods.ClockwiseRing}, 1 << 20, methods.ClockwiseRing,
				"as the options ask"},
			{gcl.Options{Implementation: gcl.Syncless, Tuning: rules}, 1 << 20, methods.MeetInMiddleRing,
				"all-reduce 8 0"},
			{gcl.Options{Implementation: gcl.Syncless, MaxBroadcastSize: 1 << 20}, 1 << 10, methods.SendToAll,
				"is at or below 1048576"},
			{gcl.Options{Implementation: gcl.Syncless, MaxBroadcastSize: 64}, 1 << 10, methods.Auto, "by price: "},
		} {
			e, err := withOptions(c, x.options).Explain(schedule.AllReduce, x.bytes, tensor.F32)
			if err != nil {
				return err
			}
			if x.method != methods.Auto && e.Method != x.method || !strings.Contains(e.Why, x.why) {
				t.Errorf("%+v: %s, want %v, %s", x.options, e.Why, x.method, x.why)
			}
		}
		return nil
	}, gcl.WithNetwork(networkOf(t, "torus:2x2x2")))
	replicas(t, 8, func(_ context.Context, c *gcl.Comm) error { // no network is given
		c = withOptions(c, gcl.Options{Implementation: gcl.Syncless})
		e, err := c.Explain(schedule.AllReduce, 1<<20, tensor.F32)
		if strings.Contains(e.Why, "by price") {
			t.Error(e.Why)
		}
		return err
	})
}

// TestNetworksDiffer: members with other networks are told, whatever their methods.
func TestNetworksDiffer(t *testing.T) {
	t.Parallel()
	ends, err := inproc.New(2)
	if err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var members sync.WaitGroup
	for r, name := range []string{"fattree:2", "torus:2"} {
		members.Go(func() {
			c, err := gcl.New(ends[r], gcl.WithNetwork(networkOf(t, name)))
			if err == nil {
				_, err = gcl.AllReduce(t.Context(), c, []float32{1}, gcl.Add)
				c.Close()
			}
			errs[r] = err
		})
	}
	members.Wait()
	if err := errors.Join(errs...); !errors.Is(err, gcl.ErrMismatch) ||
		!strings.Contains(err.Error(), "or the topology or network") {
		t.Errorf("%v, want ErrMismatch", err)
	}
}

// TestNetworksAreShared: Comms on endpoints that share a process have one choice for all, if their networks are equal.
func TestNetworksAreShared(t *testing.T) {
	t.Parallel()
	line, err := topology.New(topology.Config{Shape: topology.OpenLadder, Replicas: []int{3}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what   string
		given  func(replica int) gcl.CommOption
		shared bool
	}{
		{"one network", func(int) gcl.CommOption { return gcl.WithNetwork(networkOf(t, "torus:3")) }, true},
		{"one topology", func(int) gcl.CommOption { return gcl.WithTopology(line) }, true},
		{"others", func(r int) gcl.CommOption {
			return gcl.WithNetwork(networkOf(t, []string{"torus:3", "fattree:3", "clique:3"}[r]))
		}, false},
	} {
		ends, err := inproc.New(3)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[any]bool{}
		for r, end := range ends {
			c, err := gcl.New(end, x.given(r))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			seen[gcl.PricesOf(c)] = true
		}
		if len(seen) != map[bool]int{true: 1, false: 3}[x.shared] {
			t.Errorf("%s: prices of %d kinds", x.what, len(seen))
		}
	}
}

// TestNetworkErrors: a network that cannot be is refused before anything is sent.
func TestNetworkErrors(t *testing.T) {
	t.Parallel()
	slow := networkOf(t, "torus:2")
	slow.Overhead = -1
	for _, x := range []struct {
		model cost.Model
		want  string
	}{
		{cost.Model{}, "WithNetwork: cost: no network"},
		{slow, "WithNetwork: cost: an overhead of -1ns, want 0 or more"},
		{networkOf(t, "torus:3"), "WithNetwork: a network of 3 replicas for 2"},
	} {
		err := gcl.Run(t.Context(), 2, func(context.Context, *gcl.Comm) error { return nil }, gcl.WithNetwork(x.model))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}
