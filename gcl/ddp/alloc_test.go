//go:build !race

package ddp_test

import (
	"context"
	"errors"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/ddp"
)

// TestAllocations: a step allocates what Comm.Start does for each bucket that starts before Finish, whatever the number
// of gradients, and nothing for the others or with NoSync.
func TestAllocations(t *testing.T) {
	const n, runs, tries, perStart = 2, 5, 10, 13
	for name, k := range map[string]struct {
		step func(ctx context.Context, r *ddp.Reducer) error
		most float64 // of all replicas
	}{
		"no Ready": {func(ctx context.Context, r *ddp.Reducer) error { return r.Finish(ctx) }, 0},
		"NoSync": {func(ctx context.Context, r *ddp.Reducer) error {
			return errors.Join(r.NoSync(), r.Ready(ctx, 0), r.Ready(ctx, 3), r.Finish(ctx))
		}, 0},
		"all in Finish": {func(ctx context.Context, r *ddp.Reducer) error {
			var err error
			for i := range 6 { // without the last gradient no bucket starts
				err = errors.Join(err, r.Ready(ctx, i))
			}
			return errors.Join(err, r.Finish(ctx))
		}, 0},
		"three of four buckets": {func(ctx context.Context, r *ddp.Reducer) error {
			var err error
			for i := 6; i > 0; i-- {
				err = errors.Join(err, r.Ready(ctx, i))
			}
			return errors.Join(err, r.Finish(ctx))
		}, 3 * perStart * n},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, n, func(ctx context.Context, c *gcl.Comm) error {
				r, err := ddp.New(ctx, c, zeros(), ddp.Options{BucketBytes: small})
				if err != nil {
					return err
				}
				// Where another program keeps a replica from running for long, those that wait for it look for a
				// deadlock, which allocates: hence more tries.
				for try := 1; ; try++ {
					step := func() {
						if err == nil {
							err = k.step(ctx, r)
						}
					}
					allocations := 0.0
					if c.Rank() == 0 {
						allocations = testing.AllocsPerRun(runs, step)
					} else {
						for range runs + 1 {
							step()
						}
					}
					if err != nil {
						return err
					}
					again := []bool{allocations > k.most && try < tries}
					if allocations > k.most && try == tries {
						t.Errorf("%v allocations in a step, want at most %v", allocations, k.most)
					}
					if err := gcl.BroadcastInPlace(ctx, c, again, 0); err != nil || !again[0] {
						return err
					}
				}
			})
		})
	}
}
