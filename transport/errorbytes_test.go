package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/transport"
)

// someCall has no field that is zero or like another.
var someCall = transport.Call{Group: 1 << 63, Seq: 2, Count: 1<<40 + 3, Digest: 1<<63 + 4, Root: 1<<31 + 5, Round: 6,
	Collective: 7, Operator: 8, DType: 9, Method: 10}

// typedErrors has one of each kind.
func typedErrors() []error {
	other := someCall
	other.Seq++
	mismatch := &transport.MismatchError{Replica: 3, Peer: 1, Mine: someCall, Theirs: other}
	round := &transport.RoundError{Replica: 4, Round: 1<<32 - 1, Kind: transport.RecvFold, Peer: -1, Err: mismatch}
	aborted := &transport.AbortError{Replica: 5, Cause: round}
	return []error{
		mismatch, round, aborted,
		&transport.MismatchError{Mine: someCall, Theirs: someCall, MineBytes: 5, TheirsBytes: 1 << 30},
		&transport.UnmatchedError{Replica: 1, Peer: 2, Theirs: someCall},
		&transport.DeadlockError{Replicas: []int{0, 1}, Calls: []transport.Call{someCall, other}},
		&transport.ClosedError{Replica: 70000},
		&transport.LateError{Err: context.DeadlineExceeded, Aborted: aborted},
		&transport.LateError{Err: transport.ErrBusy},
		&transport.LostError{Replica: 6, Process: "pid 4711 on node1", Err: transport.ErrNotShared},
		&transport.LostError{Replica: 6, Err: transport.ErrNotShared},
		&transport.BatchError{Index: 3, Reason: "tag 5 is used twice"},
		&transport.ArgumentError{Reason: "no worker"},
		context.Canceled, context.DeadlineExceeded, transport.ErrBusy, transport.ErrNotShared,
	}
}

// TestErrorBytes: typed errors arrive as they were.
func TestErrorBytes(t *testing.T) {
	for _, err := range typedErrors() {
		b := transport.AppendError(nil, err)
		got, bad := transport.ParseError(b)
		if bad != nil {
			t.Errorf("%v: %v", err, bad)
			continue
		}
		known := cmp.FilterValues(func(a, b error) bool {
			return slices.Contains([]error{context.Canceled, context.DeadlineExceeded, transport.ErrBusy,
				transport.ErrNotShared}, a)
		}, cmp.Comparer(func(a, b error) bool { return a == b }))
		if d := cmp.Diff(err, got, known); d != "" {
			t.Errorf("%v (-sent +got):\n%s", err, d)
		}
		for n := range b {
			if _, bad := transport.ParseError(b[:n]); bad == nil && n > 0 {
				t.Errorf("%v: the first %d of %d bytes are taken", err, n, len(b))
			}
		}
		if _, bad := transport.ParseError(append(b, 0)); bad == nil {
			t.Errorf("%v: a byte behind it is taken", err)
		}
	}
	if b := transport.AppendError([]byte("x"), nil); string(b) != "x" {
		t.Errorf("a nil error is %q", b)
	}
	if got, bad := transport.ParseError(nil); got != nil || bad != nil {
		t.Errorf("no bytes are %v, %v", got, bad)
	}
}

// TestErrorBytesOfHalfCircle: of a circle with fewer calls than replicas, or more, what is whole arrives.
func TestErrorBytesOfHalfCircle(t *testing.T) {
	for _, e := range []*transport.DeadlockError{
		{Replicas: []int{3, 4, 5}, Calls: []transport.Call{someCall}},
		{Replicas: []int{3}, Calls: []transport.Call{someCall, {}, {}}},
	} {
		got, bad := transport.ParseError(transport.AppendError(nil, e))
		want := &transport.DeadlockError{Replicas: []int{3}, Calls: []transport.Call{someCall}}
		if d := cmp.Diff(error(want), got); d != "" || bad != nil {
			t.Errorf("%v (-want +got):\n%s", bad, d)
		}
	}
}

// TestErrorBytesOfOthers: other errors arrive as their texts, with the typed ones inside.
func TestErrorBytesOfOthers(t *testing.T) {
	closed := &transport.ClosedError{Replica: 9}
	for _, err := range []error{
		io.EOF,
		fmt.Errorf("words: %w", closed),
		fmt.Errorf("more words: %w", fmt.Errorf("words: %w", closed)),
		errors.Join(io.EOF, fmt.Errorf("words: %w", closed), context.Canceled),
		&transport.AbortError{Replica: 2, Cause: fmt.Errorf("words: %w", closed)},
	} {
		got, bad := transport.ParseError(transport.AppendError(nil, err))
		if bad != nil || got.Error() != err.Error() {
			t.Errorf("%v arrives as %v, %v", err, got, bad)
			continue
		}
		var c *transport.ClosedError
		if want := errors.As(err, &c); errors.As(got, &c) != want || want && c.Replica != 9 {
			t.Errorf("%v: the typed error inside: %v", err, c)
		}
		if errors.Is(err, context.Canceled) != errors.Is(got, context.Canceled) {
			t.Errorf("%v: context.Canceled inside %v", err, got)
		}
	}
}

// TestErrorBytesBounded: what is long is cut, and what is deep or wide is a text.
func TestErrorBytesBounded(t *testing.T) {
	deep := error(&transport.ClosedError{})
	for i := range 10000 {
		if deep = fmt.Errorf("%w", deep); i%2 == 0 {
			deep = &transport.AbortError{Replica: i, Cause: deep}
		}
	}
	circle := &transport.DeadlockError{Replicas: make([]int, 1000), Calls: make([]transport.Call, 1000)}
	wide := make([]error, 100)
	for i := range wide {
		wide[i] = &transport.AbortError{Cause: errors.New(strings.Repeat("é", 500))}
	}
	for _, err := range []error{
		(*transport.RoundError)(nil), errors.New(strings.Repeat("é", 100000)), deep, circle, errors.Join(wide...),
	} {
		b := transport.AppendError(nil, err)
		got, bad := transport.ParseError(b)
		if len(b) > transport.MaxErrorBytes || bad != nil || got == nil {
			t.Errorf("an error arrives as %d bytes: %v, %v", len(b), got, bad)
			continue
		}
		if text := got.Error(); text != strings.ToValidUTF8(text, "?") {
			t.Errorf("the text is cut within a rune: %q", text[len(text)-10:])
		}
	}
}

func TestCallBytes(t *testing.T) {
	b := transport.AppendCall(nil, someCall)
	if got := transport.ParseCall(b); len(b) != transport.CallBytes || got != someCall {
		t.Errorf("%d bytes: %+v", len(b), got)
	}
	if got := transport.ParseCall(b[1:]); got != (transport.Call{}) {
		t.Errorf("of too few bytes: %+v", got)
	}
}

// FuzzParseError: no bytes make it panic, and an error that it takes travels on as it is.
func FuzzParseError(f *testing.F) {
	for _, err := range typedErrors() {
		f.Add(transport.AppendError(nil, err))
	}
	f.Add(transport.AppendError(nil, fmt.Errorf("words: %w", typedErrors()[0])))
	f.Fuzz(func(t *testing.T, b []byte) {
		err, bad := transport.ParseError(b)
		if bad != nil || err == nil {
			return
		}
		again, bad := transport.ParseError(transport.AppendError(nil, err))
		if bad != nil || again == nil || again.Error() == "" && err.Error() != "" {
			t.Errorf("%v: %v, %v", err, again, bad)
		}
	})
}
