package inproc

import (
	"fmt"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// Searches cost no more than a twentieth of the time that all wait together, no more than eight counted, but for what
// is under way; and everyone who waits gets to search, even while others come back again and again, and though each
// search costs more than a patrol pays for.
func TestSearchesArePaidFor(t *testing.T) {
	const patrols = 2_000
	for _, n := range []int{2, 3, 64, 1024} {
		for _, cost := range []int{1, 500, 20_000} {
			t.Run(fmt.Sprintf("n=%d/looks=%d", n, cost), func(t *testing.T) {
				eps := connect(t, n)
				l := eps[0].lane
				searches, looks := make([]int, n), 0
				park := func(e *endpoint) {
					e.parks++
					e.park.Store(e.parks)
					e.waiting.Store(&arrival)
				}
				for _, e := range eps {
					park(e)
				}
				for range patrols {
					l.patrol(patrolEvery)
					for _, e := range eps {
						select {
						case why := <-e.wake:
							if why != byPatrol {
								t.Fatalf("replica %d is woken by event", e.rank)
							}
							l.blocked.credit.spend(cost)
							searches[e.rank]++
							looks += cost
							park(e)
						default:
						}
					}
				}
				waited := time.Duration(min(n, maxPayers)) * patrols * patrolEvery
				if spent, most := time.Duration(looks)*lookTime,
					waited/share+time.Duration(n*cost)*lookTime; spent > most {
					t.Errorf("%d looks take %v, want at most %v", looks, spent, most)
				}
				// One of them every patrol or two, or as often as eight who wait can pay for.
				fair := min(patrols/3, int(min(n, maxPayers)*patrols*int(patrolEvery/(share*lookTime))/(n*cost))/2)
				for r, times := range searches {
					if times < fair {
						t.Errorf("replica %d has searched %d times, others %d, want at least %d",
							r, times, searches[0], fair)
					}
				}
				for _, e := range eps {
					e.waiting.Store(nil)
				}
			})
		}
	}
}

// latePatterns are what all but one replica wait for: what each has to do in one round.
var latePatterns = []struct {
	name string
	n    int
	act  func(me, n int) act
}{
	{"alltoall", 256, func(me, n int) (a act) {
		for p := range n {
			if p != me {
				a.batch = append(a.batch, transport.Transfer{Peer: p, Kind: transport.Send},
					transport.Transfer{Peer: p, Kind: transport.Recv})
			}
		}
		return a
	}},
	{"fold", 256, func(me, n int) (a act) { // all in the order of the ranks: behind the one who is late
		for p := range n {
			if p != me {
				a.batch = append(a.batch, transport.Transfer{Peer: p, Kind: transport.Send})
			}
		}
		first := len(a.batch)
		for p := range n {
			if p != me {
				a.batch = append(a.batch,
					transport.Transfer{Peer: p, Kind: transport.RecvFold, Fold: func(dst, a, b []byte) {},
						Next: len(a.batch) > first})
			}
		}
		return a
	}},
	{"barrier", 1024, func(me, n int) (a act) {
		for p := range n {
			a.members = append(a.members, p)
		}
		return a
	}},
}

// late has all but replica 0 begin, and returns how many transfers and members that is in all.
func late(t testing.TB, n int, next func(me, n int) act) (w *world, size int) {
	w = &world{eps: connect(t, n)}
	w.eps[0].lane.nw.spacious = true
	for _, e := range w.eps[1:] {
		a := next(e.rank, n)
		size += len(a.batch) + len(a.members)
		w.begin(e, a)
	}
	for _, e := range w.eps[1:] {
		w.finish(t, e)
	}
	return w, size
}

// arrive has replica 0 come, and everyone finish.
func (w *world) arrive(t testing.TB, next func(me, n int) act) {
	w.begin(w.eps[0], next(0, len(w.eps)))
	for range 2 {
		for _, e := range w.eps {
			if e.ctx != nil {
				w.finish(t, e)
			}
		}
	}
	for _, e := range w.eps {
		if e.ctx != nil {
			t.Fatalf("replica %d is not done", e.rank)
		}
	}
}

// While all but one replica enter the register one after the other, and each searches, no more is looked at than twice
// what they have in their batches, or the places at the meeting once by each.
func TestLateReplicaIsCheap(t *testing.T) {
	for _, p := range latePatterns {
		t.Run(fmt.Sprintf("pattern=%s/n=%d", p.name, p.n), func(t *testing.T) {
			w, size := late(t, p.n, p.act)
			g := &w.eps[0].lane.blocked
			looks := 0
			for _, e := range w.eps[1:] {
				if added, err := g.enter(e); !added || err != nil {
					t.Fatalf("replica %d enters: %v, %v", e.rank, added, err)
				}
				looks += g.cost
			}
			if looks > 2*size {
				t.Errorf("%d looks at %d transfers and members", looks, size)
			}
			for _, e := range w.eps[1:] {
				g.leave(e)
			}
			w.arrive(t, p.act)
		})
	}
}

// BenchmarkSearch has replicas leave the register, and enter it again, while one is late.
func BenchmarkSearch(b *testing.B) {
	for _, p := range latePatterns {
		b.Run(fmt.Sprintf("pattern=%s/n=%d", p.name, p.n), func(b *testing.B) {
			w, _ := late(b, p.n, p.act)
			g := &w.eps[0].lane.blocked
			for _, e := range w.eps[1:] {
				g.enter(e)
			}
			looks, next := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				e := w.eps[1+next%(p.n-1)]
				next++
				g.leave(e)
				g.enter(e)
				looks += g.cost
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(looks), "ns/look")
			for _, e := range w.eps[1:] {
				g.leave(e)
			}
			w.arrive(b, p.act)
		})
	}
}
