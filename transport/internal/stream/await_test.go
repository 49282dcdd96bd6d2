package stream

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// attendant is a Parker that parks for no time, and calls a function instead.
type attendant struct {
	chanParker
	goals []Awaited // what Attend was called with
	looks []bool    // whether Look was called for crowded processors
	comes bool      // Look finds what is attended to
	halts bool      // Look has been stopped
	parks func(k int)
	count int
}

func (a *attendant) Attend(w Awaited) { a.goals = append(a.goals, w) }

func (a *attendant) Look(crowded, goroutines bool, stop func() bool) bool {
	a.looks = append(a.looks, crowded)
	a.halts = stop()
	return a.comes
}

func (a *attendant) Sees(Link) bool { return true }

func (a *attendant) Park(time.Duration) {
	a.count++
	if a.parks != nil {
		a.parks(a.count)
	}
}

// wished is an Awaited that a test meets.
type wished struct {
	met bool
	of  []int // replicas
}

func (w *wished) Met() bool         { return w.met }
func (w *wished) Awaits(r int) bool { return slices.Contains(w.of, r) }

// awaiting is a lane of replica 0 of 3 in a call that Enter has begun among all.
func awaiting(t *testing.T) (*Node, *Lane, *attendant) {
	t.Helper()
	n, l, _ := loneNode(t, 0)
	a := &attendant{chanParker: chanParker{make(chan struct{}, 1)}}
	l.parker, l.looker = a, a
	if err := l.Take(hostileCall); err != nil {
		t.Fatal(err)
	}
	if err := l.Enter(t.Context(), &hostileCall, []int{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	return n, l, a
}

// TestAwait: a wait ends when it is met, when there is an abort, and when a replica has left for which it waits.
func TestAwait(t *testing.T) {
	cause := errors.New("gives up")
	leave := func(t *testing.T, n *Node, r int) {
		if err := n.Handle(r, leftMessage(0)); err != nil {
			t.Error(err)
		}
	}
	for name, test := range map[string]struct {
		w      wished
		parks  func(t *testing.T, n *Node, w *wished, k int)
		parked int
		good   func(error) bool
	}{
		"met":       {w: wished{met: true}},
		"met later": {parks: func(_ *testing.T, _ *Node, w *wished, k int) { w.met = k == 3 }, parked: 3},
		"an abort": {
			parks: func(_ *testing.T, n *Node, _ *wished, k int) { n.Abort(cause) }, parked: 1,
			good: func(err error) bool { return errors.Is(err, cause) },
		},
		"who is awaited leaves": {
			w:     wished{of: []int{2}},
			parks: func(t *testing.T, n *Node, _ *wished, k int) { leave(t, n, 2) }, parked: 1,
			good: func(err error) bool {
				var closed *transport.ClosedError
				return errors.As(err, &closed) && closed.Replica == 2
			},
		},
		"another leaves": {
			w: wished{of: []int{2}},
			parks: func(t *testing.T, n *Node, w *wished, k int) {
				if k == 1 {
					leave(t, n, 1)
				}
				w.met = k == 2
			}, parked: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, l, a := awaiting(t)
			w := test.w
			if test.parks != nil {
				a.parks = func(k int) { test.parks(t, n, &w, k) }
			}
			err := l.Await(&w, true)
			if test.good == nil && err != nil || test.good != nil && !test.good(err) {
				t.Error(err)
			}
			if (err != nil) != (n.Err() != nil) {
				t.Errorf("the wait ends with %v, the node with %v", err, n.Err())
			}
			if a.count != test.parked {
				t.Errorf("%d parks, want %d", a.count, test.parked)
			}
			if len(a.goals) != 2 || a.goals[0] != Awaited(&w) || a.goals[1] != nil || l.goal != nil {
				t.Errorf("the Parker attends %v, the lane %v", a.goals, l.goal)
			}
			l.Exit()
			l.Close()
		})
	}
}

// TestAwaitLooks: a wait looks before it parks, crowded as it is told, and does not park when that was enough. A look
// ends when something has been told.
func TestAwaitLooks(t *testing.T) {
	n, l, a := awaiting(t)
	for _, crowded := range []bool{false, true} {
		a.comes = true
		if err := l.Await(&wished{}, crowded); err != nil || a.count != 0 || a.halts {
			t.Errorf("%v, %d parks, stopped: %t", err, a.count, a.halts)
		}
	}
	if !slices.Equal(a.looks, []bool{false, true}) {
		t.Errorf("looks where processors are crowded: %v", a.looks)
	}
	if l.wake(); !l.stopped() {
		t.Error("something has been told, and a look goes on")
	}
	if l.heardOf = l.events.Load(); l.stopped() {
		t.Error("a look is stopped for nothing")
	}
	n.Abort(errors.New("gives up"))
	if l.heardOf = l.events.Load(); !l.stopped() {
		t.Error("there is an abort, and a look goes on")
	}
	l.Exit()
	l.Close()
}

// TestDeserted: a call that waits for nobody fails when one of its replicas has left, and no other.
func TestDeserted(t *testing.T) {
	n, l, _ := loneNode(t, 0)
	enter := func(peers []int) error {
		if err := l.Take(hostileCall); err != nil {
			t.Fatal(err)
		}
		return l.Enter(t.Context(), &hostileCall, peers)
	}
	if err := n.Handle(2, leftMessage(0)); err != nil {
		t.Fatal(err)
	}
	if err := enter([]int{1, 0}); err != nil {
		t.Fatal(err)
	}
	if err := l.Deserted(); err != nil {
		t.Errorf("replica 2 is none of the call: %v", err)
	}
	l.Exit()
	if err := enter([]int{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	var closed *transport.ClosedError
	if err := l.Deserted(); !errors.As(err, &closed) || closed.Replica != 2 {
		t.Errorf("%v, want that replica 2 has closed", err)
	}
	l.Exit()
	l.Close()
}

// TestEnterFails: a call whose context is done ends at once, and the turn with it. A lane that is busy or closed
// refuses a turn.
func TestEnterFails(t *testing.T) {
	_, l, _ := loneNode(t, 0)
	cause := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := l.Take(hostileCall); err != nil {
		t.Fatal(err)
	}
	if err := l.Take(hostileCall); err == nil {
		t.Error("a busy lane takes a second call")
	}
	if err := l.Enter(ctx, &hostileCall, []int{0, 1}); !errors.Is(err, cause) {
		t.Errorf("%v, want %v", err, cause)
	}
	if err := l.Take(hostileCall); err != nil {
		t.Fatalf("the turn has not ended: %v", err)
	}
	l.Release()
	l.Close()
	_, l, _ = loneNode(t, 0)
	l.Close()
	if err := l.Take(hostileCall); !errors.As(err, new(*transport.ClosedError)) {
		t.Errorf("a closed lane: %v", err)
	}
}

// sharer is a Sharer that looks what has happened before Aborting.
type sharer struct {
	deafHost
	aborting func()
}

func (s *sharer) Aborting()     { s.aborting() }
func (s *sharer) Forget(uint64) {}

// TestAborting: who aborts or hears of an abort says so in shared memory once, after it has told the others and before
// a call can fail for it.
func TestAborting(t *testing.T) {
	for _, heard := range []bool{false, true} {
		s := &sharer{deafHost: deafHost{told: make([][]byte, 3)}}
		n, l, err := NewNode(Config{Rank: 0, Size: 3, Host: s})
		if err != nil {
			t.Fatal(err)
		}
		times := 0
		s.aborting = func() {
			times++
			if n.Err() != nil || l.interruption() != nil {
				t.Error("a call can fail already")
			}
			if len(s.told[1]) != 1 || s.told[1][0] != aborted {
				t.Errorf("replica 1 has been told %d", s.told[1])
			}
		}
		if heard {
			err = n.Handle(2, appendAbort(nil, &transport.AbortError{Replica: 2, Cause: errors.New("no more")}))
		}
		n.Abort(errors.New("no more here"))
		if err != nil || n.Err() == nil || times != 1 {
			t.Errorf("%v, %v, %d times", err, n.Err(), times)
		}
		l.Close()
	}
}

// told is what a replica has told beside messages: it is heard after some looks.
type told struct{ looks int }

func (*told) Elsewhere(*transport.Call) *transport.MismatchError { return nil }
func (*told) Instead(int) *transport.MismatchError               { return nil }
func (b *told) Heard() bool                                      { b.looks--; return b.looks < 0 }
func (*told) Unheard() error                                     { return nil }
func (*told) Check() error                                       { return nil }

// TestCloseSleeps: a lane that is closed and waits for its messages to be read sleeps meanwhile: what else it has told
// is awaited until that is heard, and no longer.
func TestCloseSleeps(t *testing.T) {
	for _, looks := range []int{0, 6} {
		_, l, _ := loneNode(t, 0)
		a := &attendant{chanParker: chanParker{make(chan struct{}, 1)}}
		l.parker, l.looker = a, a
		l.SetBoards(&told{looks})
		l.peers[1].sent.Store(1)
		a.parks = func(k int) {
			attends := len(a.goals) > 0 && a.goals[len(a.goals)-1] != nil
			if heard := l.boards.(*told).looks < 0; attends == heard {
				t.Errorf("park %d: attends %v, all is heard %v", k, attends, heard)
			}
			if k == 10 {
				l.peers[1].acked.Store(1)
			}
		}
		l.Close()
		if a.count != 10 {
			t.Errorf("%d parks, want 10", a.count)
		}
	}
}
