package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
)

// broken connects n replicas with faults.
func broken(t testing.TB, n int, seed uint64, faults ...faulty.Fault) gcl.CommOption {
	t.Helper()
	endpoints, err := inproc.New(n)
	if err == nil {
		endpoints, err = faulty.Wrap(endpoints, seed, faults...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return gcl.WithEndpoints(endpoints)
}

// Replicas that are late, each time or always, get the right results, by every method. The time is the bubble's.
func TestLateReplicas(t *testing.T) {
	const n, size = 4, 97
	sums := newReduceCase(gcl.Add, inputs[int64](gcl.Add, n, size))
	placed := newMoveCase(sums.in)
	for _, fault := range []faulty.Fault{faulty.Delay(3 * time.Millisecond), faulty.Slow(2, 5*time.Millisecond),
		faulty.Slow(0, 100*time.Microsecond)} {
		for _, m := range testMethods {
			synctest.Test(t, func(t *testing.T) {
				replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
					c = with(c, m)
					if err := errors.Join(sums.try(ctx, c), placed.try(ctx, c), c.Barrier(ctx)); err != nil {
						return fmt.Errorf("method=%v %v: %w", m, fault, err)
					}
					return nil
				}, broken(t, n, 1, fault))
			})
		}
	}
}

// until makes calls until one fails, and then writes over all its buffers: they are the caller's again. A peer that
// still reads them is a race.
func until(ctx context.Context, c *gcl.Comm, size int) error {
	in, out, all := make([]float32, size), make([]float32, size), make([]float32, size*c.Size())
	defer func() {
		for _, b := range [][]float32{in, out, all} {
			for i := range b {
				b[i] = -1
			}
		}
	}()
	for range 30 {
		if err := errors.Join(
			gcl.AllReduceTo(ctx, c, out, in, gcl.SquareAdd),
			gcl.AllReduceInPlace(ctx, c, in, gcl.Max),
			gcl.AllGatherTo(ctx, c, all, in),
			gcl.BroadcastInPlace(ctx, c, in, 1),
			gcl.AllToAllTo(ctx, c, out[:size/c.Size()*c.Size()], in[:size/c.Size()*c.Size()]),
		); err != nil {
			return err
		}
	}
	// Every pair of replicas meets in these. The second is for those whom the first lets through.
	direct := with(c, methods.Direct)
	return errors.Join(gcl.AllGatherTo(ctx, direct, all, in), gcl.AllGatherTo(ctx, direct, all, in))
}

// breaking has all replicas of n make calls until one fails on each, and returns the errors. Whoever waits in silence
// gives up after a second of the bubble's clock.
func breaking(t *testing.T, n, size int, o gcl.Options, seed uint64, fault faulty.Fault) (errs []error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx := watched(t)
		errs = failuresIn(ctx, t, n, func(ctx context.Context, c *gcl.Comm) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return until(ctx, c, size)
		}, broken(t, n, seed, fault), gcl.WithOptions(o))
		if ctx.Err() != nil {
			t.Errorf("%v: hangs", fault)
		}
	})
	return errs
}

// everyBreak tries a fault with all methods, at the beginning and later.
func everyBreak(t *testing.T, fault func(at int) faulty.Fault, check func(r int, err error) string) {
	t.Helper()
	for _, m := range testMethods {
		for _, at := range []int{0, 1, 2, 5, 11, 40} {
			for r, err := range breaking(t, 4, 5000, gcl.Options{Method: m}, 7, fault(at)) {
				why := "no error"
				if err != nil {
					why = check(r, err)
				}
				if why != "" {
					t.Errorf("method=%v %v: replica %d: %v: %s", m, fault(at), r, err, why)
				}
			}
		}
	}
}

// A send that fails is a *PeerError with its cause there, and ErrAborted with the cause elsewhere.
func TestFailedSend(t *testing.T) {
	everyBreak(t, func(at int) faulty.Fault { return faulty.FailSend(2, at) }, func(r int, err error) string {
		var peer *gcl.PeerError
		switch {
		case !errors.Is(err, faulty.ErrInjected):
			return "not the cause"
		case r == 2 && !errors.As(err, &peer):
			return "no *PeerError"
		case r == 2 && peer.Replica == 2:
			return "the peer is the replica itself"
		case r != 2 && (!errors.Is(err, gcl.ErrAborted) ||
			!strings.Contains(err.Error(), "aborted by replica 2: replica 2 round ")):
			return "not ErrAborted by replica 2, with its round"
		case !strings.Contains(err.Error(), "send to "):
			return "does not say what failed"
		}
		return ""
	})
}

// silence is what replicas get that have waited in vain: their own deadline, or the abort by another's.
func silence(_ int, err error) string {
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return "not the deadline"
	case !errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrMismatch):
		return "not ErrAborted, or ErrMismatch"
	}
	return ""
}

func TestDroppedReplica(t *testing.T) {
	everyBreak(t, func(at int) faulty.Fault { return faulty.Drop(1, at) }, silence)
}

// Replicas 0 and 1 are neighbours on every ring.
func TestCutPair(t *testing.T) {
	everyBreak(t, func(at int) faulty.Fault { return faulty.Cut(0, 1, at) }, silence)
}

// A fingerprint that was damaged is a mismatch, on all replicas.
func TestCorruptCall(t *testing.T) {
	everyBreak(t, func(at int) faulty.Fault { return faulty.Corrupt(3, at) }, func(_ int, err error) string {
		switch {
		case !errors.Is(err, gcl.ErrMismatch):
			return "not ErrMismatch"
		case !strings.Contains(err.Error(), "options (or roots of earlier broadcasts) differ"):
			return "does not say what differs"
		}
		return ""
	})
}

// Any fault, anywhere: all replicas get an error, none hangs.
func TestRandomFaults(t *testing.T) {
	seeds := 300
	if underRace {
		seeds = 60
	}
	for seed := range uint64(seeds) {
		n := int(2 + seed%4)
		fault := faulty.Random(seed, n, 30)
		o := gcl.Options{Method: testMethods[seed%uint64(len(testMethods))], Reproducible: seed%3 == 0}
		for r, err := range breaking(t, n, 1000, o, seed, fault) {
			var peer *gcl.PeerError
			if !errors.Is(err, gcl.ErrAborted) && !errors.Is(err, gcl.ErrMismatch) && !errors.As(err, &peer) {
				t.Errorf("n=%d %+v %v: replica %d: %v", n, o, fault, r, err)
			}
		}
	}
}

// Aborts in the middle of large messages, in real time: buffers are written over while a peer that did not stop would
// still read them. The race detector is what this test is for.
func TestScribbleAfterErrors(t *testing.T) {
	const n = 4
	size := 300_000
	if underRace {
		size = 100_000
	}
	for i, o := range bothWays() {
		errs := failures(t, n, func(ctx context.Context, c *gcl.Comm) error {
			if err := c.Barrier(ctx); err != nil {
				return err
			}
			aborted := make(chan struct{})
			go func() { // in the midst of a call, of its own or of others
				if c.Replica() == i/2%n {
					c.Abort(errBoom)
				}
				close(aborted)
			}()
			err := until(ctx, c, size)
			<-aborted
			return err
		}, gcl.WithOptions(o))
		for r, err := range errs {
			if !errors.Is(err, gcl.ErrAborted) {
				t.Errorf("%+v: replica %d: %v, want ErrAborted", o, r, err)
			}
		}
	}
}
