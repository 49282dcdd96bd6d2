package inproc

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/transport"
)

// A search from the newcomer alone finds a cycle whenever there is one among the members of the register: replicas
// carry out random programs, in some of which they wait for each other in a circle, one step of one replica at a time.
// After each entry all edges between all members are looked at as well.
func TestRegisterAgainstFullSearch(t *testing.T) {
	trials := 20_000
	if testing.Short() {
		trials = 2_000
	}
	seen := map[string]int{}
	for seed := range uint64(trials) {
		w := newWorld(rand.New(rand.NewPCG(seed, 0)))
		for range 300 {
			if w.move(t, w.random.IntN(len(w.eps)), seen); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
			if w.over {
				break
			}
		}
	}
	for _, what := range []string{"entry", "ready",
		"done", "deadlock", "deadlock by way of a third", "deadlock at a meeting"} {
		if seen[what] < trials/200 {
			t.Errorf("%q %d times in %d trials", what, seen[what], trials)
		}
	}
}

// world is a few replicas and their programs.
type world struct {
	random   *rand.Rand
	eps      []*endpoint
	programs [][]act     // by replica: what is still to be done
	doing    []bool      // by replica: the first of them has begun
	members  []*endpoint // of the register
	over     bool
}

// act is a batch or, with members, a barrier.
type act struct {
	batch   []transport.Transfer
	members []int
}

// newWorld makes programs of some rounds. A message belongs to the same round at both its ends, or sometimes not.
func newWorld(random *rand.Rand) *world {
	n := 2 + random.IntN(5)
	made, err := New(n)
	if err != nil {
		panic(err)
	}
	w := &world{random: random, programs: make([][]act, n), doing: make([]bool, n), members: make([]*endpoint, n)}
	for _, e := range made {
		w.eps = append(w.eps, e.(*endpoint))
	}
	w.eps[0].lane.nw.spacious = true // at a barrier everyone looks for itself
	rounds := 1 + random.IntN(4)
	strays := random.IntN(3) == 0
	round := func(own int) int {
		if strays && random.IntN(8) == 0 {
			return random.IntN(rounds)
		}
		return own
	}
	for r := range w.programs {
		w.programs[r] = make([]act, rounds)
	}
	for k := range rounds {
		if random.IntN(4) == 0 {
			members := random.Perm(n)[:2+random.IntN(n-1)]
			for _, r := range members {
				at := round(k)
				w.programs[r][at] = act{members: members}
			}
		}
	}
	tags := map[[2]int]uint32{}
	for k := range rounds {
		for range random.IntN(3 * n) {
			from, to := random.IntN(n), random.IntN(n)
			out, in := &w.programs[from][round(k)], &w.programs[to][round(k)]
			if from == to || out.members != nil || in.members != nil && !strays {
				continue
			}
			tag := tags[[2]int{from, to}]
			tags[[2]int{from, to}]++
			out.batch = append(out.batch, transport.Transfer{Peer: to, Kind: transport.Send, Tag: tag})
			if in.members != nil {
				continue // nobody takes it
			}
			t := transport.Transfer{Peer: from, Kind: transport.RecvFold, Tag: tag, Fold: func(dst, a, b []byte) {}}
			if last := len(in.batch) - 1; last >= 0 && in.batch[last].Kind == transport.RecvFold {
				t.Next = random.IntN(3) > 0
			}
			in.batch = append(in.batch, t)
		}
	}
	return w
}

// move has a replica do one of the things that it may do now, and checks the register if that is to enter.
func (w *world) move(t *testing.T, r int, seen map[string]int) {
	e := w.eps[r]
	switch {
	case len(w.programs[r]) == 0:
	case !w.doing[r]:
		w.doing[r] = true
		w.begin(e, w.programs[r][0])
	case w.members[r] != nil:
		if e.ready() || w.random.IntN(8) == 0 {
			e.lane.blocked.leave(e)
			w.members[r] = nil
		}
	case w.random.IntN(4) == 0 && (e.visit != nil || len(e.batch) > 0):
		w.enter(t, e, seen) // much may have happened since it last looked
	case w.finish(t, e):
		seen["done"]++
		w.doing[r] = false
		w.programs[r] = w.programs[r][1:]
	default:
		w.enter(t, e, seen)
	}
}

// begin does what an endpoint does before it waits.
func (w *world) begin(e *endpoint, a act) {
	if a.members == nil {
		e.busy.Lock()
		e.begin(context.Background(), transport.Call{}, a.batch)
		e.offer()
		return
	}
	group := uint64(0) // another for other members
	for _, r := range a.members {
		group += 1 << (r % 64)
	}
	members := slices.Sorted(slices.Values(a.members))
	v, err := e.visiting(context.Background(), &transport.Call{Group: group}, members)
	if err != nil {
		panic(err)
	}
	v.Arrive()
}

// finish goes on with what an endpoint is doing, and reports whether that is done.
func (w *world) finish(t testing.TB, e *endpoint) bool {
	if e.visit != nil {
		if !e.visit.Met() {
			return false
		}
		e.dismiss(false)
		return true
	}
	if _, err := e.step(); err != nil {
		t.Error(err)
	}
	if len(e.chains) > 0 || e.sent < len(e.batch) {
		return false
	}
	e.settled = true
	e.end()
	return true
}

// enter has e enter the register, and compares what it finds with all there is.
func (w *world) enter(t *testing.T, e *endpoint, seen map[string]int) {
	ready := e.ready()
	added, err := e.lane.blocked.enter(e)
	if ready {
		if seen["ready"]++; added || err != nil {
			t.Errorf("replica %d need not wait: it is added: %v, error %v", e.rank, added, err)
		}
		return
	}
	seen["entry"]++
	w.members[e.rank] = e
	edges := w.allEdges()
	want := circular(edges)
	var found *transport.DeadlockError
	errors.As(err, &found)
	if added == want || (found != nil) != want {
		t.Errorf("replica %d enters: added %v, error %v, want a deadlock: %v of %v", e.rank, added, err, want, edges)
	}
	if found == nil {
		return
	}
	w.over = true
	seen["deadlock"]++
	for i, from := range found.Replicas {
		to := found.Replicas[(i+1)%len(found.Replicas)]
		direct := slices.ContainsFunc(edges[from], func(d edge) bool { return d.to == to })
		if !direct && !slices.ContainsFunc(edges[from], func(d edge) bool { return d.via == to }) {
			t.Errorf("%v: replica %d does not wait for %d, but for %v", err, from, to, edges[from])
		}
		if !direct {
			seen["deadlock by way of a third"]++
		}
		if w.eps[from].visit != nil {
			seen["deadlock at a meeting"]++
		}
	}
}

// TestRegisterOfOneNumber: replicas that wait in two calls of one number disagree, but one whose meeting has come about
// does not wait any more: the other may have met it there, and be further.
func TestRegisterOfOneNumber(t *testing.T) {
	made, err := New(2)
	if err != nil {
		t.Fatal(err)
	}
	here, there := made[0].(*endpoint), made[1].(*endpoint)
	here.lane.nw.spacious = true // everyone looks for itself
	first := transport.Call{Group: 1, Seq: 1, Method: 1}
	second := transport.Call{Group: 1, Seq: 1, Method: 2}
	atMeeting := func(e *endpoint) {
		v, err := e.visiting(t.Context(), &first, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		v.Arrive()
	}
	register := &here.lane.blocked
	enters := func() error {
		there.busy.Lock()
		there.begin(t.Context(), second, []transport.Transfer{{Peer: 0, Kind: transport.Recv}})
		added, err := register.enter(there)
		if added == (err != nil) {
			t.Errorf("added %v, error %v", added, err)
		}
		if added {
			register.leave(there)
		}
		there.settled = true
		there.end()
		return err
	}
	atMeeting(here)
	if added, err := register.enter(here); !added || err != nil {
		t.Fatalf("added %v, error %v", added, err)
	}
	if err := enters(); !errors.As(err, new(*transport.MismatchError)) {
		t.Errorf("got %v before they have met, want a MismatchError", err)
	}
	atMeeting(there)
	there.dismiss(false)
	if err := enters(); err != nil {
		t.Errorf("got %v after they have met", err)
	}
	register.leave(here)
	here.dismiss(false)
	for _, e := range made {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// circular reports whether some of those who wait for each other do so in a circle: some are left when again and again
// those are taken away who wait for nobody.
func circular(edges [][]edge) bool {
	gone := make([]bool, len(edges))
	for again := true; again; {
		again = false
		for q := range edges {
			if !gone[q] && !slices.ContainsFunc(edges[q], func(d edge) bool { return !gone[d.to] }) {
				gone[q], again = true, true
			}
		}
	}
	return slices.Contains(gone, false)
}

// allEdges are the edges between all members, found without an index.
func (w *world) allEdges() [][]edge {
	edges := make([][]edge, len(w.members))
	for q, m := range w.members {
		if m == nil {
			continue
		}
		add := func(to, via int) {
			if w.members[to] != nil {
				edges[q] = append(edges[q], edge{to, via})
			}
		}
		if v := m.visit; v != nil {
			for place, r := range v.Members {
				if !v.Present(place) {
					add(r, -1)
				}
			}
			continue
		}
		for _, c := range m.chains {
			for i := c.at; i < c.end; i++ {
				if !m.arrived(i) {
					add(m.batch[i].Peer, -1)
				}
			}
		}
		for i, t := range m.batch {
			if t.Kind != transport.Send || m.slots[i].state.Load() != posted || w.members[t.Peer] == nil {
				continue
			}
			p := w.members[t.Peer]
			wanted := false
			for _, c := range p.chains {
				for at := c.at; at < c.end; at++ {
					if u := p.batch[at]; u.Peer != q || u.Tag != t.Tag {
						continue
					}
					wanted = true
					for k := c.at; k < at; k++ {
						if !p.arrived(k) {
							add(p.batch[k].Peer, p.rank)
						}
					}
				}
			}
			if !wanted {
				add(p.rank, -1)
			}
		}
	}
	return edges
}
