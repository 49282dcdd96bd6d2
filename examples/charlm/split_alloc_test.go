//go:build !race

package main

import (
	"context"
	"testing"

	"gogcl.dev/gcl"
)

// TestReadAllocatesNothing counts on replica 0 what all replicas allocate. One that another program keeps from running
// for milliseconds makes the others look for a deadlock, which allocates: hence more tries.
func TestReadAllocatesNothing(t *testing.T) {
	const tries, runs = 10, 5
	for _, n := range []int{1, 2, 4} {
		onDecoders(t, n, func(ctx context.Context, d *decoder) error {
			again := []bool{true}
			for try := 1; again[0]; try++ {
				var err error
				two := func() { // since AllocsPerRun rounds down, and a replica may be ahead
					for range 2 {
						if d.at = 1; err == nil {
							err = d.read(ctx, 1)
						}
					}
				}
				allocated := 0.0
				if d.comm.Rank() == 0 {
					allocated = testing.AllocsPerRun(runs, two)
				} else {
					for range runs + 1 { // one to warm up
						two()
					}
				}
				if err != nil {
					return err
				}
				if again[0] = allocated > 0 && try < tries; allocated > 0 && try == tries {
					t.Errorf("%d replicas: %v allocations in two reads", n, allocated)
				}
				if err := gcl.BroadcastInPlace(ctx, d.comm, again, 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
