package gcl_test

import (
	"context"
	"errors"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
)

// patience is after how long a test counts as hung. A passing test never waits for it.
const patience = time.Minute

// noContext is what a caller gives who forgot it.
var noContext context.Context

var errHung = errors.New("the test hangs")

// watched returns a context for what should be done before the test ends: see lookOn.
func watched(t testing.TB) context.Context {
	ctx, stop := lookOn(t)
	t.Cleanup(stop)
	return ctx
}

// lookOn returns a context that is cancelled when the test hangs, after all goroutines have been printed, and what to
// call when it did not. In a synctest bubble the clock runs only when everybody is blocked, and a hang shows at once.
func lookOn(t testing.TB) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	watchdog := time.AfterFunc(patience, func() {
		t.Errorf("%s hangs; its goroutines are on stderr", t.Name())
		pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		cancel(errHung)
	})
	return ctx, func() {
		watchdog.Stop()
		cancel(nil)
	}
}

// replicas runs body on n replicas. Any error is the test's.
func replicas(t testing.TB, n int, body func(context.Context, *gcl.Comm) error, opts ...gcl.CommOption) {
	t.Helper()
	ctx, stop := lookOn(t)
	defer stop()
	if err := gcl.Run(ctx, n, body, opts...); err != nil {
		t.Fatal(err)
	}
}

// failures runs body on n replicas and returns the error of each. No replica leaves before all are done, so that none
// is saved from waiting by Run, which aborts when a body fails and closes when it returns.
func failures(t testing.TB, n int, body func(context.Context, *gcl.Comm) error, opts ...gcl.CommOption) []error {
	t.Helper()
	ctx, stop := lookOn(t)
	defer stop()
	return failuresIn(ctx, t, n, body, opts...)
}

func failuresIn(ctx context.Context, t testing.TB, n int, body func(context.Context, *gcl.Comm) error,
	opts ...gcl.CommOption) []error {
	t.Helper()
	errs := make([]error, n)
	var busy sync.WaitGroup
	busy.Add(n)
	err := gcl.Run(ctx, n, func(ctx context.Context, c *gcl.Comm) error {
		errs[c.Replica()] = body(ctx, c)
		busy.Done()
		busy.Wait()
		return nil
	}, opts...)
	if err != nil {
		t.Errorf("Run: %v, although every body returned nil", err)
	}
	return errs
}

// with is c with a method.
func with(c *gcl.Comm, m methods.Method) *gcl.Comm { return withOptions(c, gcl.Options{Method: m}) }

func withOptions(c *gcl.Comm, o gcl.Options) *gcl.Comm {
	out, err := c.With(o)
	if err != nil {
		panic(err) // which Run reports
	}
	return out
}

// grouped is c in a group.
func grouped(c *gcl.Comm, g commgroup.Group) *gcl.Comm {
	out, err := c.Group(g)
	if err != nil {
		panic(err) // which Run reports
	}
	return out
}

// contains reports whether an error says something.
func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }
