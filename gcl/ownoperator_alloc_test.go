//go:build !race

package gcl_test

import (
	"context"
	"fmt"
	"testing"

	"gogcl.dev/gcl"
)

// TestOwnOperatorSteadyState: calls with such an operator allocate nothing, on peer memory and by messages.
func TestOwnOperatorSteadyState(t *testing.T) {
	const n, runs, bytes = 3, 2, 6000
	for _, o := range fewWays() {
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			c = withOptions(c, o)
			for _, s := range steadySteps[float32](bytes, n, []gcl.Operator{ownOperator[float32]()}, false) {
				if err := measure(ctx, c, s, runs, t); err != nil {
					return fmt.Errorf("%+v: %s: %w", o, s.name, err)
				}
			}
			return nil
		})
	}
}
