package rendezvous

import (
	"context"
	"testing"
	"time"
)

// TestRoll: replica 0 takes in who belongs to the job, once, and waits no longer than any of them can.
func TestRoll(t *testing.T) {
	r := newRoll(context.Background(), config(0, 3, ""), "here", "replica 0", nil)
	if !r.limit.IsZero() {
		t.Error("there is a limit, and replica 0 has none")
	}
	for _, test := range []struct {
		rank, size int
		kind       Kind // 0 for one who is taken in
	}{
		{2, 2, WrongSize}, {2, 4, WrongSize}, {3, 3, WrongSize},
		{2, 3, 0}, {2, 3, Duplicate}, {0, 3, Duplicate}, {1, 3, 0},
	} {
		e := r.add(&arrival{rank: test.rank, here: here{size: test.size, left: time.Duration(test.rank) * time.Hour}})
		if e == nil && test.kind != 0 || e != nil && e.Kind != test.kind {
			t.Errorf("replica %d of %d: %v, want %v", test.rank, test.size, e, test.kind)
		}
	}
	if r.missing != 0 || r.limit.IsZero() || r.wait() > time.Hour {
		t.Errorf("%d are missing, and the wait is %v", r.missing, r.wait())
	}
}

// TestGotOnce: a replica that says twice that it has the table does not stand for one that has not said so.
func TestGotOnce(t *testing.T) {
	roll := newRoll(context.Background(), config(0, 3, ""), "here", "replica 0", nil)
	h := &hosting{roll: roll, begun: true, silent: 2}
	for rank := 1; rank < 3; rank++ {
		if e := roll.add(&arrival{rank: rank, here: here{size: 3}}); e != nil {
			t.Fatal(e)
		}
		h.guests = append(h.guests, &guest{rank: rank})
	}
	if e := h.heard(h.guests[0], tagGot, nil, nil); e != nil || h.done {
		t.Errorf("got %v, done %v", e, h.done)
	}
	if e := h.heard(h.guests[0], tagGot, nil, nil); e == nil || e.Kind != Gone || h.done {
		t.Errorf("got %v, want that replica 1 is gone; done %v", e, h.done)
	}
	if e := h.heard(h.guests[1], tagGot, nil, nil); e != nil || !h.done {
		t.Errorf("got %v, done %v", e, h.done)
	}
}
