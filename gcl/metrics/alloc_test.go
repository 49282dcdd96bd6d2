//go:build !race

package metrics_test

import (
	"context"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/metrics"
	"gogcl.dev/methods"
)

// TestSteadyState: calls that are counted allocate nothing once their series are there, by rings either.
func TestSteadyState(t *testing.T) {
	for name, o := range map[string]gcl.Options{"auto": {}, "ring": {Method: methods.ClockwiseRing}} {
		t.Run(name, func(t *testing.T) {
			m := metrics.New(nil)
			const calls = 100
			run(t, m, 2, func(ctx context.Context, c *gcl.Comm) error {
				c = on(c, m, o)
				data := make([]float32, 100)
				var failed error
				sums := func() {
					for range calls {
						if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Max); err != nil {
							failed = err
						}
					}
				}
				if c.Rank() == 1 {
					for range 11 { // one run to warm up, ten that are counted: of both replicas
						sums()
					}
					return failed
				}
				// goroutines of the runtime may allocate a little
				if n := testing.AllocsPerRun(10, sums); n >= calls/10 {
					t.Errorf("%v allocations in %d calls", n, calls)
				}
				return failed
			})
			if got := scraped(t, m).value("gcl_collective_exec_time_seconds_count"); got != 2*11*calls {
				t.Errorf("%v calls, want %d", got, 2*11*calls)
			}
		})
	}
}
