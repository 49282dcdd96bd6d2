package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gogcl.dev/gcl"
)

// TestDone: an abort closes the channel of all replicas, and Err says why. So does Err after Close.
func TestDone(t *testing.T) {
	boom := errors.New("boom")
	err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
		select {
		case <-c.Done():
			return errors.New("done before the abort")
		default:
		}
		if err := c.Err(); err != nil {
			return err
		}
		// Replica 1 may abort before the others are out of the barrier.
		if err := c.Barrier(ctx); err != nil && !errors.Is(err, boom) {
			return err
		}
		if c.Replica() == 1 {
			c.Abort(boom)
		}
		<-c.Done()
		if err := c.Err(); !errors.Is(err, gcl.ErrAborted) || !errors.Is(err, boom) {
			return fmt.Errorf("error %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := gcl.Run(t.Context(), 1, func(_ context.Context, c *gcl.Comm) error {
		if err := c.Close(); err != nil {
			return err
		}
		if err := c.Err(); !errors.Is(err, gcl.ErrClosed) {
			return fmt.Errorf("error after Close: %w", err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	var none *gcl.Comm
	if none.Done() != nil || none.Err() == nil {
		t.Error("a nil Comm is not closed and well")
	}
}
