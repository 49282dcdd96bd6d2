//go:build !race

package gcl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/gcl"
)

// TestNativeAllocatesNothing: the To and InPlace forms allocate nothing by an engine either.
func TestNativeAllocatesNothing(t *testing.T) {
	const n, runs, bytes = 2, 2, 1008 // 252 elements, which the mappings of the steps cut into even numbers
	for _, o := range nativeWays() {
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			c = withOptions(c, o)
			for _, s := range steadySteps[float32](bytes, n, []gcl.Operator{gcl.Mean, gcl.SquareAdd}, true) {
				if strings.Contains(s.name, "V") || strings.Contains(s.name, "by counts") {
					continue // a ...V form, of counts that differ
				}
				if err := measure(ctx, c, s, runs, t); err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
			}
			return nil
		}, onEngines(t, n))
	}
}
