package metrics_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/metrics"
)

// TestLate: a replica that comes to every other call when the other has come is the last there.
func TestLate(t *testing.T) {
	const calls = 8
	run(t, metrics.New(nil), 2, func(ctx context.Context, c *gcl.Comm) error {
		for call := range calls {
			if c.Rank() == 1 && call%2 == 0 {
				for !strings.Contains(c.Dump(), fmt.Sprintf("replica 0 is in barrier #%d ", call+1)) {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Millisecond)
			}
			if err := c.Barrier(ctx); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			s := scraped(t, metrics.New(nil)) // whatever the calls were counted by
			if got := s.value("gcl_recent_calls"); got != 2*calls {
				t.Errorf("%v recent calls, want %d", got, 2*calls)
			}
			last := s.value("gcl_recent_calls_last", `replica="1"`)
			if waited := s.value("gcl_recent_calls_waited_seconds", `replica="1"`); last < calls/2 ||
				waited < (calls/2*time.Millisecond).Seconds() {
				t.Errorf("replica 1 was last in %v calls, waited for %v s", last, waited)
			}
		}
		return c.Barrier(ctx)
	})
	if got := scraped(t, metrics.New(nil)); got["gcl_recent_calls"] != nil {
		t.Error("calls of a communicator that is closed")
	}
}
