package cheapest

import (
	"flag"
	"math"
	"slices"
	"testing"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// network is one by its name.
func network(t testing.TB, name string) cost.Model {
	t.Helper()
	n, err := cost.ParseNetwork(name)
	if err != nil {
		t.Fatal(err)
	}
	return cost.Model{Network: n, Overhead: 500 * time.Nanosecond}
}

func inTurn(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// tableOf is the table of all replicas of a network.
func tableOf(t testing.TB, m cost.Model, g Group) *Table {
	t.Helper()
	members := inTurn(m.Network.Replicas())
	if l, err := topology.New(topology.Config{Shape: topology.OpenLadder, Replicas: []int{len(members)}}); err == nil {
		if rings, err := l.Rings(topology.Auto, members); err == nil {
			return New(m).Of(g, members, rings.First, rings.Second)
		}
	}
	return New(m).Of(g, members, members, members)
}

var full = flag.Bool("full", false, "try every size of every collective at 64 ranks")

// TestChoiceIsBest: at 8 and 64 ranks no method, priced by its schedule, is more than 1.05 times as fast as the choice.
// Without -full a collective has one of the sizes at 64 ranks, another one than the collective and the network before.
func TestChoiceIsBest(t *testing.T) {
	t.Parallel()
	for k, name := range []string{"fattree:4x2", "torus:2x2x2", "open-ladder:8", "fattree:8x8", "torus:4x4x4",
		"open-ladder:64"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := tableOf(t, network(t, name), Group{})
			n := len(table.members)
			for _, c := range schedule.Collectives()[:schedule.Barrier] {
				for i, bytes := range []int64{1 << 10, 1 << 20, 1 << 30} {
					if n == 64 && !*full && (int(c)+k+i)%3 != 0 {
						continue
					}
					chosen := table.Choose(c, bytes)
					if chosen == nil {
						t.Fatalf("%v of %d bytes: no choice", c, bytes)
					}
					best, err := table.Exhaustive(c, bytes)
					if err != nil {
						t.Fatal(err)
					}
					if ratio := float64(chosen.Time) / float64(best.Time); ratio > 1.05 {
						t.Errorf("%v of %d bytes: %v: %v, and %v: %v", c, bytes, chosen.Method, chosen, best.Method,
							best)
					}
				}
			}
		})
	}
}

// TestFirstOfEqual: of methods of one price the first one in methods.All is chosen, in whatever order they are priced.
func TestFirstOfEqual(t *testing.T) {
	t.Parallel()
	table := tableOf(t, network(t, "fattree:4"), Group{})
	for _, c := range schedule.Collectives()[:schedule.Barrier] {
		for _, bytes := range []int64{1, 1 << 10, 1 << 30} {
			chosen := table.Choose(c, bytes)
			asked, _ := table.asked(c, bytes)
			for _, r := range asked {
				if r.spec.Method == chosen.Method && r.spec.Pieces == chosen.Pieces {
					break
				}
				if e, within := table.price(r, bytes, math.MaxInt64); within && e.Time <= chosen.Time {
					t.Errorf("%v of %d bytes: %v, and %v before it takes %v", c, bytes, chosen, r.spec.Method, e.Time)
				}
			}
		}
	}
}

// TestGroups: what a group may not take is not chosen.
func TestGroups(t *testing.T) {
	t.Parallel()
	m := network(t, "fattree:8")
	m.Overhead = 0
	ar := schedule.AllReduce
	if c := tableOf(t, m, Group{}).Choose(ar, 8); c.Method != methods.SendToAll {
		t.Errorf("%v, want broadcast", c)
	}
	if c := tableOf(t, m, Group{NoBroadcast: true}).Choose(ar, 8); c.Method == methods.SendToAll {
		t.Errorf("%v, want another than broadcast", c)
	}
	for class := range 40 {
		if c := tableOf(t, m, Group{Constants: true}).Choose(ar, 1<<class); c.Method.Own() {
			t.Errorf("%v, want a constant", c)
		}
		if c := tableOf(t, m, Group{RankOrder: true}).Choose(ar, 1<<class); c.Method.Own() {
			t.Errorf("in rank order: %v", c)
		}
	}
	part := New(m).Of(Group{}, []int{6, 1, 3}, []int{0, 1, 2}, []int{0, 1, 2})
	if c := part.Choose(ar, 1<<20); c == nil || c.Time <= 0 {
		t.Errorf("of some replicas: %v", c)
	}
	for _, none := range []*Choice{(*Table)(nil).Choose(ar, 8), part.Choose(schedule.Barrier, 8), part.Choose(ar, -1)} {
		if none != nil {
			t.Errorf("%v, want no choice", none)
		}
	}
}

// TestClasses: a size belongs to the power of two that is nearest, by ratio.
func TestClasses(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]int{
		0: 0, 1: 0, 2: 1, 3: 2, 5: 2, 6: 3, 11: 3, 12: 4, 1023: 10, 1024: 10, 1448: 10,
		1449: 11, 1 << 30: 30, math.MaxInt32: 31, 1 << 31: 31, 6074000999: 32, 6074001000: 33, 1 << 33: 33,
		1 << 62: 62, math.MaxInt64: 62,
	} {
		if got := ClassOf(bytes); got != want {
			t.Errorf("%d bytes: %d, want %d", bytes, got, want)
		}
	}
}

// TestAgain: a choice is made once, for all who ask, and takes no memory later.
func TestAgain(t *testing.T) {
	p := New(network(t, "torus:4x4"))
	members := inTurn(16)
	first := p.Of(Group{ID: 1}, members, members, members)
	if p.Of(Group{ID: 1}, slices.Clone(members), members, members) != first ||
		p.Of(Group{ID: 2}, members, members, members) == first {
		t.Error("tables are not those of their groups")
	}
	made := first.Choose(schedule.AllReduce, 1<<20)
	if again := first.Choose(schedule.AllReduce, 1<<20+5); again != made {
		t.Errorf("%p, want %p", again, made)
	}
	if n := testing.AllocsPerRun(100, func() { first.Choose(schedule.AllReduce, 1<<20) }); n != 0 {
		t.Errorf("%v allocations of a later choice", n)
	}
}

// What the benchmarks of package cheapest_test take from here.
var (
	NetworkForTests = network
	TableForTests   = tableOf
)
