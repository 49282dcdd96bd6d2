package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// Many replicas: their first call allocates no more than so much, and they get the right results. A plan of each rank
// at each other takes 12.5 GB for a ring of 256.
func TestManyReplicas(t *testing.T) {
	if underRace {
		t.Skip("it is the number of replicas that counts, and the race detector bounds the number of goroutines")
	}
	type test struct {
		n       int
		options gcl.Options
		mib     uint64
	}
	tests := []test{
		{256, gcl.Options{Method: methods.Direct, Implementation: gcl.Syncless}, 500},
		{256, gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}, 500},
		{1024, gcl.Options{Implementation: gcl.Syncful}, 1024},
		{1024, gcl.Options{Method: methods.RecursiveDoubling, Implementation: gcl.Syncful}, 1024},
		{1024, gcl.Options{Method: methods.RecursiveDoubling, Implementation: gcl.Syncless}, 1024},
		{512, gcl.Options{Method: methods.Direct, Implementation: gcl.Syncless}, 1536},
	}
	if *full { // takes 2 GB of memory
		tests = append(tests, test{1024, gcl.Options{Method: methods.Direct, Implementation: gcl.Syncless}, 6 << 10})
	}
	for _, test := range tests {
		o := test.options
		t.Run(fmt.Sprintf("n=%d/method=%v/implementation=%v", test.n, o.Method, o.Implementation), func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			replicas(t, test.n, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, o)
				for k := range 2 {
					data := make([]int32, 2*c.Size()+1)
					for i := range data {
						data[i] = int32(c.Rank() * (i + k))
					}
					if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil {
						return err
					}
					for i, got := range data {
						if want := int32(c.Size() * (c.Size() - 1) / 2 * (i + k)); got != want {
							return fmt.Errorf("call %d: element %d is %d, want %d", k, i, got, want)
						}
					}
				}
				return nil
			})
			runtime.ReadMemStats(&after)
			if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > test.mib {
				t.Errorf("%d MiB are allocated, want at most %d", mib, test.mib)
			}
		})
	}
}

// lonely hides that replicas share a process: an endpoint with peer memory that does not offer transport.Shared.
type lonely struct{ near }

// The methods on peer memory do with what one replica knows by itself, and with what the replicas of a process share
// they make each plan once: on the first connection and on its Dups.
func TestPlansAreShared(t *testing.T) {
	const n = 5
	call := func(ctx context.Context, c *gcl.Comm) error {
		for _, m := range thinned.Constants() {
			c := withOptions(c, gcl.Options{Method: m, Implementation: gcl.Syncful})
			data := []int32{int32(c.Rank()), 1, 2, 3, 4, 5, 6}
			shard := make([]int32, 2)
			err := errors.Join(gcl.AllReduceInPlace(ctx, c, data, gcl.Add),
				gcl.ReduceScatterTo(ctx, c, shard, data, gcl.Add))
			if err != nil {
				return err
			}
			if data[0] != n*(n-1)/2 || data[6] != 6*n || c.Rank() == 3 && (shard[0] != 6*n*n || shard[1] != 0) {
				return fmt.Errorf("%v: %v, %v", m, data, shard)
			}
		}
		return nil
	}
	open := func(hide bool) []transport.Endpoint {
		endpoints, err := inproc.New(n)
		if err != nil {
			t.Fatal(err)
		}
		if hide {
			for i, e := range endpoints {
				endpoints[i] = lonely{e.(near)}
			}
		}
		return endpoints
	}
	replicas(t, n, call, gcl.WithEndpoints(open(true)))

	endpoints := open(false)
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		return errors.Join(call(ctx, c), call(ctx, dup), dup.Close())
	}, gcl.WithEndpoints(endpoints))
	sets, plans := gcl.PlansOf(endpoints[0].(transport.Shared).Shared())
	// Direct has none: it goes in one pass.
	if want := 2 * (len(thinned.Constants()) - 1); sets != want || plans != n*want {
		t.Errorf("%d sets of %d plans in all, want %d of %d", sets, plans, want, n*want)
	}
}
