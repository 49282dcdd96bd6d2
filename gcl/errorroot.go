package gcl

import (
	"errors"
	"slices"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/transport"
)

// holds reports whether an error is a failure, or wraps it: the same value, or the same facts.
func holds(err, failure error) bool {
	if err == nil || failure == nil {
		return false
	}
	if errors.Is(err, failure) || sameFacts(err, failure) {
		return true
	}
	return slices.ContainsFunc(flight.Wrapped(err), func(inside error) bool { return holds(inside, failure) })
}

// rootIn returns the T that an error is about, and who has found it, or nil: an error that something else is to be said
// of, too, is about that.
func rootIn[T interface {
	error
	*transport.LostError | *transport.MismatchError | *transport.DeadlockError
}](err error) (root T, by int) {
	switch e := err.(type) {
	case T:
		return e, -1
	case *transport.AbortError:
		if root, _ = rootIn[T](e.Cause); root != nil {
			return root, e.Replica
		}
	case *transport.RoundError:
		if root, by = rootIn[T](e.Err); by < 0 {
			by = e.Replica
		}
		return root, by
	case *transport.LateError:
		if e.Aborted == nil {
			return rootIn[T](e.Err)
		}
		if first, by := rootIn[T](e.Aborted); first != nil {
			if late, _ := rootIn[T](e.Err); late != nil && sameRoot(late, first) {
				if _, lost := error(late).(*transport.LostError); lost {
					return late, by
				}
				return first, by
			}
		}
	case *callError:
		if root, by = rootIn[T](e.err); by < 0 {
			by = e.replica
		}
		return root, by
	case *replicaError:
		return rootIn[T](e.err)
	}
	return nil, -1
}

// sameRoot reports whether two errors are the same loss, or the same disagreement.
func sameRoot(a, b error) bool {
	if lost, ok := a.(*transport.LostError); ok {
		return lost.Replica == b.(*transport.LostError).Replica
	}
	return sameFacts(a, b) || sameDisagreement(a, b)
}

// sameFacts reports whether two errors of a transport say the same.
func sameFacts(a, b error) bool {
	switch a := a.(type) {
	case *transport.MismatchError:
		b, ok := b.(*transport.MismatchError)
		return ok && *a == *b
	case *transport.UnmatchedError:
		b, ok := b.(*transport.UnmatchedError)
		return ok && *a == *b
	case *transport.ClosedError:
		b, ok := b.(*transport.ClosedError)
		return ok && *a == *b
	case *transport.DeadlockError:
		b, ok := b.(*transport.DeadlockError)
		return ok && slices.Equal(a.Replicas, b.Replicas) && slices.Equal(a.Calls, b.Calls)
	}
	return false
}

// sameDisagreement reports whether two errors are mismatches of the same two calls, whoever found them.
func sameDisagreement(a, b error) bool {
	var x, y *transport.MismatchError
	if !errors.As(a, &x) || !errors.As(b, &y) {
		return false
	}
	return x.Mine.Same(y.Mine) && x.Theirs.Same(y.Theirs) || x.Mine.Same(y.Theirs) && x.Theirs.Same(y.Mine)
}
