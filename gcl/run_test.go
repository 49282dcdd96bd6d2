package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

var errBoom = errors.New("boom")

// The first error wins, Run names where it began, and the others learn of it in their collectives and by their context.
func TestRunFirstError(t *testing.T) {
	others := make([]error, 4)
	causes := make([]error, 4)
	err := gcl.Run(watched(t), 4, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 2 {
			return errBoom
		}
		err := c.Barrier(ctx)
		others[c.Replica()] = err
		<-ctx.Done()
		causes[c.Replica()] = context.Cause(ctx)
		return fmt.Errorf("later: %w", err)
	})
	if !errors.Is(err, errBoom) || err.Error() != "gcl: replica 2: boom" {
		t.Errorf("Run: %v", err)
	}
	for r := range others {
		if r == 2 {
			continue
		}
		if err := others[r]; !errors.Is(err, gcl.ErrAborted) || !errors.Is(err, errBoom) ||
			errors.Is(err, gcl.ErrMismatch) {
			t.Errorf("replica %d: %v, want ErrAborted with the cause", r, err)
		} else if text := err.Error(); !strings.Contains(text, "aborted by replica 2") ||
			strings.Count(text, "boom") != 1 {
			t.Errorf("replica %d: %q does not say once what and where", r, text)
		}
		if !errors.Is(causes[r], errBoom) {
			t.Errorf("replica %d: the cause of its context is %v", r, causes[r])
		}
	}
}

// An error that only says that another replica failed does not hide that replica's own, whichever comes first.
func TestRunPrefersTheOrigin(t *testing.T) {
	told := make(chan struct{})
	err := gcl.Run(watched(t), 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 1 {
			c.Abort(errors.New("says replica 1"))
			<-told
			return errBoom
		}
		err := c.Barrier(ctx)
		if !errors.Is(err, gcl.ErrAborted) {
			t.Errorf("replica 0: %v", err)
		}
		context.AfterFunc(ctx, func() { close(told) }) // Run has seen our error
		return err
	})
	if !errors.Is(err, errBoom) {
		t.Errorf("Run: %v, want boom", err)
	}
}

// A replica that returns while others wait for it gives them an error that says so.
func TestRunEarlyReturn(t *testing.T) {
	for _, n := range []int{2, 5} {
		others := make([]error, n)
		err := gcl.Run(watched(t), n, func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() == 1 {
				return nil
			}
			_, others[c.Replica()] = gcl.AllReduce(ctx, c, []float32{1}, gcl.Add)
			return others[c.Replica()]
		})
		for r, err := range append(others, err) {
			if r == 1 {
				continue
			}
			var peer *gcl.PeerError
			if !errors.As(err, &peer) || peer.Replica != 1 || errors.Is(err, gcl.ErrMismatch) ||
				errors.Is(err, gcl.ErrClosed) {
				t.Errorf("replica %d of %d: %v, want a *PeerError of 1", r, n, err)
			} else if !strings.Contains(err.Error(), "replica 1 has left") ||
				!strings.Contains(peer.Error(), "replica 1 has left") {
				t.Errorf("replica %d of %d: %q, %q do not say that it has left", r, n, err, peer)
			}
		}
	}
}

// What was complete stays good when a replica leaves before the others have noticed.
func TestRunLeaveAfterLastCall(t *testing.T) {
	for range 200 {
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			out, err := gcl.AllReduce(ctx, c, []int64{1}, gcl.Add)
			return errors.Join(err, check("sum", out, []int64{3}))
		})
	}
}

func TestRunPanic(t *testing.T) {
	for _, value := range []any{errBoom, "just text", 7} {
		var other error
		err := gcl.Run(watched(t), 3, func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() == 1 {
				panicHere(value)
			}
			err := c.Barrier(ctx)
			if c.Replica() == 2 {
				other = err
			}
			return err
		})
		var p *gcl.PanicError
		if !errors.As(err, &p) || p.Replica != 1 || p.Value != value ||
			!strings.Contains(string(p.Stack), "panicHere") {
			t.Fatalf("Run: %v, want a *PanicError of replica 1 with %v and the stack", err, value)
		}
		if text := err.Error(); !strings.Contains(text, fmt.Sprint("replica 1: panic: ", value)) ||
			!strings.Contains(text, "panicHere") {
			t.Errorf("%q does not show replica, value and stack", text)
		}
		if _, isError := value.(error); errors.Is(err, errBoom) != isError {
			t.Errorf("errors.Is finds %v: %v", value, !isError)
		}
		if !errors.Is(other, gcl.ErrAborted) || !errors.As(other, &p) {
			t.Errorf("replica 2: %v, want ErrAborted with the panic", other)
		}
	}
}

// panicHere is what the tests look for in a stack.
//
//go:noinline
func panicHere(value any) { panic(value) }

func TestRunGoexit(t *testing.T) {
	deferred := false
	var other error
	err := gcl.Run(watched(t), 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 2 {
			defer func() { deferred = true }()
			runtime.Goexit()
		}
		err := c.Barrier(ctx)
		if c.Replica() == 0 {
			other = err
		}
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "replica 2: runtime.Goexit") {
		t.Errorf("Run: %v", err)
	}
	if !errors.Is(other, gcl.ErrAborted) || !strings.Contains(other.Error(), "Goexit") {
		t.Errorf("replica 0: %v", other)
	}
	if !deferred {
		t.Error("the deferred call was not made")
	}
}

func TestRunArguments(t *testing.T) {
	nothing := func(context.Context, *gcl.Comm) error { return nil }
	eight, err := topology.New(topology.Config{Replicas: []int{8}})
	if err != nil {
		t.Fatal(err)
	}
	endpoints := func(n int) []transport.Endpoint {
		out, err := inproc.New(n)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	swapped := endpoints(2)
	slices.Reverse(swapped)
	for _, x := range []struct {
		name string
		err  error
		says string
	}{
		{"n=0", gcl.Run(t.Context(), 0, nothing), "0 replicas"},
		{"n=-3", gcl.Run(t.Context(), -3, nothing), "-3 replicas"},
		{"nil body", gcl.Run(t.Context(), 2, nil), "body"},
		{"nil context", gcl.Run(noContext, 2, nothing), "context"},
		{"topology", gcl.Run(t.Context(), 4, nothing, gcl.WithTopology(eight)), "8 replicas for 4"},
		{"no topology", gcl.Run(t.Context(), 4, nothing, gcl.WithTopology(topology.Topology{})), "0 replicas for 4"},
		{"too few endpoints", gcl.Run(t.Context(), 3, nothing, gcl.WithEndpoints(endpoints(2))), "2 endpoints for 3"},
		{"too many endpoints", gcl.Run(t.Context(), 1, nothing, gcl.WithEndpoints(endpoints(2))), "2 endpoints for 1"},
		{"no endpoints", gcl.Run(t.Context(), 1, nothing, gcl.WithEndpoints([]transport.Endpoint{})), "0 endpoints for 1"},
		{"endpoints in another order", gcl.Run(t.Context(), 2, nothing, gcl.WithEndpoints(swapped)), "rank 0 of 2"},
		{"endpoints of more", gcl.Run(t.Context(), 2, nothing, gcl.WithEndpoints(endpoints(3)[:2])), "rank 0 of 2"},
		{"nil endpoint", gcl.Run(t.Context(), 1, nothing, gcl.WithEndpoints([]transport.Endpoint{nil})), "rank 0 of 1"},
		{"nil option", gcl.Run(t.Context(), 1, nothing, gcl.WithOptions(gcl.Options{}), nil), "option 1 is nil"},
		{"New with a nil option", second(gcl.New(endpoints(1)[0], nil)), "option 0 is nil"},
		{"New without endpoint", second(gcl.New(nil)), "nil endpoint"},
		{"New with endpoints", second(gcl.New(endpoints(1)[0], gcl.WithEndpoints(endpoints(1)))),
			"WithEndpoints is an option of Run alone: New is given its endpoint"},
		{"Join with endpoints", second(gcl.Join(t.Context(), gcl.JoinConfig{Size: 1}, gcl.WithEndpoints(endpoints(1)))),
			"WithEndpoints is an option of Run alone: a process of a job makes its own endpoint"},
		{"New with a topology", second(gcl.New(endpoints(1)[0], gcl.WithTopology(eight))), "8 replicas for 1"},
	} {
		if x.err == nil || !strings.Contains(x.err.Error(), x.says) || !strings.HasPrefix(x.err.Error(), "gcl: ") {
			t.Errorf("%s: %v, want gcl: ...%s", x.name, x.err, x.says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A context that is done before ends Run without a hang, and with its cause.
func TestRunCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBoom)
	err := gcl.Run(ctx, 3, func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) })
	if !errors.Is(err, errBoom) || !errors.Is(err, gcl.ErrAborted) {
		t.Errorf("Run: %v, want ErrAborted with the context's cause", err)
	}
}

// A context that ends while replicas wait ends the wait, on all replicas and on those that do not watch it.
func TestRunCancelledDuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithCancelCause(context.Background())
		errs := make([]error, 4)
		var peers int
		done := make(chan error, 1)
		go func() {
			done <- gcl.Run(outer, 4, func(ctx context.Context, c *gcl.Comm) error {
				if c.Replica() == 3 { // never calls
					<-ctx.Done()
					return nil
				}
				err := c.Barrier(ctx)
				errs[c.Replica()] = err
				return err
			})
		}()
		synctest.Wait()
		cancel(errBoom)
		err := <-done
		for r, err := range append(errs[:3:3], err) {
			if _, ok := errors.AsType[*gcl.PeerError](err); ok {
				peers++
			}
			if !errors.Is(err, errBoom) || !errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrMismatch) {
				t.Errorf("replica %d: %v, want ErrAborted with the context's cause", r, err)
			}
		}
		if peers != 0 {
			t.Errorf("%d of the errors blame a peer for the context", peers)
		}
	})
}

// The context given to one call ends that call, and the communicator everywhere.
func TestDeadlineOfOneReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			switch c.Replica() {
			case 0:
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return c.Barrier(short)
			case 1:
				return c.Barrier(ctx)
			}
			time.Sleep(2 * time.Second) // the bubble's clock: replica 0 has given up
			return c.Barrier(ctx)
		})
		for r, err := range errs {
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, gcl.ErrAborted) {
				t.Errorf("replica %d: %v, want ErrAborted with the deadline", r, err)
			}
			if r > 0 && !strings.Contains(err.Error(), "aborted by replica 0") {
				t.Errorf("replica %d: %q does not say where it began", r, err)
			}
		}
	})
}

// Run names the replica whose deadline it was, though others see its abort.
func TestRunNamesTheOriginOfADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := gcl.Run(watched(t), 3, func(ctx context.Context, c *gcl.Comm) error {
			switch c.Replica() {
			case 2:
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				err := c.Barrier(short)
				time.Sleep(time.Second) // let the others be first to tell Run
				return err
			case 1:
				return c.Barrier(ctx)
			}
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "gcl: replica 2: ") {
			t.Errorf("Run: %v, want replica 2's deadline", err)
		}
	})
}

// A Comm that outlives Run is closed.
func TestRunCloses(t *testing.T) {
	kept := make([]*gcl.Comm, 2)
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		kept[c.Replica()] = c
		return c.Barrier(ctx)
	})
	for r, c := range kept {
		err := c.Barrier(t.Context())
		if !errors.Is(err, gcl.ErrClosed) {
			t.Errorf("replica %d: %v, want ErrClosed", r, err)
		}
		if _, err := c.Dup(t.Context()); !errors.Is(err, gcl.ErrClosed) {
			t.Errorf("replica %d: Dup: %v, want ErrClosed", r, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("replica %d: closing again: %v", r, err)
		}
	}
}

// A thousand Runs leave no goroutine behind, whether they succeed, fail, or are abandoned by a replica.
func TestRunsLeakNothing(t *testing.T) {
	leaktest.Check(t)
	runs := 1000
	if underRace {
		runs = 200
	}
	for i := range runs {
		ctx, stop := lookOn(t)
		err := gcl.Run(ctx, 4, func(ctx context.Context, c *gcl.Comm) error {
			work := c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) })
			if i%3 == 1 && c.Replica() == i%4 {
				return errBoom
			}
			if i%3 == 2 && c.Replica() == i%4 {
				return nil
			}
			return errors.Join(c.Barrier(ctx), work.Wait())
		})
		stop()
		if (err == nil) != (i%3 == 0) {
			t.Fatalf("run %d: %v", i, err)
		}
	}
}

// TestCancelledBlamesNoPeer: whose context ends while it waits for a peer has an error about that, not about the peer.
func TestCancelledBlamesNoPeer(t *testing.T) {
	for _, o := range []gcl.Options{{Method: methods.ClockwiseRing, Implementation: gcl.Syncless},
		{Implementation: gcl.Syncful}} {
		cause := errors.New("enough of it")
		errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				return nil
			}
			ctx, cancel := context.WithCancelCause(ctx)
			go cancel(cause)
			return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]int32, 5), gcl.Add)
		})
		var peer *gcl.PeerError
		if err := errs[0]; !errors.Is(err, cause) || !errors.Is(err, gcl.ErrAborted) || errors.As(err, &peer) {
			t.Errorf("%+v: %v, which blames %v", o, err, peer)
		}
	}
}
