package gcl

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gogcl.dev/transport"
)

// TestHolds finds a failure in another error by its facts, whatever the texts are.
func TestHolds(t *testing.T) {
	mismatch := func(theirs uint64) error {
		return &transport.MismatchError{Replica: 3, Peer: 2, Mine: transport.Call{Seq: 1},
			Theirs: transport.Call{Seq: theirs}}
	}
	deadlock := func(last int) error {
		return &transport.DeadlockError{Replicas: []int{0, last}, Calls: []transport.Call{{Seq: 1}, {Seq: 2}}}
	}
	unmatched := func(peer int) error { return &transport.UnmatchedError{Replica: 0, Peer: peer} }
	closed := func(replica int) error { return &transport.ClosedError{Replica: replica} }
	in := func(err error) error {
		return &transport.RoundError{Replica: 1, Peer: 2,
			Err: &transport.AbortError{Replica: 4, Cause: fmt.Errorf("words: %w", err)}}
	}
	boom := errors.New("boom")
	for i, x := range []struct {
		err, failure error
		want         bool
	}{
		{boom, boom, true}, {in(boom), boom, true}, {boom, in(boom), false}, {in(boom), errors.New("boom"), false},
		{in(context.Canceled), context.Canceled, true}, {in(context.Canceled), context.DeadlineExceeded, false},
		{in(mismatch(2)), mismatch(2), true}, {in(mismatch(2)), mismatch(3), false}, {in(mismatch(2)), closed(2), false},
		{in(deadlock(2)), deadlock(2), true}, {in(deadlock(2)), deadlock(3), false},
		{in(unmatched(2)), unmatched(2), true}, {in(unmatched(2)), unmatched(3), false},
		{in(closed(2)), closed(2), true}, {in(closed(2)), closed(3), false}, {in(boom), closed(3), false},
		{errors.Join(boom, in(closed(2))), closed(2), true},
		{nil, boom, false}, {boom, nil, false}, {nil, nil, false},
	} {
		if got := holds(x.err, x.failure); got != x.want {
			t.Errorf("%d: %v in %v: %v", i, x.failure, x.err, got)
		}
	}
}

// TestExplainLateError has one that lacks half of its facts, as a foreign transport might make.
func TestExplainLateError(t *testing.T) {
	for want, err := range map[string]error{
		"boom":           &transport.LateError{Err: errors.New("boom")},
		"no cause given": &transport.LateError{},
		"no cause given (aborted by replica 1: no cause given)": &transport.LateError{Aborted: &transport.AbortError{Replica: 1}},
	} {
		if got := explain(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
