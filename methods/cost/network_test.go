package cost_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// fast carries a byte in a nanosecond and has a latency of a microsecond.
var fast = cost.Link{BytesPerSecond: 1e9, Latency: us}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// oneRound is a schedule, if of no use, of one round in which each pair's first rank sends chunk 0 of one to the
// second.
func oneRound(size int, pairs ...[2]int) *schedule.Schedule {
	s := toRankZero(size)
	for _, p := range pairs {
		round := &s.Programs[p[0]][0]
		round.Moves = append(round.Moves, schedule.Step{Verb: schedule.Send, Peer: p[1], Src: schedule.In(0, 1)})
	}
	return s
}

// The numbers are worked out by hand: 1000 bytes take 1 us.
func TestTorus(t *testing.T) {
	t.Parallel()
	slow := cost.Link{BytesPerSecond: 1e8, Latency: 10 * us}
	ring := must[cost.Network](t)(cost.Torus([]int{8}, fast))
	flat := must[cost.Network](t)(cost.Torus([]int{4, 3}, fast, slow))
	wide := must[cost.Network](t)(cost.Torus([]int{4}, cost.Link{BytesPerSecond: 1e9, Latency: us, Cables: 2}))
	tests := []struct {
		name    string
		network cost.Network
		pairs   [][2]int
		want    time.Duration
	}{
		{"next", ring, [][2]int{{0, 1}}, 2 * us},
		{"around the end", ring, [][2]int{{0, 7}}, 2 * us},
		{"both ways do not share", ring, [][2]int{{0, 1}, {1, 0}}, 2 * us},
		{"three down, two of them over 7 to 6", ring, [][2]int{{0, 5}, {7, 6}}, 5 * us},
		{"a tie goes up", ring, [][2]int{{0, 4}, {4, 0}, {1, 2}, {5, 6}}, 6 * us},
		{"and not down", ring, [][2]int{{0, 4}, {4, 0}, {2, 1}, {6, 5}}, 5 * us},
		{"far", ring, [][2]int{{0, 3}, {1, 3}, {2, 3}}, 6 * us}, // 3 latencies, and all over 2 to 3
		{"first dimension", flat, [][2]int{{0, 3}}, 2 * us},
		{"second dimension", flat, [][2]int{{0, 8}}, 20 * us},
		{"both", flat, [][2]int{{0, 5}}, 21 * us},                          // up, up
		{"first dimension first", flat, [][2]int{{0, 5}, {0, 1}}, 21 * us}, // two over 0 to 1: 2 us, and 10 over the other
		{"not the second", flat, [][2]int{{0, 5}, {0, 4}}, 21 * us},
		{"the second comes last", flat, [][2]int{{0, 5}, {1, 5}}, 31 * us},
		{"two cables", wide, [][2]int{{0, 1}, {0, 1}}, 2 * us},
		{"three on two cables", wide, [][2]int{{0, 1}, {0, 1}, {0, 1}}, 3 * us},
	}
	for _, tt := range tests {
		n := tt.network.Replicas()
		e, err := cost.Model{Network: tt.network}.Price(oneRound(n, tt.pairs...), upTo(n), 1000)
		if err != nil || e.Time != tt.want {
			t.Errorf("%s: %v, %v, want %v", tt.name, e.Time, err, tt.want)
		}
	}
}

// Eight replicas, four to a switch, whose links up have two cables.
func TestFatTree(t *testing.T) {
	t.Parallel()
	up := cost.Link{BytesPerSecond: 1e9, Latency: us, Cables: 2}
	tree := must[cost.Network](t)(cost.FatTree(cost.Level{Children: 4, Link: fast}, cost.Level{Children: 2, Link: up}))
	tests := []struct {
		name  string
		pairs [][2]int
		want  time.Duration
	}{
		{"in one switch", [][2]int{{0, 3}}, 3 * us},
		{"over the top", [][2]int{{0, 4}}, 5 * us},
		{"two over the top have a cable each", [][2]int{{0, 4}, {1, 5}}, 5 * us},
		{"three share", [][2]int{{0, 4}, {1, 5}, {2, 6}}, 6 * us},
		{"four share", [][2]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, 6 * us},
		{"and both ways", [][2]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {4, 0}, {5, 1}, {6, 2}, {7, 3}}, 6 * us},
		{"one receiver", [][2]int{{1, 0}, {2, 0}, {3, 0}}, 5 * us},
	}
	for _, tt := range tests {
		e, err := cost.Model{Network: tree}.Price(oneRound(8, tt.pairs...), upTo(8), 1000)
		if err != nil || e.Time != tt.want {
			t.Errorf("%s: %v, %v, want %v", tt.name, e.Time, err, tt.want)
		}
	}
	high := must[cost.Network](t)(cost.FatTree(cost.Level{Children: 2, Link: fast}, cost.Level{Children: 2, Link: fast},
		cost.Level{Children: 3, Link: fast}))
	if n := high.Replicas(); n != 12 {
		t.Errorf("%d replicas, want 12", n)
	}
	e, err := cost.Model{Network: high}.Price(oneRound(12, [2]int{0, 11}), upTo(12), 1000)
	if want := 7 * us; err != nil || e.Time != want {
		t.Errorf("three levels up and down: %v, %v, want %v", e.Time, err, want)
	}
}

// TestCables: each message takes the first of those cables that carry least, whatever the others have.
func TestCables(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for cables := range 7 {
		link := cost.Link{BytesPerSecond: 1, Cables: cables}
		for messages := range 40 {
			s := toRankZero(2)
			s.Chunks = 10
			loads := make([]int, max(cables, 1))
			round := &s.Programs[1][0]
			for range messages {
				n := random.IntN(s.Chunks + 1)
				round.Moves = append(round.Moves, schedule.Step{Verb: schedule.Send, Src: schedule.In(0, n)})
				least := slices.Index(loads, slices.Min(loads))
				loads[least] += n
			}
			e, err := cost.Model{Network: odd{2, 1, link, []int{0}}}.Price(s, upTo(2), 10)
			if want := time.Duration(slices.Max(loads)) * time.Second; err != nil || e.Time != want {
				t.Errorf("%d messages on %d cables: %v, %v, want %v", messages, cables, e.Time, err, want)
			}
		}
	}
}

// TestTorusRoutes: a message takes as many links as its ends are apart, in all dimensions together.
func TestTorusRoutes(t *testing.T) {
	t.Parallel()
	dims := []int{4, 1, 5, 2}
	n := must[cost.Network](t)(cost.Torus(dims, fast))
	for from := range n.Replicas() {
		for to := range n.Replicas() {
			apart, stride := 0, 1
			for _, d := range dims {
				by := (to/stride%d - from/stride%d + d) % d
				apart += min(by, d-by)
				stride *= d
			}
			if from == to {
				continue
			}
			if links, err := n.Route(nil, from, to); err != nil || len(links) != apart {
				t.Errorf("%d to %d: links %v, error %v, want %d of them", from, to, links, err, apart)
			}
		}
	}
}

// TestMachineLinks compares the links of a ladder with those of all pairs.
func TestMachineLinks(t *testing.T) {
	t.Parallel()
	for _, shape := range []topology.Shape{topology.OpenLadder, topology.JoinedLadder} {
		for _, ipus := range []int{1, 2, 3, 4, 8} {
			for _, replicas := range [][]int{{1}, {2}, {3}, {4}, {5}, {6}, {12}, {2, 2}, {4, 2, 6}} {
				m, err := topology.New(topology.Config{Shape: shape, Replicas: replicas, IPUsPerReplica: ipus})
				if err != nil {
					continue // half a rung
				}
				want := 0
				for a := range m.Replicas() {
					for b := range m.Replicas() {
						if m.ReplicaLink(a, b).Kind != topology.NoLink {
							want++
						}
					}
				}
				if got := cost.Machine(m).Links(); got != want {
					t.Errorf("%v: %d links, want %d", m, got, want)
				}
			}
		}
	}
}

// TestEnds: an overhead at each end of each message, and the bytes that are folded, one after the other.
func TestEnds(t *testing.T) {
	t.Parallel()
	ring := must[cost.Network](t)(cost.Torus([]int{4}, fast))
	s := must[*schedule.Schedule](t)(methods.Build(methods.Spec{Method: methods.ClockwiseRing,
		Collective: schedule.AllReduce, Size: 4, Ring: upTo(4)}))
	tests := []struct {
		name  string
		model cost.Model
		want  time.Duration
	}{
		{"links alone", cost.Model{Network: ring}, 6 * 2 * us},
		{"a send and a receive a round", cost.Model{Network: ring, Overhead: us}, 6 * (2 + 2) * us},
		{"folds in three rounds", cost.Model{Network: ring, FoldBytesPerSecond: 5e8}, 6*2*us + 3*2*us},
		{"both", cost.Model{Network: ring, Overhead: us, FoldBytesPerSecond: 5e8}, 6*4*us + 3*2*us},
	}
	for _, tt := range tests {
		e, err := tt.model.Price(s, upTo(4), 4000)
		if err != nil || e.Time != tt.want {
			t.Errorf("%s: %v, %v, want %v", tt.name, e.Time, err, tt.want)
		}
	}
	// Local folds count too: each rank folds three quarters that others send.
	clique := cost.Machine(machine(t, topology.Clique, 1, 4))
	s = must[*schedule.Schedule](t)(methods.Build(methods.Spec{Method: methods.Direct,
		Collective: schedule.ReduceScatter, Size: 4}))
	e, err := cost.Model{Network: clique, FoldBytesPerSecond: 1e9}.Price(s, upTo(4), 4000)
	if want := (4 + 3) * us; err != nil || e.Time != want {
		t.Errorf("direct: %v, %v, want %v", e.Time, err, want)
	}
}

// odd is a network of two replicas that answers as it is told.
type odd struct {
	replicas, links int
	link            cost.Link
	route           []int
}

func (o odd) Replicas() int                              { return o.replicas }
func (o odd) Links() int                                 { return o.links }
func (o odd) Link(int) cost.Link                         { return o.link }
func (o odd) Route(links []int, _, _ int) ([]int, error) { return append(links, o.route...), nil }

func TestModelErrors(t *testing.T) {
	t.Parallel()
	good := odd{2, 1, fast, []int{0}}
	with := func(change func(o *odd)) cost.Model {
		o := good
		change(&o)
		return cost.Model{Network: o}
	}
	tests := []struct {
		model cost.Model
		want  string
	}{
		{cost.Model{}, "no network"},
		{with(func(o *odd) { o.links = -1 }), "a network of -1 links, want 0 to 67108864"},
		{with(func(o *odd) { o.links = 1<<26 + 1 }), "a network of 67108865 links"},
		{with(func(o *odd) { o.replicas = -1 }), "a network of -1 replicas, want 0 to 16777216"},
		{with(func(o *odd) { o.replicas = 1<<24 + 1 }), "a network of 16777217 replicas"},
		{with(func(o *odd) { o.route = []int{1} }), "from replica 1 to replica 0: the route takes link 1 of 1"},
		{with(func(o *odd) { o.route = []int{-1} }), "the route takes link -1 of 1"},
		{with(func(o *odd) { o.link.BytesPerSecond = 0 }), "link 0: 0 bytes per second, want a finite number, at least 0.001"},
		{with(func(o *odd) { o.link.BytesPerSecond = math.NaN() }), "NaN bytes per second"},
		{with(func(o *odd) { o.link.BytesPerSecond = math.Inf(1) }), "+Inf bytes per second"},
		{with(func(o *odd) { o.link.Latency = -1 }), "a latency of -1ns, want 0 or more"},
		{with(func(o *odd) { o.link.Cables = -1 }), "-1 cables, want 1 to 1024, or 0 for 1"},
		{with(func(o *odd) { o.link.Cables = 1025 }), "1025 cables"},
		{cost.Model{Network: good, Overhead: -1}, "an overhead of -1ns, want 0 or more"},
		{cost.Model{Network: good, FoldBytesPerSecond: -1}, "-1 bytes folded per second, want a finite number above 0"},
		{cost.Model{Network: good, FoldBytesPerSecond: math.NaN()}, "NaN bytes folded"},
		{cost.Model{Network: good, FoldBytesPerSecond: math.Inf(1)}, "+Inf bytes folded"},
	}
	if _, err := (cost.Model{Network: good}).Price(toRankZero(2, 1), upTo(2), 1); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		e, err := tt.model.Price(toRankZero(2, 1), upTo(2), 1)
		if err == nil || !strings.Contains(err.Error(), tt.want) || e != (cost.Estimate{}) {
			t.Errorf("%+v, error %v, want one with %q", e, err, tt.want)
		}
	}
}

func TestNetworkErrors(t *testing.T) {
	t.Parallel()
	torus := func(links []cost.Link, dims ...int) error {
		_, err := cost.Torus(dims, links...)
		return err
	}
	tree := func(levels ...cost.Level) error {
		_, err := cost.FatTree(levels...)
		return err
	}
	one := []cost.Link{fast}
	many := make([]int, 60)
	for i := range many {
		many[i] = 1
	}
	many[0] = 1 << 24
	tests := []struct {
		err  error
		want string
	}{
		{torus(one), "a torus without dimensions"},
		{torus(one, 4, 0), "0 places in dimension 1, want 1 or more"},
		{torus(one, -4), "-4 places in dimension 0"},
		{torus(one, 1<<12, 1<<13), "more than 16777216 replicas"},
		{torus(one, math.MaxInt, math.MaxInt), "more than 16777216 replicas"},
		{torus(one, many...), "more than 67108864 links"},
		{torus(nil, 4), "0 links for a torus of 1 dimensions, want 1 or 1"},
		{torus([]cost.Link{fast, fast}, 2, 2, 2), "2 links for a torus of 3 dimensions, want 1 or 3"},
		{torus([]cost.Link{fast, {}}, 2, 2), "link of dimension 1 of a torus: 0 bytes per second"},
		{tree(), "a fat tree without levels"},
		{tree(cost.Level{Children: 2, Link: fast}, cost.Level{Link: fast}), "level 1 of a fat tree with 0 children"},
		{tree(cost.Level{Children: 2}), "link of level 0 of a fat tree: 0 bytes per second"},
		{tree(cost.Level{Children: 1 << 20, Link: fast}, cost.Level{Children: 1 << 20, Link: fast}), "more than 16777216"},
		{tree(append(slices.Repeat([]cost.Level{{Children: 1, Link: fast}}, 3),
			cost.Level{Children: 1 << 24, Link: fast})...), "a fat tree of 100663296 links in 3 of 4 levels, want at most " +
			"67108864"},
		{tree(append(slices.Repeat([]cost.Level{{Children: 1, Link: fast}}, 128), // 2^32 links and some more
			cost.Level{Children: 1 << 24, Link: fast})...), "a fat tree of 100663296 links in 3 of 129 levels"},
	}
	for _, tt := range tests {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", tt.err, tt.want)
		}
	}
}

// TestRoutes: each network has a route for each pair, of links that it has, and none from a replica to itself or one
// that does not exist.
func TestRoutes(t *testing.T) {
	t.Parallel()
	for name, n := range networks(t) {
		for from := range n.Replicas() {
			for to := range n.Replicas() {
				links, err := n.Route([]int{-7}, from, to)
				if from == to {
					want := fmt.Sprintf("from replica %d to replica %[1]d of", from)
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %d to itself: %v, error %v", name, from, links, err)
					}
					continue
				}
				if err != nil || len(links) < 2 || links[0] != -7 {
					t.Fatalf("%s: %d to %d: %v, error %v", name, from, to, links, err)
				}
				for _, l := range links[1:] {
					if l < 0 || l >= n.Links() || n.Link(l).BytesPerSecond <= 0 {
						t.Fatalf("%s: %d to %d takes link %d of %d, %+v", name, from, to, l, n.Links(), n.Link(l))
					}
				}
			}
		}
		for _, ends := range [][2]int{{-1, 0}, {0, -1}, {n.Replicas(), 0}, {0, n.Replicas()}} {
			if _, err := n.Route(nil, ends[0], ends[1]); err == nil {
				t.Errorf("%s: no error from %d to %d", name, ends[0], ends[1])
			}
		}
		if l := n.Link(n.Links()); l.BytesPerSecond != 0 {
			t.Errorf("%s: link %d of %[2]d is %+v", name, n.Links(), l)
		}
	}
}

// networks are one of each kind, of 12 replicas.
func networks(t testing.TB) map[string]cost.Network {
	return map[string]cost.Network{
		"clique": cost.Machine(machine(t, topology.Clique, 2, 8, 4)),
		"ladder": cost.Machine(machine(t, topology.OpenLadder, 1, 12)),
		"joined": cost.Machine(machine(t, topology.JoinedLadder, 2, 12)),
		"torus":  must[cost.Network](t)(cost.Torus([]int{2, 3, 2}, fast)),
		"tree": must[cost.Network](t)(cost.FatTree(cost.Level{Children: 3, Link: fast},
			cost.Level{Children: 4, Link: cost.Link{BytesPerSecond: 1e9, Latency: us, Cables: 2}})),
	}
}

// TestShared: prices on one network at once are those of one after the other.
func TestShared(t *testing.T) {
	t.Parallel()
	n := cost.Machine(machine(t, topology.OpenLadder, 1, 64))
	s := must[*schedule.Schedule](t)(methods.Build(methods.Spec{Method: methods.Direct,
		Collective: schedule.ReduceScatter, Size: 64}))
	want := must[cost.Estimate](t)(cost.Model{Network: n}.Price(s, upTo(64), 6400))
	n = cost.Machine(machine(t, topology.OpenLadder, 1, 64))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if e, err := (cost.Model{Network: n}).Price(s, upTo(64), 6400); err != nil || e != want {
				t.Errorf("%v, error %v, want %v", e, err, want)
			}
		})
	}
	group.Wait()
}
