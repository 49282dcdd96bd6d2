package cost_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// hidden is a network of which no more is known than its methods.
type hidden struct{ cost.Network }

// bounded are models of n replicas, some with processors that take time, by name.
func bounded(t testing.TB, n int) map[string]cost.Model {
	named := func(format string, args ...any) cost.Model {
		return cost.Model{Network: must[cost.Network](t)(cost.ParseNetwork(fmt.Sprintf(format, args...)))}
	}
	side := 1
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			side = d
		}
	}
	out := map[string]cost.Model{
		"torus":  named("torus:%dx%d:25e9,1us:10e9,500ns,2", n/side, side),
		"ring":   named("torus:%d", n),
		"tree":   named("fattree:%dx%d:25e9,1us:10e9,2us,3", side, n/side),
		"clique": named("clique:%d", n),
		"ladder": named("open-ladder:%d", n),
	}
	if n > 3 {
		out["domains"] = named("clique:%d+%d", n/2, n-n/2)
		out["ladders"] = named("open-ladder:%d+%d", n/2, n-n/2)
	}
	var text strings.Builder
	text.WriteString(fmt.Sprintf("replicas %d\nswitches 2\nlink %d %d 20e9 2us 3\n", n, n, n+1))
	for rank := range n { // two boxes, and each way round a ring one cable that is faster
		text.WriteString(fmt.Sprintf("link %d %d %g %dns\n", rank, n+2*rank/n, 10e9+1e9*float64(rank), 100+rank))
		if n > 2 {
			text.WriteString(fmt.Sprintf("oneway %d %d 30e9 3us\n", rank, (rank+1)%n))
		}
	}
	boxes := must[cost.Graph](t)(cost.ParseGraph([]byte(text.String())))
	out["boxes"] = cost.Model{Network: boxes, Overhead: us, FoldBytesPerSecond: 5e9}
	out["routed"] = cost.Model{Network: hidden{out["tree"].Network}, FoldBytesPerSecond: 50e9}
	slow := out["clique"]
	slow.Overhead, slow.FoldBytesPerSecond = 700*time.Nanosecond, 20e9
	out["processors"] = slow
	return out
}

var full = flag.Bool("full", false, "try all sizes of groups to 64 that have other divisors")

// TestNothingBeatsTheBound: every method takes as long as the bound, at least, on every network, with one replica that
// is no member too. -full has groups of up to 64, else of up to 12, and with -short of up to 8.
func TestNothingBeatsTheBound(t *testing.T) {
	t.Parallel()
	sizes := []int{1, 2, 3, 4, 6, 8, 9, 12}
	if *full {
		sizes = append(sizes, 5, 7, 16, 18, 24, 27, 32, 48, 63, 64)
	} else if testing.Short() {
		sizes = []int{2, 3, 4, 8}
	}
	for _, n := range sizes {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			t.Parallel()
			networks := bounded(t, n)
			for name, m := range bounded(t, n+1) {
				networks[name+", a replica left over"] = m
			}
			for _, c := range append(schedule.Collectives(), schedule.Barrier) {
				neverBeaten(t, c, n, networks)
			}
		})
	}
}

// neverBeaten tries all methods that do a collective.
func neverBeaten(t *testing.T, c schedule.Collective, n int, networks map[string]cost.Model) {
	root, members, bounds := n/3, upTo(n), map[string]cost.Bound{}
	for name, m := range networks {
		bounds[name] = must[cost.Bound](t)(m.Bound(c, root, members))
	}
	if !c.Contract().Rooted() {
		root = 0
	}
	for _, method := range methods.All() {
		for _, pieces := range []int{1, 16} {
			spec := methods.Spec{Method: method, Collective: c, Size: n, Root: root, Ring: members, Second: members,
				Pieces: pieces}
			if pieces > 1 && spec.Pipelined(1<<40, 1).Pieces == 0 {
				continue
			}
			if pieces == 1 && spec.Pipelined(1<<40, 1).Pieces == 0 {
				spec.Pieces = 0
			}
			s, err := methods.Build(spec)
			if errors.Is(err, errors.ErrUnsupported) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, m := range networks {
				for _, bytes := range []int64{0, 1, 1000, 1000 * int64(s.Chunks), 1 << 31} {
					if c == schedule.Barrier && bytes > 0 || c == schedule.AllToAll && bytes%int64(s.Chunks) != 0 {
						continue
					}
					e := must[cost.Estimate](t)(m.Price(s, members, bytes))
					if bound := bounds[name].Time(bytes); e.Time < bound {
						t.Errorf("%v of %d bytes over %d ranks by %v, %s: %v, bound %v", c, bytes, n, method, name,
							e.Time, bound)
					}
				}
			}
		}
	}
}

// TestBoundIsReached has methods that are as good as a network allows, by how much they miss it.
func TestBoundIsReached(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		network    string
		collective schedule.Collective
		method     string
		pieces     int
		want       float64
	}{
		{"clique:8", schedule.AllReduce, "direct", 0, 0.9999},
		{"clique:8", schedule.AllGather, "direct", 0, 0.9999},
		{"clique:8", schedule.ReduceScatter, "clockwise_ring", 0, 0.9999},
		{"clique:8", schedule.AllToAll, "direct", 0, 0.9999},
		{"clique:8", schedule.Scatter, "direct", 0, 0.9999},
		{"clique:8", schedule.Gather, "direct", 0, 0.9999},
		{"clique:8", schedule.Broadcast, "clockwise_ring", 64, 0.9},
		{"clique:8", schedule.Reduce, "clockwise_ring", 64, 0.9},
		{"torus:8", schedule.AllReduce, "bidirectional_ring_pair", 0, 0.999},
		{"torus:8", schedule.AllGather, "bidirectional_ring_pair", 0, 0.999},
		{"torus:8", schedule.ReduceScatter, "bidirectional_ring_pair", 0, 0.999},
		{"torus:2x2x2", schedule.AllReduce, "halving_doubling", 0, 0.33},          // one of three links at a time
		{"open-ladder:8", schedule.AllReduce, "quad_directional_ring", 0, 0.7999}, // 8 of 10 bundles
		{"fattree:4x4", schedule.AllReduce, "direct", 0, 0.999},
		{"fattree:4x4", schedule.AllToAll, "direct", 0, 0.999},
		{"fattree:4x4:1e9,0s:1e9,0s", schedule.AllReduce, "clockwise_ring", 0, 0.8},
	} {
		n := must[cost.Network](t)(cost.ParseNetwork(c.network))
		ring := upTo(n.Replicas())
		second := ring
		if machine, ok := cost.TopologyOf(n); ok {
			rings := must[topology.Rings](t)(machine.Rings(topology.Auto, ring))
			ring, second = rings.First, rings.Second
		}
		method := must[methods.Method](t)(methods.Parse(c.method))
		s := must[*schedule.Schedule](t)(methods.Build(methods.Spec{Method: method, Collective: c.collective,
			Size: n.Replicas(), Ring: ring, Second: second, Pieces: c.pieces}))
		const bytes = 1 << 32
		model := cost.Model{Network: n}
		e := must[cost.Estimate](t)(model.Price(s, upTo(s.Size), bytes))
		b := must[cost.Bound](t)(model.Bound(c.collective, 0, upTo(s.Size)))
		if got := b.Reached(bytes, e.Time); got < c.want || got > 1 {
			t.Errorf("%v by %v on %s: %.4f of the bound, want %v to 1: %v, bound %v", c.collective, c.method, c.network,
				got, c.want, e.Time, b.Time(bytes))
		}
	}
}

// TestBoundByHand compares bounds with sums on paper: latency, bytes, messages and folds.
func TestBoundByHand(t *testing.T) {
	t.Parallel()
	const million = 1_000_000
	star := "fattree:4:1e9,1us" // 2 us from a rank to another
	for _, c := range []struct {
		network    string
		collective schedule.Collective
		overhead   time.Duration
		folds      float64
		bytes      int64
		want       time.Duration
	}{
		{star, schedule.Barrier, 0, 0, 0, 2 * us},
		{star, schedule.AllReduce, 0, 0, million, 1502 * us},              // 2 * 3/4 of 1 ms
		{star, schedule.AllReduce, 0, 1e9, million, 1502*us + 750*us},     // 3/4 of the elements are a rank's to fold
		{star, schedule.AllReduce, us, 0, million, 1502*us + 3*us},        // 6 messages have 12 ends at 4 ranks
		{star, schedule.Broadcast, us, 0, million, 1002*us + 2*us},        // 2 messages one after the other reach 4 ranks
		{star, schedule.Gather, 0, 0, million, 752 * us},                  // 3 shares over one link
		{star, schedule.AllToAll, 0, 0, million, 752 * us},                // 3 of 4 blocks leave
		{"torus:6:1e9,1us", schedule.AllGather, 0, 0, 6, 3 * us},          // half round the ring
		{"torus:6:1e9,1us", schedule.AllReduce, 0, 0, 6e9, 5e9 + us},      // 2 * 5/6 of 6 s by two links
		{"torus:6:1e9,1us", schedule.AllToAll, 0, 0, 6e9, 45e8 + us},      // 9 blocks of 1e9 bytes over 2 links
		{"torus:2:1e9,1us", schedule.Broadcast, 0, 0, million, 1001 * us}, // by the one link that messages take
		{"fattree:2x2:4e9,0s:1e9,0s", schedule.AllReduce, 0, 0, million, 1000 * us},
		{"fattree:2x3:4e9,0s:1e9,0s", schedule.AllReduce, 0, 0, 3 * million, 4000 * us}, // 2 * 2/3 of 3 ms: three parts
	} {
		m := cost.Model{Network: must[cost.Network](t)(cost.ParseNetwork(c.network)), Overhead: c.overhead,
			FoldBytesPerSecond: c.folds}
		b := must[cost.Bound](t)(m.Bound(c.collective, 0, upTo(m.Network.Replicas())))
		if got := b.Time(c.bytes); got < c.want-2*us || got > c.want+2*us {
			t.Errorf("%v of %d bytes on %s: %v, want %v", c.collective, c.bytes, c.network, got, c.want)
		}
	}
}

// TestBoundIsTheWorstCut compares bounds of small graphs with those of all cuts, and for an all-reduce of all
// partitions, where these are not more than the bound says it looks at.
func TestBoundIsTheWorstCut(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(33, 4))
	graphs := 50
	if *full {
		graphs = 2000
	}
	missed := 0
	for range graphs {
		replicas, switches := 2+random.IntN(5), random.IntN(3)
		nodes := replicas + switches
		speeds := make([][]float64, nodes)
		var text strings.Builder
		fmt.Fprintf(&text, "replicas %d\nswitches %d\n", replicas, switches)
		for a := range nodes {
			speeds[a] = make([]float64, nodes)
			for b := range nodes {
				if a != b && (b == (a+1)%nodes || random.IntN(3) == 0) {
					speeds[a][b] = float64(1+random.IntN(9)) * 1e9
					fmt.Fprintf(&text, "oneway %d %d %v 0s\n", a, b, speeds[a][b])
				}
			}
		}
		m := cost.Model{Network: must[cost.Graph](t)(cost.ParseGraph([]byte(text.String())))}
		root := random.IntN(replicas)
		for _, c := range schedule.Collectives() {
			const share = 1 << 30
			bytes := int64(share * replicas)
			have := must[cost.Bound](t)(m.Bound(c, root, upTo(replicas))).Time(bytes).Seconds()
			want := 0.0
			for set := 1; set < 1<<nodes-1; set++ {
				want = max(want, dumbCut(c, set, root, replicas, speeds)*share)
			}
			if c == schedule.AllReduce {
				want = max(want, dumbPartitions(make([]int, nodes), 0, replicas, 0, speeds)*float64(bytes))
			}
			switch {
			case have > want*(1+1e-6)+2e-9:
				t.Errorf("%v, root %d: bound %v, and the worst cut %v, on\n%s", c, root, have, want, text.String())
			case have < want*(1-1e-6)-2e-9 && (c == schedule.AllReduce || c == schedule.AllToAll):
				missed++
			case have < want*(1-1e-6)-2e-9:
				t.Errorf("%v, root %d: bound %v misses the worst cut, %v, on\n%s", c, root, have, want, text.String())
			}
		}
	}
	t.Logf("%d of %d all-reduces and all-to-alls have a worse cut than the bound", missed, 2*graphs)
	if missed > graphs/2 {
		t.Errorf("%d of %d all-reduces and all-to-alls miss the worst cut", missed, 2*graphs)
	}
}

// dumbCut is what crosses from a set of nodes, in shares, for each byte a second of the links out of it.
func dumbCut(c schedule.Collective, set, root, replicas int, speeds [][]float64) float64 {
	near, out := 0, 0.0
	for a := range speeds {
		if set>>a&1 == 0 {
			continue
		}
		if a < replicas {
			near++
		}
		for b, speed := range speeds[a] {
			if set>>b&1 == 0 {
				out += speed
			}
		}
	}
	far := replicas - near
	if near == 0 || far == 0 {
		return 0
	}
	hasRoot := set>>root&1 == 1
	shares := map[schedule.Collective]int{schedule.AllReduce: replicas, schedule.AllGather: near,
		schedule.ReduceScatter: far, schedule.AllToAll: near * far}
	if hasRoot {
		shares[schedule.Broadcast], shares[schedule.Scatter] = replicas, far
	} else {
		shares[schedule.Reduce], shares[schedule.Gather] = replicas, near
	}
	return float64(shares[c]) / out
}

// dumbPartitions is the worst of all partitions of the nodes into parts with replicas and, part 0, a rest without.
func dumbPartitions(part []int, node, replicas, parts int, speeds [][]float64) float64 {
	if node < len(part) {
		worst := 0.0
		for p := range parts + 2 {
			if p == 0 && node < replicas || p > parts && node >= replicas {
				continue
			}
			part[node] = p
			worst = max(worst, dumbPartitions(part, node+1, replicas, max(parts, p), speeds))
		}
		return worst
	}
	out, in := 0.0, 0.0
	for a := range part {
		for b, speed := range speeds[a] {
			if part[a] != part[b] && part[a] > 0 {
				out += speed
			}
			if part[a] != part[b] && part[b] > 0 {
				in += speed
			}
		}
	}
	if parts < 2 {
		return 0
	}
	return float64(2*(parts-1)) / min(out, in)
}

// TestBoundOfRoutes: a network of a program's own has the bound of the same one by name, where the routes show all
// nodes.
func TestBoundOfRoutes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"torus:4x3", "torus:5", "torus:2x2x2", "fattree:3x2x2", "clique:5", "open-ladder:8"} {
		n := must[cost.Network](t)(cost.ParseNetwork(name))
		for _, c := range schedule.Collectives() {
			members := upTo(n.Replicas())
			want := must[cost.Bound](t)(cost.Model{Network: n}.Bound(c, 1, members))
			have := must[cost.Bound](t)(cost.Model{Network: hidden{n}}.Bound(c, 1, members))
			for _, bytes := range []int64{0, 1 << 40} {
				a, b := have.Time(bytes), want.Time(bytes)
				if a > b || a < b && (c != schedule.AllToAll) {
					t.Errorf("%v of %d bytes on %s: %v by routes, and %v", c, bytes, name, a, b)
				}
			}
		}
	}
}

// TestBoundOfMany: large networks have bounds too, that of their shape.
func TestBoundOfMany(t *testing.T) {
	t.Parallel()
	// Seconds of an all-reduce of 1e12 bytes, of links of 1e9 bytes a second.
	for name, want := range map[string]float64{
		"torus:16x16x16:1e9,1us":        2000. / 6,
		"fattree:16x16x16:1e9,1us":      2000,
		"fattree:64x64:1e9,1us:5e8,1us": 4000. * 63 / 64, // 64 parts
		"torus:4096:1e9,1us":            1000,
	} {
		n := must[cost.Network](t)(cost.ParseNetwork(name))
		b := must[cost.Bound](t)(cost.Model{Network: n}.Bound(schedule.AllReduce, 0, upTo(n.Replicas())))
		if got := b.Time(1e12).Seconds(); math.Abs(got-want) > want/1000 {
			t.Errorf("%s: %v s, want %v", name, got, want)
		}
	}
}

// TestNoTrafficBeatsTheBound: in groups of 64, and with -full of 512, where cuts are those of the shape.
func TestNoTrafficBeatsTheBound(t *testing.T) {
	t.Parallel()
	names := []string{"torus:4x4x4", "fattree:4x4x4", "fattree:4x4x4:1e9,1us:2e9,1us:4e9,1us,3", "open-ladder:64"}
	if *full {
		names = append(names, "torus:8x8x8", "torus:512", "fattree:8x8x8", "clique:256+256", "open-ladder:512")
	}
	for _, name := range names {
		m := cost.Model{Network: must[cost.Network](t)(cost.ParseNetwork(name)), Overhead: us, FoldBytesPerSecond: 50e9}
		n := m.Network.Replicas()
		for _, c := range schedule.Collectives() {
			b := must[cost.Bound](t)(m.Bound(c, 0, upTo(n)))
			for _, method := range methods.All() {
				spec := methods.Spec{Method: method, Collective: c, Size: n, Ring: upTo(n), Second: upTo(n)}
				traffic, err := spec.Traffic()
				if errors.Is(err, errors.ErrUnsupported) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, bytes := range []int64{0, 1 << 30} {
					e := must[cost.Estimate](t)(m.PriceTraffic(traffic, upTo(n), bytes))
					if bound := b.Time(bytes); e.Time < bound {
						t.Errorf("%v of %d bytes by %v on %s: %v, bound %v", c, bytes, method, name, e.Time, bound)
					}
				}
			}
		}
	}
}

// TestBoundErrors has questions without a bound.
func TestBoundErrors(t *testing.T) {
	t.Parallel()
	ring := cost.Model{Network: must[cost.Network](t)(cost.ParseNetwork("torus:4"))}
	apart := cost.Model{Network: must[cost.Graph](t)(cost.ParseGraph([]byte(`replicas 3
		oneway 0 1 1 0s
		link 1 2 1 0s`)))}
	many := cost.Model{Network: hidden{must[cost.Network](t)(cost.ParseNetwork("torus:1000"))}}
	wrong := cost.Model{Network: odd{replicas: 2, links: 1, route: []int{3}}}
	for _, c := range []struct {
		model      cost.Model
		collective schedule.Collective
		root       int
		members    []int
		want       string
	}{
		{ring, schedule.Custom, 0, upTo(4), "cost: no bound of custom, want one of the collectives "},
		{ring, 99, 0, upTo(4), "cost: no bound of Collective(99), want "},
		{ring, schedule.Broadcast, 4, upTo(4), "cost: root 4 of broadcast over 4 ranks"},
		{ring, schedule.Broadcast, -1, upTo(4), "cost: root -1 of broadcast over 4 ranks"},
		{ring, schedule.AllReduce, 0, nil, "cost: a bound without members"},
		{ring, schedule.AllReduce, 0, []int{4}, "cost: rank 0 is replica 4, but there are 4 replicas"},
		{ring, schedule.AllReduce, 0, []int{1, 1}, "cost: replica 1 is a member twice"},
		{cost.Model{}, schedule.AllReduce, 0, []int{0}, "cost: no network"},
		{apart, schedule.AllReduce, 0, []int{2, 0}, "cost: no way leads from rank 0 to rank 1"},
		{apart, schedule.Reduce, 1, upTo(3), ""},
		{apart, schedule.Reduce, 0, upTo(3), "cost: no way leads from rank 1 to rank 0"},
		{many, schedule.AllReduce, 0, upTo(513), "cost: a bound of 513 members of a network of the program's own, want at " +
			"most 512"},
		{wrong, schedule.AllReduce, 0, upTo(2), "cost: from replica 0 to replica 1: the route takes link 3 of 1"},
		{cost.Model{Network: odd{replicas: 2, links: 1, route: []int{0}}}, schedule.AllReduce, 0, upTo(2),
			"cost: link 0: 0 bytes per second, want a finite number, at least 0.001"},
	} {
		b, err := c.model.Bound(c.collective, c.root, c.members)
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || c.want == "" {
			t.Errorf("%v, root %d, members %v: %+v, error %v, want %s", c.collective, c.root, c.members, b, err, c.want)
		}
	}
	b := must[cost.Bound](t)(apart.Bound(schedule.AllReduce, 0, []int{1}))
	if b.Time(1000) != 0 || b.Reached(8, 0) != 1 {
		t.Errorf("a group of one: %v, %v", b.Time(1000), b.Reached(8, 0))
	}
}

func BenchmarkBound(b *testing.B) {
	for _, name := range []string{"torus:16x16x16", "fattree:16x16x16", "clique:4096", "torus:4096", "open-ladder:1024",
		"torus:4x4x4", "open-ladder:64", "clique:64", "open-ladder:128"} {
		n := must[cost.Network](b)(cost.ParseNetwork(name))
		members := upTo(n.Replicas())
		for _, c := range []schedule.Collective{schedule.AllReduce, schedule.AllGather, schedule.AllToAll} {
			b.Run(fmt.Sprintf("network=%s/collective=%v", name, c), func(b *testing.B) {
				for b.Loop() {
					must[cost.Bound](b)(cost.Model{Network: n}.Bound(c, 0, members))
				}
			})
		}
	}
}
