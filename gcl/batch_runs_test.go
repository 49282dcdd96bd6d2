package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// batchOf is an all-gather of operands of these lengths, all float32 but those whose numbers are in ints.
func batchOf(c *gcl.Comm, lengths, ints []int) *gcl.Batch {
	b := c.Batch(schedule.AllGather, 0, 0)
	for i, n := range lengths {
		if slices.Contains(ints, i) {
			gcl.Append(b, make([]int64, n*c.Size()), make([]int64, n))
		} else {
			gcl.Append(b, make([]float32, n*c.Size()), make([]float32, n))
		}
	}
	return b
}

// TestTraceOfBatch: a Trace is told the operands of a Batch that has its turn, and of one that never got it.
func TestTraceOfBatch(t *testing.T) {
	for _, k := range []struct {
		lengths, ints []int
		want          string
	}{
		{nil, nil, "0 tensors, DType(0) x 0 = 0 bytes"},
		{[]int{3}, nil, "0 tensors, float32 x 3 = 24 bytes"},
		{[]int{3, 4}, nil, "2 tensors, float32 x 7 = 56 bytes"},
		{[]int{3, 4, 5}, []int{1}, "3 tensors, DType(0) x 12 = 128 bytes"},
		{[]int{3, 4, 5}, []int{0}, "3 tensors, DType(0) x 12 = 120 bytes"},
	} {
		var told []string
		o := gcl.Options{Trace: &gcl.Trace{CollectiveStart: func(c gcl.TraceCall) {
			if c.Replica == 0 {
				told = append(told, fmt.Sprintf("%d tensors, %v x %d = %d bytes",
					c.Tensors, c.DType, c.Elements, c.Bytes))
			}
		}}}
		failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			b := batchOf(c, k.lengths, k.ints)
			if err := b.Run(ctx); err != nil || c.Rank() > 0 {
				return err
			}
			release := make(chan struct{})
			w := c.Start(ctx, func(context.Context, *gcl.Comm) error { <-release; return nil })
			over, cancel := context.WithCancel(ctx)
			cancel()
			if err := b.Run(over); !errors.Is(err, gcl.ErrAborted) || !strings.Contains(err.Error(), "all-gather #2") {
				t.Errorf("without a turn: %v", err)
			}
			close(release)
			return w.Wait()
		}, gcl.WithOptions(o))
		if !slices.Equal(told, []string{k.want, k.want}) {
			t.Errorf("lengths %v: told %q, want %q twice", k.lengths, told, k.want)
		}
	}
}

// TestBatchesAtOnce: a Batch may be run by several goroutines, of a first connection and of a Dup. Batches of Comms
// with other options take turns with the memory of the connection, and a function given to Start may make one.
func TestBatchesAtOnce(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		with, err := c.With(gcl.Options{Reproducible: true, Implementation: gcl.Syncless})
		if err != nil {
			return err
		}
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		sum := func(c *gcl.Comm, n int) (*gcl.Batch, []int64) {
			b, out := c.Batch(schedule.AllReduce, gcl.Add, 0), make([]int64, n)
			in := make([]int64, n)
			for i := range in {
				in[i] = int64(i + c.Rank())
			}
			gcl.Append(b, out, in)
			return b, out
		}
		// All goroutines of one connection make the same call: their order does not matter.
		errs := make(chan error, 8)
		for _, on := range []*gcl.Comm{c, dup} {
			b, out := sum(on, 5000)
			for range 4 {
				go func() {
					var err error
					for range 20 {
						err = errors.Join(err, b.Run(ctx))
					}
					errs <- err
				}()
			}
			for range 4 {
				err = errors.Join(err, <-errs)
			}
			for i, x := range out {
				if x != int64(2*i+1) {
					return fmt.Errorf("element %d: %d, want %d", i, x, 2*i+1)
				}
			}
		}
		// Both Comms' Batches use the connection's layouts and memory in turn.
		one, outOne := sum(c, 3000)
		two, outTwo := sum(with, 3000)
		for range 3 {
			err = errors.Join(err, one.Run(ctx), two.Run(ctx))
		}
		err = errors.Join(err, check("other options", outTwo, outOne))
		work := c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			b, out := sum(c, 7)
			return errors.Join(b.Run(ctx), b.Run(ctx), check("in Start", out, []int64{1, 3, 5, 7, 9, 11, 13}))
		})
		return errors.Join(err, one.Run(ctx), work.Wait(), dup.Close())
	})
}

// TestBatchInStart: a function given to Start runs a Batch that was put together outside it, of the Comm, of one with
// other options and of a group, between the calls around it. One of another connection takes its own turn, and one that
// is given another context than the function's waits until that is done.
func TestBatchInStart(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		with, err := c.With(gcl.Options{Reproducible: true, Implementation: gcl.Syncless})
		if err != nil {
			return err
		}
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		x := []int64{int64(c.Rank())}
		sums := func(on *gcl.Comm) *gcl.Batch {
			b := on.Batch(schedule.AllReduce, gcl.Add, 0)
			gcl.Append(b, x, x)
			return b
		}
		pair := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2})
		for _, b := range []*gcl.Batch{sums(c), sums(with), sums(pair), sums(dup)} {
			work := c.Start(ctx, func(ctx context.Context, inner *gcl.Comm) error {
				return errors.Join(b.Run(ctx), gcl.AllReduceInPlace(ctx, inner, x, gcl.Add), b.Run(ctx))
			})
			if err := errors.Join(gcl.AllReduceInPlace(ctx, c, x, gcl.Max), work.Wait()); err != nil {
				return err
			}
		}
		// 0+1+2+3 and two sums of four alike; three of those; of two, four and two alike; three of four again.
		const want = (6 * 4 * 4) * (4 * 4 * 4) * (2 * 4 * 2) * (4 * 4 * 4)
		if x[0] != want {
			return fmt.Errorf("%d, want %d", x[0], want)
		}
		var kept context.Context
		b := sums(c)
		work := c.Start(ctx, func(ctx context.Context, _ *gcl.Comm) error { kept = ctx; return nil })
		if err := errors.Join(work.Wait(), b.Run(kept)); err != nil {
			return fmt.Errorf("with the context of a function that has returned: %w", err)
		}
		return dup.Close()
	})
	for name, foreign := range map[string]bool{"a context of its own": false, "another connection": true} {
		failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			dup, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			on, release := c, make(chan struct{})
			if foreign {
				on = dup
			}
			x := []int64{1}
			b := on.Batch(schedule.AllReduce, gcl.Add, 0)
			gcl.Append(b, x, x)
			busy := dup.Start(ctx, func(context.Context, *gcl.Comm) error { <-release; return nil })
			err = c.Start(ctx, func(inner context.Context, _ *gcl.Comm) error {
				if !foreign {
					inner = ctx
				}
				over, cancel := context.WithCancel(inner)
				cancel()
				return b.Run(over)
			}).Wait()
			close(release)
			if !errors.Is(err, gcl.ErrAborted) || !strings.Contains(err.Error(), "was asked of the connection before") {
				t.Errorf("%s: %v, want that it waits", name, err)
			}
			return busy.Wait()
		})
	}
}

// TestBatchOutlives: a Batch of a Comm that is closed, or of a function given to Start that has returned, is an error.
func TestBatchOutlives(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		x := []float32{1}
		late := dup.Batch(schedule.AllReduce, gcl.Add, 0)
		gcl.Append(late, x, x)
		if err := errors.Join(late.Run(ctx), dup.Close()); err != nil {
			return err
		}
		if err := late.Run(ctx); !errors.Is(err, gcl.ErrClosed) {
			return fmt.Errorf("after Close: %v, want ErrClosed", err)
		}
		var kept *gcl.Batch
		if err := c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			kept = c.Batch(schedule.AllReduce, gcl.Add, 0)
			gcl.Append(kept, x, x)
			return kept.Run(ctx)
		}).Wait(); err != nil {
			return err
		}
		if err := kept.Run(ctx); err == nil || !strings.Contains(err.Error(), "after it returned") {
			return fmt.Errorf("after the function given to Start: %v", err)
		}
		return c.Barrier(ctx)
	})
}

// TestBatchContext: the error of a context that is done is its cause, and later runs say that the communicator is
// aborted.
func TestBatchContext(t *testing.T) {
	cause := errors.New("enough")
	failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		x := make([]tensor.Float16, 3)
		b := c.Batch(schedule.AllReduce, gcl.Add, 0)
		gcl.Append(b, x, x)
		over, cancel := context.WithCancelCause(ctx)
		cancel(cause)
		if err := b.Run(over); !errors.Is(err, cause) && !errors.Is(err, gcl.ErrAborted) {
			t.Errorf("%v, want the cause", err)
		}
		if err := b.Run(ctx); !errors.Is(err, gcl.ErrAborted) {
			t.Errorf("%v, want ErrAborted", err)
		}
		return nil
	})
}

// TestStartInStart: a Start of another Comm within a function given to Start is an error, and no hang.
func TestStartInStart(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		return c.Start(ctx, func(inside context.Context, own *gcl.Comm) error {
			for _, from := range []*gcl.Comm{c, own} {
				err := from.Start(inside, func(context.Context, *gcl.Comm) error { return nil }).Wait()
				if err == nil || !strings.Contains(err.Error(), "Start inside a function given to Start") {
					return fmt.Errorf("%w, want an error of Start", err)
				}
			}
			return nil
		}).Wait()
	})
}
