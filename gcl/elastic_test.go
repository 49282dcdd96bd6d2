package gcl_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"gogcl.dev/gcl"
)

// TestRunsAnew: which errors of a body have it run anew, with the Comm of those that are left.
func TestRunsAnew(t *testing.T) {
	quiet(t)
	until := func(ctx context.Context, c *gcl.Comm) error { // another one is the reason
		for {
			if err := c.Barrier(ctx); err != nil {
				return err
			}
		}
	}
	for _, x := range []struct {
		name  string
		first func(ctx context.Context, c *gcl.Comm) error // what a body does at first, but on replica 1
		one   func(ctx context.Context, c *gcl.Comm) error // on replica 1
		anew  int32                                        // bodies that run anew; 0: Run fails
		left  int
	}{
		{"one fails", until, func(context.Context, *gcl.Comm) error { return errDies }, 3, 1},
		{"one panics", until, func(context.Context, *gcl.Comm) error { panic(errDies) }, 3, 1},
		{"one returns", until, func(context.Context, *gcl.Comm) error { return nil }, 3, 1},
		{"one aborts, and returns what comes of it", until, func(ctx context.Context, c *gcl.Comm) error {
			c.Abort(errDies)
			return until(ctx, c)
		}, 3, 1},
		{"one aborts and rejoins, and nothing has changed", until, func(ctx context.Context, c *gcl.Comm) error {
			c.Abort(errDies)
			return gcl.ErrMembersChanged
		}, 1, 0},
		{"one aborts and rejoins after a step", func(ctx context.Context, c *gcl.Comm) error {
			if done, err := c.Commit(ctx, func() error { return nil }); err != nil || !done {
				return fmt.Errorf("commit: %v: %w", done, err)
			}
			return until(ctx, c)
		}, func(ctx context.Context, c *gcl.Comm) error {
			if done, err := c.Commit(ctx, func() error { return nil }); err != nil || !done {
				return fmt.Errorf("commit: %v: %w", done, err)
			}
			c.Abort(errDies)
			return gcl.ErrMembersChanged
		}, 4, 0},
		{"the function of one fails in a step", func(ctx context.Context, c *gcl.Comm) error {
			_, err := c.Commit(ctx, func() error { return nil })
			return err
		}, func(ctx context.Context, c *gcl.Comm) error {
			_, err := c.Commit(ctx, func() error { return errDies })
			return err
		}, 3, 1},
		{"one is gone in a step", func(ctx context.Context, c *gcl.Comm) error {
			_, err := c.Commit(ctx, func() error { return c.Barrier(ctx) })
			return err
		}, func(context.Context, *gcl.Comm) error { return errDies }, 3, 1},
		{"all ask for it", func(context.Context, *gcl.Comm) error {
			return fmt.Errorf("again: %w", gcl.ErrMembersChanged)
		}, func(context.Context, *gcl.Comm) error { return gcl.ErrMembersChanged }, 4, 0},
		{"all fail by themselves", func(context.Context, *gcl.Comm) error { return errDies },
			func(context.Context, *gcl.Comm) error { return errDies }, 0, 0},
		{"a Rejoin in the body fails", until, func(ctx context.Context, c *gcl.Comm) error {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(errDies)
			_, _, err := gcl.Rejoin(ctx, c)
			return fmt.Errorf("%w: %w", gcl.ErrMembersChanged, err)
		}, 3, 1},
	} {
		var anew atomic.Int32
		err := gcl.Run(watched(t), 4, func(ctx context.Context, c *gcl.Comm) error {
			change, changed := c.Change()
			switch {
			case !changed && c.Replica() == 1:
				return x.one(ctx, c)
			case !changed:
				return x.first(ctx, c)
			case change.Generation > 1:
				return nil // x has said enough
			case len(change.Left) != x.left || c.Size() != 4-x.left:
				t.Errorf("%s: %d are left: %+v", x.name, c.Size(), change)
			}
			anew.Add(1)
			if x.anew == 1 {
				return nil
			}
			return c.Barrier(ctx)
		}, gcl.WithElastic(gcl.Elastic{Min: 1}))
		if anew.Load() != x.anew || (err == nil) != (x.anew > 0) {
			t.Errorf("%s: %d bodies have run anew, want %d: %v", x.name, anew.Load(), x.anew, err)
		}
	}
	// Without the option nothing does.
	err := gcl.Run(watched(t), 2, func(ctx context.Context, c *gcl.Comm) error {
		if _, changed := c.Change(); changed {
			t.Error("a body runs anew without WithElastic")
		}
		return gcl.ErrMembersChanged
	})
	if err == nil {
		t.Error("a body returns ErrMembersChanged without WithElastic, and all is well")
	}
}

// TestElasticMistakes: what is wrong about newcomers is said before anything is sent.
func TestElasticMistakes(t *testing.T) {
	body := func(context.Context, *gcl.Comm) error { return nil }
	newcomer := gcl.JoinConfig{Rank: 7, Size: 2, Rendezvous: "unix:@gcl-mistakes", Newcomer: true}
	elastic := func(least, most int) gcl.CommOption { return gcl.WithElastic(gcl.Elastic{Min: least, Max: most}) }
	for want, err := range map[string]error{
		"WithElastic: Max is 3, want 4 or more, which is": gcl.Run(t.Context(), 4, body, elastic(1, 3)),
		"WithElastic: Max is 1 and Min 2, want Max not":   gcl.Run(t.Context(), 4, body, elastic(2, 1)),
		"WithElastic: Max is -1 and Min 1, want Max not":  gcl.Run(t.Context(), 4, body, elastic(1, -1)),
		"a newcomer to a job that takes none: want WithElastic with a Max, as": gcl.RunProcess(t.Context(), newcomer,
			body, elastic(1, 0)),
		"a newcomer to a job that takes none: want WithElastic": gcl.RunProcess(t.Context(), newcomer, body),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	err := gcl.Run(t.Context(), 1, func(ctx context.Context, c *gcl.Comm) error {
		for name, rejoin := range map[string]func() error{
			"given":  func() error { _, _, err := gcl.Rejoin(ctx, c, gcl.WithOptions(gcl.Options{})); return err },
			"of its": func() error { _, _, err := gcl.Rejoin(ctx, withOptions(c, gcl.Options{CheckEqual: 3})); return err },
		} {
			if err := rejoin(); err == nil || !strings.Contains(err.Error(), "newcomers would not know them: want") {
				t.Errorf("options %s: %v", name, err)
			}
		}
		_, _, err := gcl.Rejoin(ctx, c)
		return err
	}, elastic(1, 2))
	if err != nil {
		t.Error(err)
	}
	t.Setenv("GCL_NEWCOMER", "1")
	err = gcl.RunOrJoin(t.Context(), 2, body, elastic(1, 2))
	if err == nil || !strings.Contains(err.Error(), "GCL_NEWCOMER says that this process comes to a job, and the env") {
		t.Errorf("a newcomer that no launcher has started: %v", err)
	}
	t.Setenv("GCL_NEWCOMER", "yes")
	err = gcl.RunProcess(t.Context(), gcl.JoinConfig{Size: 2, Rendezvous: "unix:@gcl-mistakes"}, body)
	if err == nil || !strings.Contains(err.Error(), "GCL_NEWCOMER=yes: want 1") {
		t.Errorf("GCL_NEWCOMER=yes: %v", err)
	}
}
