//go:build !race

package gcl_test

import (
	"context"
	"fmt"
	"testing"

	"gogcl.dev/gcl"
)

// TestLabelsSteadyState: calls like earlier ones allocate nothing with labels either.
func TestLabelsSteadyState(t *testing.T) {
	const n, runs, bytes = 2, 2, 1008
	labelCalls(t)
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		c = c.Named("steady")
		for _, s := range steadySteps[float32](bytes, n, []gcl.Operator{gcl.Add}, true) {
			if err := measure(ctx, c, s, runs, t); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		return nil
	})
}
