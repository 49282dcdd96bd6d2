package gcl_test

import (
	"context"
	"slices"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/methods"
)

// TestNoneOpen: of a communicator whose first connection is closed nothing is open, its Dups neither, nor what Rejoin has
// made of it in Run, and nothing of one that could not be made. SIGQUIT and the log of calls that wait go by that.
func TestNoneOpen(t *testing.T) {
	for name, c := range map[string]struct {
		options gcl.Options
		body    func(ctx context.Context, c *gcl.Comm) error
		fails   bool
	}{
		"dup": {body: func(ctx context.Context, c *gcl.Comm) error {
			_, err := c.Dup(ctx)
			return err
		}},
		"rejoined": {body: func(ctx context.Context, c *gcl.Comm) error {
			c, _, err := gcl.Rejoin(ctx, c)
			if err == nil {
				_, err = c.Dup(ctx)
			}
			return err
		}},
		"not made": {options: gcl.Options{Method: methods.Native}, fails: true},
	} {
		before := slices.Collect(flight.Open())
		body := c.body
		if c.fails {
			body = func(context.Context, *gcl.Comm) error { return nil }
		}
		if err := gcl.Run(t.Context(), 2, body, gcl.WithOptions(c.options)); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		for s := range flight.Open() {
			if !slices.Contains(before, s) {
				t.Errorf("%s: one is open:\n%s", name, s.Now())
			}
		}
	}
}
