package transporttest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"gogcl.dev/transport"
)

// outcome checks what a replica has got.
type outcome func(t testing.TB, rank int, err error)

// closed wants an error that names the replica that has closed.
func closed(by int) outcome {
	return func(t testing.TB, rank int, err error) {
		t.Helper()
		var closed *transport.ClosedError
		switch {
		case !errors.As(err, &closed):
			t.Errorf("replica %d: no ClosedError in %q", rank, fmt.Sprint(err))
		case closed.Replica != by:
			t.Errorf("replica %d: %v, but it was replica %d that closed", rank, err, by)
		}
		if by != rank {
			located(t, rank, err)
		}
	}
}

// aborted wants an error that names the replica that has aborted.
func aborted(by int) outcome {
	return func(t testing.TB, rank int, err error) {
		t.Helper()
		var aborted *transport.AbortError
		switch {
		case !errors.As(err, &aborted):
			t.Errorf("replica %d: no AbortError in %q", rank, fmt.Sprint(err))
		case aborted.Replica != by:
			t.Errorf("replica %d: aborted by replica %d, want %d: %v", rank, aborted.Replica, by, err)
		}
	}
}

// located wants an error that says where it happened.
func located(t testing.TB, rank int, err error) {
	t.Helper()
	var where *transport.RoundError
	if !errors.As(err, &where) || where.Replica != rank {
		t.Errorf("replica %d: the error does not say so: %v", rank, err)
	} else if where.Peer == rank {
		t.Errorf("replica %d: the error has the replica itself as the peer: %v", rank, err)
	}
}

// mismatch wants an error that names both calls.
func mismatch(good, bad transport.Call) outcome { return lengths(good, bad, 0, 0) }

// lengths wants an error that names both calls and their lengths.
func lengths(good, bad transport.Call, goodBytes, badBytes int) outcome {
	return func(t testing.TB, rank int, err error) {
		t.Helper()
		located(t, rank, err)
		var m *transport.MismatchError
		if !errors.As(err, &m) {
			t.Errorf("replica %d: no MismatchError in %q", rank, fmt.Sprint(err))
			return
		}
		if m.Replica == m.Peer {
			t.Errorf("replica %d: the mismatch is one of replica %d with itself: %v", rank, m.Peer, err)
		}
		straight := m.Mine == good && m.Theirs == bad && m.MineBytes == goodBytes && m.TheirsBytes == badBytes
		turned := m.Mine == bad && m.Theirs == good && m.MineBytes == badBytes && m.TheirsBytes == goodBytes
		if !straight && !turned {
			t.Errorf("replica %d: the mismatch is %v, want\n%+v, %d bytes\n%+v, %d bytes",
				rank, err, good, goodBytes, bad, badBytes)
		}
	}
}

// deadlocked takes the error of replicas that wait for each other at different places, and else what is wanted.
func deadlocked(want outcome) outcome {
	return func(t testing.TB, rank int, err error) {
		t.Helper()
		located(t, rank, err)
		if !errors.As(err, new(*transport.DeadlockError)) {
			want(t, rank, err)
		}
	}
}

// disagreement wants a mismatch of any kind.
func disagreement(t testing.TB, rank int, err error) {
	t.Helper()
	if !errors.As(err, new(*transport.MismatchError)) {
		t.Errorf("replica %d: no MismatchError in %q", rank, fmt.Sprint(err))
	}
}

// failure wants an error that says where it happened.
func failure(t testing.TB, rank int, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("replica %d: no error", rank)
		return
	}
	located(t, rank, err)
}

// caused wants the cause of a replica's failure: the same value at those whose own it is, and where the transport keeps
// causes, else an error with its text.
func (s *suite) caused(own func(rank int) bool, cause error) outcome {
	return func(t testing.TB, rank int, err error) {
		t.Helper()
		located(t, rank, err)
		switch {
		case err == nil:
			t.Errorf("replica %d: no error, want %q", rank, cause)
		case errors.Is(err, cause):
		case own(rank) || s.has(KeepsCauses):
			t.Errorf("replica %d: errors.Is does not find %q in %q", rank, cause, err)
		case !hasText(err, cause.Error()):
			t.Errorf("replica %d: %q has no error with the text %q", rank, err, cause)
		}
	}
}

// abortedFor wants that a replica has aborted for a cause.
func (s *suite) abortedFor(by int, cause error) outcome {
	why := s.caused(only(by), cause)
	return func(t testing.TB, rank int, err error) {
		t.Helper()
		why(t, rank, err)
		aborted(by)(t, rank, err)
	}
}

// cancelled wants that a replica's context has ended for a cause, which the others get as its abort.
func (s *suite) cancelled(who int, cause error) outcome {
	return butFor(who, s.caused(only(who), cause), s.abortedFor(who, cause))
}

// butFor is an outcome for one replica, and another one for the others.
func butFor(who int, its, others outcome) outcome {
	return func(t testing.TB, rank int, err error) {
		t.Helper()
		if rank == who {
			its(t, rank, err)
		} else {
			others(t, rank, err)
		}
	}
}

func only(who int) func(rank int) bool { return func(rank int) bool { return rank == who } }

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
