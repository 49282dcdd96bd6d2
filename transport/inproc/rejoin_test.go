package inproc

import (
	"context"
	"errors"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// A Dup refuses to rejoin, and so does an endpoint that has been rejoined, or whose replica has given up: it changes
// nothing.
func TestRejoinRefuses(t *testing.T) {
	e := connect(t, 3)
	ctx := t.Context()
	dup, err := e[0].Dup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dup.(*endpoint).Rejoin(ctx, 0); err != errRejoinsByDup {
		t.Errorf("Rejoin of a Dup: %v", err)
	}
	if err := e[0].Err(); err != nil {
		t.Errorf("after Rejoin of a Dup: %v", err)
	}
	over, cancel := context.WithCancelCause(ctx)
	cause := errors.New("enough of it")
	cancel(cause)
	for _, want := range []error{cause, transport.ErrLeftBehind} {
		if _, err := e[1].Rejoin(over, 0); err != want {
			t.Errorf("Rejoin of a replica that gives up: %v, want %v", err, want)
		}
	}
	if err := e[2].Close(); err != nil {
		t.Error(err)
	}
	r, err := e[0].Rejoin(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if g := r.Gone; len(g) != 2 || g[0].Why != cause || *g[1].Why.(*transport.ClosedError) != (transport.ClosedError{Replica: 2}) {
		t.Errorf("%v are gone", g)
	}
	if _, err := e[0].Rejoin(ctx, 0); err != errRejoinsTwice {
		t.Errorf("Rejoin for the second time: %v", err)
	}
	if _, err := e[1].Rejoin(ctx, 0); err != transport.ErrLeftBehind {
		t.Errorf("Rejoin of a replica that has been left behind: %v", err)
	}
	if err := r.Endpoint.Err(); err != nil {
		t.Errorf("the next endpoint has %v", err)
	}
	if err := r.Endpoint.Close(); err != nil {
		t.Error(err)
	}
}

// What tests have changed of a network they find changed in the ones after.
func TestRejoinKeepsTune(t *testing.T) {
	eps, err := NewEager(1)
	if err != nil {
		t.Fatal(err)
	}
	e := eps[0].(*endpoint)
	for range 2 {
		r, err := e.Rejoin(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if len(e.lane.nw.lanes) > 0 {
			t.Error("a network that all have closed is not let go")
		}
		if e = r.Endpoint.(*endpoint); e.lane.nw.every != time.Microsecond {
			t.Errorf("a patrol comes every %v", e.lane.nw.every)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
