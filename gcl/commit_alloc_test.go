//go:build !race

package gcl_test

import (
	"context"
	"testing"

	"gogcl.dev/gcl"
)

// TestCommitSteadyState: a Commit allocates nothing but the first time.
func TestCommitSteadyState(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			nothing := func() error { return nil }
			return measure(ctx, c, step{name: "Commit", call: func(ctx context.Context, c *gcl.Comm) error {
				_, err := c.Commit(ctx, nothing)
				return err
			}}, 2, t)
		})
	}
}
