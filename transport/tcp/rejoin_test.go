package tcp

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
)

// TestRejoinWithoutHalf: where two of four have left, the other two go on, though neither is replica 0, and though one
// may hear of the ends from the other before it sees them.
func TestRejoinWithoutHalf(t *testing.T) {
	for range 20 {
		eps, err := New(4, TCP)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for r, e := range eps {
			all.Go(func() {
				if r < 2 {
					e.Close()
					return
				}
				for { // who has left after the others have told that it is there is lost to the next endpoint
					defer e.Close()
					next, err := e.(transport.Rejoiner).Rejoin(t.Context(), 1)
					if err != nil {
						t.Errorf("replica %d: %v", r, err)
						return
					}
					if e = next.Endpoint; e.Size() == 2 {
						e.Close()
						return
					}
				}
			})
		}
		all.Wait()
	}
}

// TestLeftBehindWhileMeeting: a replica that hears that it is held for gone, while it still waits for others to come,
// ends with an error.
func TestLeftBehindWhileMeeting(t *testing.T) {
	listeners, addresses, err := listenAll(Config{Size: 3, Network: TCP, Job: "left behind", Secret: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	defer listeners[1].Close() // which does not come
	meshes := make(chan *mesh, 1)
	listeners[0].config.meets = func(m *mesh) { meshes <- m }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for _, r := range []int{0, 2} {
		all.Go(func() {
			if e, err := listeners[r].Connect(ctx, addresses); err == nil {
				t.Errorf("replica %d has met one that does not come", r)
				e.Close()
			}
		})
	}
	m := <-meshes
	for !m.at(2).isReserved() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	m.at(2).tell([]byte{rejoining, 0, 0, 1, 2, 0, 1, 7}) // generation 0, without replica 2
	all.Wait()
}

// TestAwaitedGenerations: a connection waits for the next generation alone, and not with too many others.
func TestAwaitedGenerations(t *testing.T) {
	m := quietMesh(0, 2)
	m.all()[0] = nil
	m.ctx, m.cancel = context.WithCancel(t.Context())
	if _, err := m.found(); err != nil {
		t.Fatal(err)
	}
	if g := m.await(1, 1); g == nil || g.number != 0 {
		t.Errorf("%v, want generation 0", g)
	}
	if g := m.await(1, 2<<48|1); g != nil {
		t.Errorf("%v, want none: generation 2 cannot have begun anywhere", g)
	}
	m.at(1).early.Store(maxEarly)
	if g := m.await(1, 1<<48|1); g != nil {
		t.Errorf("%v, want none: too many wait", g)
	}
	m.at(1).early.Store(0)
	m.cancel()
	if g := m.await(1, 1<<48|1); g != nil {
		t.Errorf("%v, want none: this replica leaves", g)
	}
}

// gone is a process that has ended.
type gone struct{}

func (gone) ended(time.Duration) bool { return true }

// TestStoppedMayNotGoOn: the kernel's word that all others have ended is enough, but not for one that was stopped for
// so long that they may have held it for gone: a newcomer of theirs may go on.
func TestStoppedMayNotGoOn(t *testing.T) {
	for _, test := range []struct {
		silent time.Duration // since the last heartbeat
		before bool          // it was stopped before that
		may    bool
	}{
		{bubbleSilence / 8, false, true},
		{bubbleSilence/4*3 + 1, false, false},
		{bubbleSilence / 8, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := quietMesh(1, 3)
			m.config.Silence = bubbleSilence
			for _, c := range m.all() {
				c.process = gone{}
			}
			m.began = time.Now()
			time.Sleep(test.silent)
			m.stopped.Store(test.before)
			err := council{m}.May([]int{0, 1, 2}, []int{0, 2})
			var minority *transport.MinorityError
			if test.may && err != nil || !test.may && !errors.As(err, &minority) {
				t.Errorf("%+v: %v", test, err)
			}
			if err := (council{m}).May([]int{0, 1, 2}, []int{2}); err != nil { // more than half
				t.Errorf("%+v: %v", test, err)
			}
		})
	}
}
