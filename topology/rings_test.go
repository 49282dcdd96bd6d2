package topology_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/topology"
)

// all returns every replica: the group of all.
func all(m topology.Topology) []int {
	members := make([]int, m.Replicas())
	for r := range members {
		members[r] = r
	}
	return members
}

func rings(t testing.TB, m topology.Topology, name topology.RingName, members []int) topology.Rings {
	t.Helper()
	rings, err := m.Rings(name, members)
	if err != nil {
		t.Fatalf("%v: %v over %v: %v", m, name, members, err)
	}
	for _, ring := range [][]int{rings.First, rings.Second} {
		if ring[0] != 0 || !isPermutation(ring, len(members)) {
			t.Fatalf("%v: %v over %v: ring %v", m, name, members, ring)
		}
	}
	return rings
}

func isPermutation(ring []int, n int) bool {
	sorted := slices.Sorted(slices.Values(ring))
	for i, x := range sorted {
		if x != i {
			return false
		}
	}
	return len(ring) == n
}

// edges returns the undirected hops of a ring.
func edges(ring []int) map[[2]int]int {
	count := map[[2]int]int{}
	for i, a := range ring {
		b := ring[(i+1)%len(ring)]
		count[[2]int{min(a, b), max(a, b)}]++
	}
	return count
}

func shareEdge(a, b []int) bool {
	other := edges(b)
	for e := range edges(a) {
		if other[e] > 0 {
			return true
		}
	}
	return false
}

// isMirror reports whether b is a in the other direction.
func isMirror(a, b []int) bool {
	for i := range a {
		if b[i] != a[(len(a)-i)%len(a)] {
			return false
		}
	}
	return true
}

// hops returns the links of a ring's hops, in order.
func hops(m topology.Topology, ring, members []int) []topology.Link {
	var links []topology.Link
	for i, rank := range ring {
		links = append(links, m.ReplicaLink(members[rank], members[ring[(i+1)%len(ring)]]))
	}
	return links
}

// TestLadderRing: the ring round the edge of a ladder goes up the even ids of the left column and down the odd ones of
// the right.
func TestLadderRing(t *testing.T) {
	t.Parallel()
	ladderRing := func(n int) []int {
		ladder, err := topology.New(topology.Config{Shape: topology.OpenLadder, Replicas: []int{n}})
		if err != nil {
			t.Fatal(err)
		}
		all := make([]int, n)
		for id := range all {
			all[id] = id
		}
		rings, err := ladder.Rings(topology.Auto, all)
		if err != nil {
			t.Fatal(err)
		}
		return rings.First
	}
	for n, want := range map[int]string{
		1: "[0]",
		2: "[0 1]", 4: "[0 2 3 1]", 8: "[0 2 4 6 7 5 3 1]", // SEMANTICS.md
		3: "[0 2 1]", 5: "[0 2 4 3 1]", 7: "[0 2 4 6 5 3 1]",
	} {
		if got := fmt.Sprint(ladderRing(n)); got != want {
			t.Errorf("%d IPUs: %s, want %s", n, got, want)
		}
	}
	for n := 1; n <= 66; n++ {
		var want []int
		for id := 0; id < n; id++ {
			if id%2 == 0 {
				want = append(want, id)
			}
		}
		for id := n - 1; id > 0; id-- {
			if id%2 == 1 {
				want = append(want, id)
			}
		}
		if got := ladderRing(n); !slices.Equal(got, want) {
			t.Fatalf("%d IPUs: %v, want %v", n, got, want)
		}
	}
}

// Two rings on a clique, for every size up to 200: rank order, and a Hamiltonian cycle without an edge of it.
func TestCliqueRings(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 200; n++ {
		m := clique(t, n)
		r := rings(t, m, topology.Auto, all(m))
		if !slices.Equal(r.First, all(m)) {
			t.Fatalf("n=%d: first is %v", n, r.First)
		}
		if n < 5 {
			if r.Disjoint || !slices.Equal(r.First, r.Second) {
				t.Errorf("n=%d: %+v, want the same ring twice", n, r)
			}
			continue
		}
		if !r.Disjoint || shareEdge(r.First, r.Second) || len(edges(r.Second)) != n {
			t.Fatalf("n=%d: %v and %v", n, r.First, r.Second)
		}
	}
}

// hamiltonianCycles lists every cycle through 0..n-1 once in each direction, as rings from 0.
func hamiltonianCycles(n int) [][]int {
	var cycles [][]int
	var extend func(ring []int)
	extend = func(ring []int) {
		if len(ring) == n {
			cycles = append(cycles, slices.Clone(ring))
		}
		for next := range n {
			if !slices.Contains(ring, next) {
				extend(append(ring, next))
			}
		}
	}
	extend([]int{0})
	return cycles
}

// What docs/design/rings.md claims: below five no pair of cycles does without a common edge, from five on there is one.
func TestDisjointCyclesExist(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 7; n++ {
		cycles, found := hamiltonianCycles(n), false
		for _, c := range cycles {
			found = found || !shareEdge(cycles[0], c) // by symmetry the first cycle stands for all
		}
		if found != (n >= 5) {
			t.Errorf("n=%d: two edge-disjoint cycles: %v", n, found)
		}
	}
}

// On several hosts the second ring crosses as often as the first, on links of its own.
func TestCliqueRingsAcrossHosts(t *testing.T) {
	t.Parallel()
	crossings := func(m topology.Topology, ring []int) (n int) {
		for _, link := range hops(m, ring, all(m)) {
			if link.Kind == topology.GWLink {
				n++
			}
		}
		return n
	}
	for _, sizes := range [][]int{{4, 4}, {5, 4}, {7, 8, 9}, {4, 4, 4, 4}, {64, 5, 31, 4, 6}} {
		m := clique(t, sizes...)
		r := rings(t, m, topology.Auto, all(m))
		if !r.Disjoint || shareEdge(r.First, r.Second) || len(edges(r.Second)) != m.Replicas() {
			t.Errorf("%v: %v and %v, disjoint %v", m, r.First, r.Second, r.Disjoint)
		}
		if a, b := crossings(m, r.First), crossings(m, r.Second); a != len(sizes) || b != len(sizes) {
			t.Errorf("%v: %d and %d crossings", m, a, b)
		}
	}
	for _, sizes := range [][]int{{4, 3}, {1, 1, 1, 1, 1, 1}, {8, 8, 2}} {
		m := clique(t, sizes...)
		if r := rings(t, m, topology.Auto, all(m)); r.Disjoint || !slices.Equal(r.First, r.Second) {
			t.Errorf("%v: %+v, want the same ring twice", m, r)
		}
	}
}

// Random groups on random clusters, in any order: Disjoint is never a lie.
func TestCliqueRandomGroups(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	disjoint := 0
	for range 3000 {
		sizes := make([]int, 1+rng.IntN(4))
		for d := range sizes {
			sizes[d] = 1 + rng.IntN(12)
		}
		m := clique(t, sizes...)
		members := rng.Perm(m.Replicas())[:1+rng.IntN(m.Replicas())]
		if rng.IntN(3) > 0 {
			slices.Sort(members)
		}
		name := topology.Auto
		if rng.IntN(2) == 0 {
			name = topology.PeripheralRing
		}
		r := rings(t, m, name, members)
		if r.Disjoint == shareEdge(r.First, r.Second) && len(members) > 1 {
			t.Fatalf("%v over %v: %+v", m, members, r)
		}
		if r.Disjoint {
			disjoint++
		}
	}
	if disjoint < 300 {
		t.Errorf("only %d of 3000 groups have two rings", disjoint)
	}
}

func TestNamedRings(t *testing.T) {
	t.Parallel()
	const (
		up   = "[0 1 2 3 4 5]"
		back = "[0 2 4 5 3 1]"
		fail = "error"
	)
	names := []topology.RingName{topology.Auto, topology.RungRing2, topology.RungRing4, topology.RungRing8,
		topology.RingOnLine, topology.PeripheralRing}
	for _, c := range []struct {
		shape topology.Shape
		ipus  int
		name  topology.RingName // what auto comes to
		want  [6]string         // by name
	}{
		{topology.Clique, 1, topology.Auto, [6]string{up, fail, fail, fail, fail, back}},
		{topology.Clique, 2, topology.Auto, [6]string{up, up, fail, fail, back, fail}},
		{topology.Clique, 4, topology.Auto, [6]string{up, fail, up, fail, fail, fail}},
		{topology.Clique, 8, topology.Auto, [6]string{up, fail, fail, up, fail, fail}},
		{topology.Clique, 3, topology.Auto, [6]string{up, fail, fail, fail, fail, fail}},
		{topology.OpenLadder, 1, topology.PeripheralRing, [6]string{back, fail, fail, fail, fail, back}},
		{topology.OpenLadder, 2, topology.RingOnLine, [6]string{back, fail, fail, fail, back, fail}},
		{topology.OpenLadder, 4, topology.Auto, [6]string{back, fail, fail, fail, fail, fail}},
		{topology.OpenLadder, 8, topology.Auto, [6]string{back, fail, fail, fail, fail, fail}},
		{topology.OpenLadder, 5, topology.Auto, [6]string{back, fail, fail, fail, fail, fail}},
		{topology.JoinedLadder, 1, topology.PeripheralRing, [6]string{back, fail, fail, fail, fail, back}},
		{topology.JoinedLadder, 2, topology.RungRing2, [6]string{up, up, fail, fail, back, fail}},
		{topology.JoinedLadder, 4, topology.RungRing4, [6]string{up, fail, up, fail, fail, fail}},
		{topology.JoinedLadder, 8, topology.RungRing8, [6]string{up, fail, fail, up, fail, fail}},
		{topology.JoinedLadder, 3, topology.Auto, [6]string{up, fail, fail, fail, fail, fail}},
		{topology.JoinedLadder, 16, topology.Auto, [6]string{up, fail, fail, fail, fail, fail}},
	} {
		m := ladder(t, c.shape, c.ipus, 6)
		for i, name := range names {
			r, err := m.Rings(name, all(m))
			got := fmt.Sprint(r.First)
			if err != nil {
				got = fail
			}
			if got != c.want[i] {
				t.Errorf("%v: %v is %s, %v, want %s", m, name, got, err, c.want[i])
				continue
			}
			want := name
			if name == topology.Auto {
				want = c.name
			}
			if err == nil && r.Name != want {
				t.Errorf("%v: %v came to %v, want %v", m, name, r.Name, want)
			}
			if err == nil && c.shape != topology.Clique && (!isMirror(r.First, r.Second) || !r.Disjoint) {
				t.Errorf("%v: %v: %+v is no mirror", m, name, r)
			}
			if err == nil && c.shape == topology.Clique && (shareEdge(r.First, r.Second) || !r.Disjoint) {
				t.Errorf("%v: %v: %+v share an edge", m, name, r)
			}
		}
	}
}

func TestRingErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m       topology.Topology
		name    topology.RingName
		members []int
		want    string
	}{
		{clique(t, 4), topology.RungRing2, []int{0, 1}, "ring rung-ring-2 is for replicas of 2 IPUs, these have 1"},
		{ladder(t, topology.JoinedLadder, 2, 4), topology.PeripheralRing, []int{0, 1}, "ring peripheral-ring is for replicas of 1 IPUs, these have 2"},
		{ladder(t, topology.OpenLadder, 4, 4), topology.RungRing4, []int{0, 1}, "ring rung-ring-4 goes around at the top: it needs a ladder with joined ends, this one is open"},
		{clique(t, 4), topology.RingName(17), []int{0}, "topology: RingName(17) is no ring, want one of auto, rung-ring-2,"},
		{clique(t, 4), topology.Auto, nil, "at least one member"},
		{clique(t, 4), topology.Auto, []int{0, 4}, "member 1 is replica 4, but there are 4 replicas"},
		{clique(t, 4), topology.Auto, []int{-1}, "member 0 is replica -1"},
		{clique(t, 4), topology.Auto, []int{3, 1, 3}, "replica 3 is a member twice"},
		{topology.Topology{}, topology.Auto, []int{0}, "there are 0 replicas"},
	} {
		r, err := c.m.Rings(c.name, c.members)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v over %v: %v, error %v, want %q in it", c.m, c.name, c.members, r, err, c.want)
		}
	}
}

// The claims of Rings: where every hop of a ladder's ring is a direct link, a bundle of at least two.
func TestDirectHops(t *testing.T) {
	t.Parallel()
	direct := func(m topology.Topology, members []int) {
		t.Helper()
		r := rings(t, m, topology.Auto, members)
		for i, link := range hops(m, r.First, members) {
			if len(members) > 1 && link.Count < 2 {
				t.Fatalf("%v over %v: hop %d of %v has %v", m, members, i, r.First, link)
			}
		}
	}
	for n := 2; n <= 24; n++ {
		for _, domains := range []int{1, 2, 4, 6} {
			sizes := slices.Repeat([]int{n}, domains)
			if n%2 == 0 {
				for _, shape := range []topology.Shape{topology.OpenLadder, topology.JoinedLadder} {
					direct(ladder(t, shape, 1, sizes...), all(ladder(t, shape, 1, sizes...)))
				}
			}
			for _, ipus := range []int{2, 3, 4, 5, 8, 16} {
				if n*ipus%2 == 0 {
					direct(ladder(t, topology.JoinedLadder, ipus, sizes...),
						all(ladder(t, topology.JoinedLadder, ipus, sizes...)))
				}
			}
		}
		// Blocks of neighbours that begin with an even id.
		m := ladder(t, topology.OpenLadder, 1, 24)
		for first := 0; first+n <= 24 && n%2 == 0; first += 2 {
			direct(m, all(m)[first:first+n])
		}
		// One from each ladder, all at the same place.
		m = ladder(t, topology.OpenLadder, 1, slices.Repeat([]int{4}, n)...)
		for place := range 4 {
			var members []int
			for d := range n {
				members = append(members, 4*d+place)
			}
			direct(m, members)
		}
	}
}

// ring-on-line: a clockwise turn goes over each rail between neighbouring rungs once up and once down, never more than
// two rungs at a time.
func TestRingOnLineLoad(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 33; n++ {
		m := ladder(t, topology.OpenLadder, 2, n)
		ring := rings(t, m, topology.RingOnLine, all(m)).First
		up, down := make([]int, n), make([]int, n)
		for i, a := range ring {
			b := ring[(i+1)%n]
			if b-a > 2 || a-b > 2 {
				t.Errorf("n=%d: a hop from %d to %d", n, a, b)
			}
			for rung := a; rung < b; rung++ {
				up[rung]++
			}
			for rung := b; rung < a; rung++ {
				down[rung]++
			}
		}
		for rung := range n - 1 {
			if up[rung] != 1 || down[rung] != 1 {
				t.Errorf("n=%d: rail above rung %d carries %d up and %d down", n, rung, up[rung], down[rung])
			}
		}
	}
}

// A group on part of a ladder keeps the order of the whole, whatever the members and their order.
func TestRingsOfSubsets(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 3000 {
		shape, ipus := topology.OpenLadder, 1+rng.IntN(8)
		replicas := 1 + rng.IntN(20)
		if rng.IntN(2) == 0 && replicas*ipus%2 == 0 {
			shape = topology.JoinedLadder
		}
		m := ladder(t, shape, ipus, replicas)
		members := rng.Perm(replicas)[:1+rng.IntN(replicas)]
		r := rings(t, m, topology.Auto, members)
		var want []int
		for _, replica := range rings(t, m, topology.Auto, all(m)).First {
			if rank := slices.Index(members, replica); rank >= 0 {
				want = append(want, rank)
			}
		}
		zero := slices.Index(want, 0)
		if want = slices.Concat(want[zero:], want[:zero]); !slices.Equal(r.First, want) {
			t.Fatalf("%v over %v: %v, want %v", m, members, r.First, want)
		}
		if !isMirror(r.First, r.Second) || r.Disjoint != (len(members) > 1) {
			t.Fatalf("%v over %v: %+v", m, members, r)
		}
	}
}

// Several ladders are taken one after the other, up and down in turn.
func TestRingsOverLadders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m       topology.Topology
		members []int
		want    string
	}{
		{ladder(t, topology.OpenLadder, 1, 4, 4), nil, "[0 2 3 1 5 7 6 4]"},
		{ladder(t, topology.OpenLadder, 1, 4, 4, 4), nil, "[0 2 3 1 5 7 6 4 8 10 11 9]"},
		{ladder(t, topology.JoinedLadder, 2, 4, 4), nil, "[0 1 2 3 7 6 5 4]"},
		{ladder(t, topology.OpenLadder, 1, 4, 4, 4), []int{0, 1, 2, 3, 8, 9, 10, 11}, "[0 2 3 1 5 7 6 4]"},
		{ladder(t, topology.OpenLadder, 1, 4, 4, 4), []int{8, 4, 0}, "[0 2 1]"},
	} {
		if c.members == nil {
			c.members = all(c.m)
		}
		if got := fmt.Sprint(rings(t, c.m, topology.Auto, c.members).First); got != c.want {
			t.Errorf("%v over %v: %s, want %s", c.m, c.members, got, c.want)
		}
	}
}

// What a caller does to its slices does not reach the rings, nor one ring the other.
func TestRingsAreTheCallers(t *testing.T) {
	t.Parallel()
	for _, m := range []topology.Topology{clique(t, 3), clique(t, 8), ladder(t, topology.OpenLadder, 1, 8)} {
		members := all(m)
		a, b := rings(t, m, topology.Auto, members), rings(t, m, topology.Auto, members)
		clear(a.First)
		clear(members)
		if !slices.Equal(a.Second, b.Second) || b.First[1] == 0 {
			t.Errorf("%v: rings share memory", m)
		}
	}
}
