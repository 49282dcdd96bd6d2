package transporttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

// Feature is a promise that not every transport makes.
type Feature uint

const (
	// NoAlloc: in steady state an Exchange allocates nothing, on no goroutine.
	NoAlloc Feature = 1 << iota
	// NamesDeadlocks: replicas that wait for each other in a circle, all in the same call, get a *DeadlockError. (That
	// replicas in different calls get a *MismatchError, whether they meet or not, is asked of every transport.)
	NamesDeadlocks
	// KeepsCauses: the cause of an abort arrives at the other replicas as the same value, for errors.Is and errors.As.
	// Without it they must find an error with its text. Errors of package transport arrive as their types, with all
	// fields, in either case.
	KeepsCauses
	// Brief asks for a quarter of the repetitions of whatever is tried again and again: for a second run of the suite,
	// over the same transport set up in another way. It is no promise, and leaves no case out.
	Brief
)

// patience is how long a test may take before it is said to hang.
const patience = 2 * time.Minute

// Run tests the transport whose endpoints open returns: n of them, freshly connected to each other, in the order of
// their ranks. The suite closes them.
func Run(t *testing.T, open func(t testing.TB, n int) []transport.Endpoint, features ...Feature) {
	s := &suite{open: open}
	for _, f := range features {
		s.features |= f
	}
	for _, test := range []struct {
		name string
		run  func(*suite, *testing.T)
	}{
		{"Ring", (*suite).ring},
		{"AllToAll", (*suite).allToAll},
		{"Fold", (*suite).fold},
		{"Chain", (*suite).chain},
		{"Tags", (*suite).tags},
		{"RunAhead", (*suite).runAhead},
		{"SameRound", (*suite).sameRound},
		{"Late", (*suite).late},
		{"Random", (*suite).random},
		{"Dup", (*suite).dup},
		{"BadBatch", (*suite).badBatch},
		{"Cancel", (*suite).cancel},
		{"CancelInTheMiddle", (*suite).cancelInTheMiddle},
		{"Abort", (*suite).abort},
		{"Close", (*suite).close},
		{"CallMismatch", (*suite).callMismatch},
		{"LengthMismatch", (*suite).lengthMismatch},
		{"NoMeeting", (*suite).noMeeting},
		{"Deadlock", (*suite).deadlock},
		{"NoLeak", (*suite).noLeak},
		{"NoAlloc", (*suite).noAlloc},
		{"PeerMemory", (*suite).peerMemory},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(s, t) })
	}
}

// suite is what the tests of one Run share.
type suite struct {
	open     func(t testing.TB, n int) []transport.Endpoint
	features Feature
}

func (s *suite) has(f Feature) bool { return s.features&f != 0 }

// few thins the repetitions of a test, from times on an ordinary run to no less than 5, so that groups of 2 to 5 each
// have their turn.
func (s *suite) few(times int) int {
	least := min(times, 5)
	if underRace {
		times /= 5
	}
	if s.has(Brief) {
		times /= 4
	}
	return max(times, least)
}

// sizes calls test for each number of replicas and bytes. Under the race detector, which does not care for lengths,
// each number of replicas has a part of the sizes.
func (s *suite) sizes(t *testing.T, replicas, sizes []int, test func(t *testing.T, n, size int)) {
	step := 1
	if underRace && len(sizes) > 3 {
		step = 3
	}
	for i, n := range replicas {
		for j, size := range sizes {
			if (i+j)%step == 0 {
				t.Run(fmt.Sprintf("n=%d/size=%d", n, size), func(t *testing.T) { test(t, n, size) })
			}
		}
	}
}

// replicas calls test for each number of replicas.
func (s *suite) replicas(t *testing.T, replicas []int, test func(t *testing.T, n int)) {
	for _, n := range replicas {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { test(t, n) })
	}
}

// connect opens n endpoints, checks what they say of themselves, and has them closed at the end of the test, which must
// leave no goroutine behind.
func (s *suite) connect(t *testing.T, n int) []transport.Endpoint {
	t.Helper()
	leaktest.Check(t)
	eps := s.open(t, n)
	if len(eps) != n {
		t.Fatalf("open(%d) returned %d endpoints", n, len(eps))
	}
	t.Cleanup(func() { shut(t, eps) })
	for i, e := range eps {
		if e.Rank() != i || e.Size() != n {
			t.Fatalf("endpoint %d of %d says it is %d of %d", i, n, e.Rank(), e.Size())
		}
		if err := e.Err(); err != nil {
			t.Fatalf("endpoint %d of %d begins with %v", i, n, err)
		}
	}
	return eps
}

// shut closes all endpoints, at once, since a transport may want to hear from the others.
func shut(t testing.TB, eps []transport.Endpoint) {
	t.Helper()
	for rank, err := range each(t, eps, func(e transport.Endpoint) error { return e.Close() }) {
		if err != nil {
			t.Errorf("replica %d: Close: %v", rank, err)
		}
	}
}

// each calls body for every endpoint, on goroutines of their own, and returns what they return, by rank. Meanwhile it
// calls the functions given.
func each(t testing.TB, eps []transport.Endpoint, body func(e transport.Endpoint) error, meanwhile ...func()) []error {
	t.Helper()
	errs := make([]error, len(eps))
	var wg sync.WaitGroup
	for i, e := range eps {
		wg.Go(func() { errs[i] = body(e) })
	}
	for _, f := range meanwhile {
		f()
	}
	await(t, wg.Wait)
	return errs
}

// await calls wait and fails the test, with all stacks, when that does not return.
func await(t testing.TB, wait func()) {
	t.Helper()
	done := make(chan bool)
	go func() {
		wait()
		close(done)
	}()
	watchdog := time.NewTimer(patience)
	defer watchdog.Stop()
	select {
	case <-done:
	case <-watchdog.C:
		buf := make([]byte, 1<<20)
		t.Fatalf("hangs: still running after %v\n\n%s", patience, buf[:runtime.Stack(buf, true)])
	}
}

// all runs body on every endpoint and wants no error. One that there is ends the others as well.
func all(t testing.TB, eps []transport.Endpoint, body func(e transport.Endpoint) error, meanwhile ...func()) {
	t.Helper()
	failed := false
	for rank, err := range each(t, eps, func(e transport.Endpoint) error {
		err := body(e)
		if err != nil {
			e.Abort(err)
		}
		return err
	}, meanwhile...) {
		if err != nil {
			t.Errorf("replica %d: %v", rank, err)
			failed = true
		}
	}
	if failed {
		t.FailNow()
	}
}

// call is the fingerprint of the seq-th call of a test. No field is zero, so that none can be forgotten.
func call(seq, round int) transport.Call {
	return transport.Call{
		Group: 0x1122334455667788, Seq: uint64(seq) + 1, Count: 1<<40 + 3, Digest: 0x99aabbccddeeff01, Root: 70000,
		Round:      uint32(round) + 1,
		Collective: 2, Operator: 3, DType: 4, Method: 5,
	}
}

// wantCause checks that the error of one replica names the cause of another one's failure, or of its own.
func (s *suite) wantCause(t testing.TB, rank int, err error, own bool, cause error) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("replica %d: no error, want %q", rank, cause)
	case errors.Is(err, cause):
	case own || s.has(KeepsCauses):
		t.Errorf("replica %d: errors.Is does not find %q in %q", rank, cause, err)
	case !hasText(err, cause.Error()):
		t.Errorf("replica %d: %q has no error with the text %q", rank, err, cause)
	}
}

// hasText reports whether an error, or one that it wraps, has a text.
func hasText(err error, text string) bool {
	if err == nil || err.Error() == text {
		return err != nil
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return hasText(e.Unwrap(), text)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(inside error) bool { return hasText(inside, text) })
	}
	return false
}

// wantAbort checks that an error says that a certain replica aborted.
func wantAbort(t testing.TB, rank int, err error, by int) {
	t.Helper()
	var aborted *transport.AbortError
	switch {
	case !errors.As(err, &aborted):
		t.Errorf("replica %d: no AbortError in %q", rank, fmt.Sprint(err))
	case aborted.Replica != by:
		t.Errorf("replica %d: aborted by replica %d, want %d: %v", rank, aborted.Replica, by, err)
	}
}

// wantWhere checks that an error is of the form that says where it happened.
func wantWhere(t testing.TB, rank int, err error) {
	t.Helper()
	var where *transport.RoundError
	if !errors.As(err, &where) || where.Replica != rank {
		t.Errorf("replica %d: the error does not say so: %v", rank, err)
	}
}

// background is the context of tests that cancel nothing.
var background = context.Background()
