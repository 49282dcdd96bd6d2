package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
	"gogcl.dev/transport/inproc"
)

// Functions given to Start run one after the other in program order, between the calls around them.
func TestStartKeepsTheOrder(t *testing.T) {
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		v := []int64{int64(c.Rank())} // 0, 1, 2
		var order []string
		add := c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			order = append(order, "add")
			return gcl.AllReduceInPlace(ctx, c, v, gcl.Add) // 3
		})
		square := c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			order = append(order, "square")
			return gcl.AllReduceInPlace(ctx, c, v, gcl.SquareAdd) // 27
		})
		after, err := gcl.AllGather(ctx, c, []int64{1}) // runs after both
		order = append(order, "gather")
		third := c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			order = append(order, "third")
			return gcl.AllReduceInPlace(ctx, c, v, gcl.Add)
		})
		if err := errors.Join(err, third.Wait(), square.Wait(), add.Wait(), add.Wait(), // in any order, twice
			check("after", after, []int64{1, 1, 1}), check("v", v, []int64{81})); err != nil {
			return err
		}
		if got := strings.Join(order, " "); got != "add square gather third" {
			return fmt.Errorf("order %s", got)
		}
		return nil
	})
}

// Start returns at once and the caller computes while the communication waits.
func TestStartOverlaps(t *testing.T) {
	computed := make([]chan struct{}, 2)
	for r := range computed {
		computed[r] = make(chan struct{})
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		v := []int32{1}
		work := c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			<-computed[1-c.Rank()] // which the other replica does after its own Start
			return gcl.AllReduceInPlace(ctx, c, v, gcl.Add)
		})
		close(computed[c.Rank()])
		return errors.Join(work.Wait(), check("v", v, []int32{2}))
	})
}

// The Comm of a function given to Start makes groups and takes options like any other, and may be used by several
// goroutines.
func TestStartedComm(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		return c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			pair := with(grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2}), methods.ClockwiseRing)
			sum, err := gcl.AllReduce(ctx, pair, []int32{1}, gcl.Add)
			if err := errors.Join(err, check("pair", sum, []int32{2})); err != nil {
				return err
			}
			done := make(chan error, 3)
			for range cap(done) {
				go func() { done <- c.Barrier(ctx) }()
			}
			return errors.Join(<-done, <-done, <-done, goodCall(ctx, c))
		}).Wait()
	})
}

// What must not be done with Start is an error, which counts as a call where it stands for one, and leaves the
// communicator usable.
func TestStartMisuse(t *testing.T) {
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		var kept *gcl.Comm
		err := c.Start(ctx, func(ctx context.Context, inner *gcl.Comm) error {
			kept = inner
			_, dup := inner.Dup(ctx)
			for _, x := range []struct {
				what string
				err  error
				says string
			}{
				{"Start inside", inner.Start(ctx, func(context.Context, *gcl.Comm) error { return nil }).Wait(), "Start inside"},
				{"Dup inside", dup, "Dup inside"},
				{"Close inside", inner.Close(), "Close inside"},
				{"the outer Comm inside", c.Barrier(ctx), "another Comm"},
				{"a group of the outer Comm inside", grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1}).Barrier(ctx), "another Comm"},
			} {
				if why := isArgumentError(x.err); why != nil || !strings.Contains(x.err.Error(), x.says) {
					return fmt.Errorf("%s: %w, want ...%s", x.what, why, x.says)
				}
			}
			return goodCall(ctx, inner)
		}).Wait()
		if err != nil {
			return err
		}
		if err := kept.Barrier(ctx); isArgumentError(err) != nil ||
			!strings.Contains(err.Error(), "after it returned") {
			return fmt.Errorf("the inner Comm after the function returned: %v", err)
		}
		for i, err := range []error{
			c.Start(ctx, nil).Wait(),
			c.Start(noContext, func(context.Context, *gcl.Comm) error { return nil }).Wait(),
		} {
			if isArgumentError(err) != nil {
				return fmt.Errorf("bad Start %d: %v", i, err)
			}
		}
		return goodCall(ctx, c)
	})
}

// Misuse by one replica alone is found, since it counts as a call.
func TestStartMisuseByOne(t *testing.T) {
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		return c.Start(ctx, func(ctx context.Context, inner *gcl.Comm) error {
			if c.Replica() == 0 && isArgumentError(c.Barrier(ctx)) != nil {
				t.Error("no error")
			}
			return goodCall(ctx, inner)
		}).Wait()
	})
	for r, err := range errs {
		if !errors.Is(err, gcl.ErrMismatch) {
			t.Errorf("replica %d: %v, want ErrMismatch", r, err)
		}
	}
}

// An error of a function is its Work's, and no more than that; that of a collective in it is everybody's.
func TestStartErrors(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		err := c.Start(ctx, func(context.Context, *gcl.Comm) error { return errBoom }).Wait()
		if err != errBoom {
			return fmt.Errorf("Wait: %v, want boom itself", err)
		}
		return goodCall(ctx, c)
	})
	errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		n := 4
		if c.Replica() == 1 {
			n = 5
		}
		return c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]int8, n), gcl.Add)
		}).Wait()
	})
	for r, err := range errs {
		if !errors.Is(err, gcl.ErrMismatch) {
			t.Errorf("replica %d: %v, want ErrMismatch", r, err)
		}
	}
}

// A panic in a function given to Start is its Work's error and aborts the others.
func TestStartPanics(t *testing.T) {
	for name, crash := range map[string]func(){"panic": func() { panicHere(errBoom) }, "Goexit": runtime.Goexit} {
		errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() != 2 {
				return c.Barrier(ctx)
			}
			return c.Start(ctx, func(context.Context, *gcl.Comm) error {
				crash()
				return nil
			}).Wait()
		})
		var p *gcl.PanicError
		if name == "panic" && (!errors.As(errs[2], &p) || p.Replica != 2 ||
			!strings.Contains(string(p.Stack), "panicHere") || !errors.Is(errs[2], errBoom)) {
			t.Errorf("Wait: %v, want a *PanicError of replica 2", errs[2])
		}
		if name == "Goexit" && (errs[2] == nil || !strings.Contains(errs[2].Error(), "Goexit")) {
			t.Errorf("Wait: %v, want an error about Goexit", errs[2])
		}
		for r, err := range errs[:2] {
			if !errors.Is(err, gcl.ErrAborted) || !strings.Contains(err.Error(), "aborted by replica 2") {
				t.Errorf("%s: replica %d: %v, want ErrAborted by replica 2", name, r, err)
			}
		}
	}
}

// A call that waits behind a Start gives up when its context is done, which aborts the communicator, since the peers
// wait for the call.
func TestCancelledInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() == 1 {
				return c.Barrier(ctx)
			}
			work := c.Start(ctx, func(context.Context, *gcl.Comm) error {
				<-release
				return nil
			})
			own, cancel := context.WithCancelCause(ctx)
			gaveUp := make(chan error)
			go func() { gaveUp <- c.Barrier(own) }()
			synctest.Wait() // it is in the queue
			cancel(errBoom)
			err := <-gaveUp
			close(release)
			if wait := work.Wait(); wait != nil {
				t.Error(wait)
			}
			return err
		})
		for r, err := range errs {
			if !errors.Is(err, errBoom) || !errors.Is(err, gcl.ErrAborted) ||
				!strings.HasPrefix(err.Error(), "gcl: barrier #1: replica ") {
				t.Errorf("replica %d: %v, want ErrAborted with the context's cause", r, err)
			}
		}
	})
}

// A context that is done when a function's turn comes is for the function to see; its collectives fail.
func TestStartWithADeadContext(t *testing.T) {
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		dead, cancel := context.WithCancelCause(ctx)
		cancel(errBoom)
		return c.Start(dead, func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) }).Wait()
	})
	for r, err := range errs {
		if !errors.Is(err, errBoom) || !errors.Is(err, gcl.ErrAborted) {
			t.Errorf("replica %d: %v", r, err)
		}
	}
}

// Run, and Close, wait for functions given to Start, on every connection, also when nobody else does.
func TestRunWaitsForWorks(t *testing.T) {
	leaktest.Check(t)
	for _, dup := range []bool{false, true} {
		finished := make([]bool, 3) // written by the functions, read after Run: a race unless Run waits
		v := []int32{1, 1, 1}
		synctest.Test(t, func(t *testing.T) {
			leave := make(chan struct{})
			go func() {
				synctest.Wait() // all bodies have returned, all functions wait
				close(leave)
			}()
			replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
				r := c.Replica()
				if dup {
					var err error
					if c, err = c.Dup(ctx); err != nil {
						return err
					}
				}
				c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
					<-leave
					err := gcl.AllReduceInPlace(ctx, c, v[r:r+1], gcl.Add)
					finished[r] = err == nil
					return err
				})
				return nil
			})
		})
		for r := range finished {
			if !finished[r] || v[r] != 3 {
				t.Errorf("dup %v: replica %d did not finish: %d", dup, r, v[r])
			}
		}
	}
}

// Dup opens a connection that does not wait for the first one, and the two do not mix.
func TestDupIsIndependent(t *testing.T) {
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 3}),
			gcl.Options{Method: methods.ClockwiseRing, Reproducible: true})
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if d.Options() != c.Options() || d.Rank() != c.Rank() || d.Size() != c.Size() {
			return errors.New("not the group and options of the first")
		}
		release := make(chan struct{})
		v := []int32{1}
		work := c.Start(ctx, func(ctx context.Context, inner *gcl.Comm) error {
			<-release                              // held until the other connection has done its calls
			if err := d.Barrier(ctx); err != nil { // which may be used in here
				return err
			}
			return gcl.AllReduceInPlace(ctx, inner, v, gcl.Add)
		})
		for i := range 5 {
			out, err := gcl.AllReduce(ctx, d, []int32{int32(i)}, gcl.Add)
			if err := errors.Join(err, check("on the second", out, []int32{3 * int32(i)})); err != nil {
				return err
			}
		}
		close(release)
		return errors.Join(work.Wait(), check("on the first", v, []int32{3}))
	})
}

// In a function given to Start another connection may be used, also one that is busy: the call waits for its turn
// there.
func TestBusyDupInsideStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		go func() {
			synctest.Wait() // both connections of both replicas are in their functions
			close(release)
		}()
		replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			busy := d.Start(ctx, func(context.Context, *gcl.Comm) error {
				<-release
				return nil
			})
			work := c.Start(ctx, func(ctx context.Context, _ *gcl.Comm) error { return d.Barrier(ctx) })
			return errors.Join(work.Wait(), busy.Wait())
		})
	})
}

// Both connections carry a collective at the same time: each is begun by a replica that the other connection's is
// waiting for.
func TestDupIsConcurrent(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		first, then := c, d
		if c.Replica() == 1 {
			first, then = d, c
		}
		work := first.Start(ctx, func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) })
		return errors.Join(then.Barrier(ctx), work.Wait())
	})
}

// Dups of Dups, in groups, with connections used from several goroutines at once.
func TestManyDups(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		c = grouped(c, commgroup.Group{Type: commgroup.Orthogonal, Size: 2})
		lanes := []*gcl.Comm{c}
		for i := range 5 {
			d, err := lanes[i].Dup(ctx)
			if err != nil {
				return err
			}
			lanes = append(lanes, d)
		}
		done := make(chan error)
		for i, lane := range lanes {
			go func() {
				var err error
				for k := 0; k < 20 && err == nil; k++ {
					var out []int32
					out, err = gcl.AllGather(ctx, lane, []int32{int32(100*i + c.Replica())})
					if err == nil {
						x := int32(100*i + c.Replica()%2)
						err = check(fmt.Sprintf("lane %d", i), out, []int32{x, x + 2})
					}
				}
				done <- err
			}()
		}
		var err error
		for range lanes {
			err = errors.Join(err, <-done)
		}
		return err
	})
}

// An error on one connection is one on all of them.
func TestErrorOnADup(t *testing.T) {
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		if c.Replica() == 0 {
			err = gcl.AllReduceInPlace(ctx, d, make([]int32, 3), gcl.Add)
		} else {
			err = gcl.AllReduceInPlace(ctx, d, make([]int32, 4), gcl.Add)
		}
		if !errors.Is(err, gcl.ErrMismatch) {
			return fmt.Errorf("on the second: %w", err)
		}
		return c.Barrier(ctx)
	})
	for r, err := range errs {
		if !errors.Is(err, gcl.ErrAborted) || !errors.Is(err, gcl.ErrMismatch) {
			t.Errorf("replica %d: %v, want ErrAborted with the mismatch", r, err)
		}
	}
}

func TestDupArguments(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if _, err := c.Dup(noContext); isArgumentError(err) != nil {
			return fmt.Errorf("nil context: %v", err)
		}
		return goodCall(ctx, c)
	})
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 0 {
			c.Abort(errBoom)
		}
		if err := c.Barrier(ctx); !errors.Is(err, gcl.ErrAborted) {
			return err
		}
		_, err := c.Dup(ctx)
		return err
	})
	for r, err := range errs {
		if !errors.Is(err, gcl.ErrAborted) || !errors.Is(err, errBoom) ||
			!strings.HasPrefix(err.Error(), "gcl: dup: replica ") {
			t.Errorf("replica %d: Dup after an abort: %v", r, err)
		}
	}
}

// Abort ends calls in progress and all later ones, in groups of one too. The first cause stays.
func TestAbort(t *testing.T) {
	for _, before := range []bool{true, false} {
		errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() == 0 {
				if !before {
					if err := c.Barrier(ctx); err != nil {
						return err
					}
				}
				c.Abort(errBoom)
				c.Abort(errors.New("too late"))
			}
			err := errors.Join(c.Barrier(ctx), c.Barrier(ctx))
			alone := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1})
			if again := alone.Barrier(ctx); !errors.Is(again, gcl.ErrAborted) {
				return fmt.Errorf("alone: %v", again)
			}
			return err
		})
		for r, err := range errs {
			if !errors.Is(err, gcl.ErrAborted) || !errors.Is(err, errBoom) ||
				strings.Contains(err.Error(), "too late") || !strings.Contains(err.Error(), "aborted by replica 0") {
				t.Errorf("replica %d: %v, want ErrAborted with the first cause", r, err)
			}
		}
	}
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 0 {
			c.Abort(nil)
		}
		return c.Barrier(ctx)
	})
	for r, err := range errs {
		if !errors.Is(err, gcl.ErrAborted) {
			t.Errorf("replica %d: %v, want ErrAborted", r, err)
		}
	}
}

// joined makes Comms on endpoints of their own, for tests that close them.
func joined(t *testing.T, n int, opts ...gcl.CommOption) []*gcl.Comm {
	t.Helper()
	endpoints, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	comms := make([]*gcl.Comm, n)
	for i, e := range endpoints {
		if comms[i], err = gcl.New(e, opts...); err != nil {
			t.Fatal(err)
		}
	}
	return comms
}

// Close while a call is in progress fails that call with ErrClosed, and those of the peers with a *PeerError.
func TestCloseInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := watched(t)
		comms := joined(t, 4)
		errs := make([]error, 4)
		done := make(chan int)
		for _, c := range comms[:3] { // replica 3 calls nothing
			go func() {
				errs[c.Rank()] = c.Barrier(ctx)
				done <- c.Rank()
			}()
		}
		synctest.Wait()
		if err := comms[0].Close(); err != nil {
			t.Error(err)
		}
		for range 3 {
			<-done
		}
		if !errors.Is(errs[0], gcl.ErrClosed) {
			t.Errorf("replica 0: %v, want ErrClosed", errs[0])
		}
		for r, err := range errs[1:3] {
			var peer *gcl.PeerError
			if !errors.As(err, &peer) || peer.Replica != 0 || errors.Is(err, gcl.ErrClosed) {
				t.Errorf("replica %d: %v, want a *PeerError of 0", r+1, err)
			}
		}
		if err := comms[0].Barrier(ctx); !errors.Is(err, gcl.ErrClosed) {
			t.Errorf("replica 0 again: %v, want ErrClosed", err)
		}
		for _, c := range comms {
			if err := errors.Join(c.Close(), c.Close()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Close waits for functions given to Start; what they had to do is done.
func TestCloseWaitsForWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		comms := joined(t, 2)
		ctx := watched(t)
		v := [][]int32{{1}, {2}}
		sum := func(c *gcl.Comm) *gcl.Work {
			return c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, c, v[c.Rank()], gcl.Add)
			})
		}
		first := sum(comms[0])
		closed := make(chan error)
		go func() { closed <- comms[0].Close() }()
		synctest.Wait() // the function waits for its peer, and Close for the function
		second := sum(comms[1])
		if err := errors.Join(<-closed, first.Wait(), second.Wait(), comms[1].Close()); err != nil {
			t.Error(err)
		}
		if v[0][0] != 3 || v[1][0] != 3 {
			t.Errorf("%v, want 3 and 3", v)
		}
	})
}

// Closing a Dup leaves the first connection as it is; closing the first closes its Dups.
func TestCloseADup(t *testing.T) {
	comms := joined(t, 2)
	ctx := watched(t)
	err := both(func(r int) error {
		first := comms[r]
		d, err := first.Dup(ctx)
		e, err2 := first.Dup(ctx)
		if err := errors.Join(err, err2, d.Barrier(ctx), d.Close(), first.Barrier(ctx), e.Barrier(ctx)); err != nil {
			return err
		}
		if err := d.Barrier(ctx); !errors.Is(err, gcl.ErrClosed) {
			return fmt.Errorf("the Dup that was closed: %v", err)
		}
		if err := first.Close(); err != nil {
			return err
		}
		if err := e.Barrier(ctx); !errors.Is(err, gcl.ErrClosed) && !errors.Is(err, gcl.ErrAborted) {
			return fmt.Errorf("the Dup of a connection that was closed: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// both runs f for two replicas at once.
func both(f func(int) error) error {
	other := make(chan error)
	go func() { other <- f(1) }()
	return errors.Join(f(0), <-other)
}
