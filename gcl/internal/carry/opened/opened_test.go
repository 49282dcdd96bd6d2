package opened_test

import (
	"errors"
	"testing"

	"gogcl.dev/gcl/internal/carry/opened"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// witness is replica 3's end of a transport. It remembers the first abort, as transports do.
type witness struct {
	transport.Endpoint
	aborts int
	err    error
}

func (*witness) Rank() int    { return 3 }
func (w *witness) Err() error { return w.err }

func (w *witness) Abort(cause error) {
	w.aborts++
	if w.err == nil {
		w.err = &transport.AbortError{Replica: 3, Cause: cause}
	}
}

var errOther = errors.New("another reason")

// TestEnded: the first length that was wrong is what the Share comes to, whatever it has returned, and the next Share
// begins anew. If there was an abort before, the error has both.
func TestEnded(t *testing.T) {
	for _, shared := range []error{nil, errOther, transport.ErrNotShared} {
		w := &witness{}
		l := opened.On(w)
		if !l.FitsInput(transport.Recv, 5, make([]byte, 7), 7) ||
			!l.FitsOutput(transport.Send, 5, nil, opened.Unused) || !l.FitsScratch(5, 8, 7) ||
			!l.FitsLists(5, &transport.Memory{}, 0) || l.Wrong() {
			t.Error("what the call wants does not fit")
		}
		if err := l.Ended(shared); err != shared || w.aborts != 0 {
			t.Errorf("%v comes to %v, with %d aborts", shared, err, w.aborts)
		}
		if l.FitsOutput(transport.Send, 5, make([]byte, 6), 7) || l.FitsScratch(6, 1, 2) || !l.Wrong() ||
			w.aborts != 1 {
			t.Errorf("wrong lengths: Wrong %v, %d aborts, want one", l.Wrong(), w.aborts)
		}
		err := l.Ended(shared)
		if err == nil || err.Error() != "replica 3 round 0: send to 5: an output of 6 bytes lies open, want 7" {
			t.Errorf("%v comes to %v", shared, err)
		}
		if l.Wrong() || l.Ended(nil) != nil {
			t.Error("the next Share has the length of the one before")
		}
	}
	w := &witness{err: &transport.AbortError{Replica: 1, Cause: errOther}}
	l := opened.On(w)
	l.FitsScratch(6, 1, 2)
	late, round := (*transport.LateError)(nil), (*transport.RoundError)(nil)
	err := l.Ended(w.err)
	if !errors.As(err, &late) || late.Aborted != w.err || !errors.As(err, &round) || round.Peer != 6 ||
		!errors.Is(err, errOther) {
		t.Errorf("after another's abort: %v", err)
	}
	w = &witness{err: &transport.ClosedError{Replica: 3}}
	l = opened.On(w)
	l.FitsInput(transport.Recv, 6, nil, 2)
	if err := l.Ended(w.err); err == nil || errors.As(err, &late) {
		t.Errorf("of an endpoint that is closed: %v", err)
	}
}

// TestWant: a buffer has all chunks, the rank's own, or by a root all or nothing that counts.
func TestWant(t *testing.T) {
	for _, x := range []struct {
		holding schedule.Holding
		atRoot  bool
		want    int
	}{
		{schedule.Whole, false, 12}, {schedule.Blocks, false, 12}, {schedule.Own, false, 4}, {schedule.Own, true, 4},
		{schedule.AtRoot, true, 12}, {schedule.AtRoot, false, opened.Unused},
	} {
		if got := opened.Want(x.holding, x.atRoot, 12, 4); got != x.want {
			t.Errorf("holding %d, at the root %v: %d, want %d", x.holding, x.atRoot, got, x.want)
		}
	}
}
