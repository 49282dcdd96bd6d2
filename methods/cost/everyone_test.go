package cost_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// networksOf are networks of n replicas, of each kind: links of one cable and of several, even and uneven.
func networksOf(t testing.TB, n int) map[string]cost.Network {
	side := 1
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			side = d
		}
	}
	slow := cost.Link{BytesPerSecond: 5e8, Latency: 3 * us, Cables: 3}
	second := cost.Link{BytesPerSecond: 7e8, Latency: 2 * us}
	out := map[string]cost.Network{
		"torus":      must[cost.Network](t)(cost.Torus([]int{side, n / side}, fast, second)),
		"torus of 3": must[cost.Network](t)(cost.Torus([]int{n / side, 1, side}, fast, second, slow)),
		"tree": must[cost.Network](t)(cost.FatTree(cost.Level{Children: side, Link: fast},
			cost.Level{Children: n / side, Link: second})),
		"tree of 3": must[cost.Network](t)(cost.FatTree(cost.Level{Children: 1, Link: second},
			cost.Level{Children: n / side, Link: fast}, cost.Level{Children: side, Link: slow})),
		"clique":      cost.Machine(machine(t, topology.Clique, 2, n)),
		"open ladder": cost.Machine(machine(t, topology.OpenLadder, 1, n)),
	}
	if n > 3 {
		out["cliques"] = cost.Machine(machine(t, topology.Clique, 2, n/2, n-n/2))
	}
	named := must[cost.Network](t)(cost.ParseNetwork(fmt.Sprintf("fattree:%dx%d", side, n/side)))
	out["named tree"] = named
	return out
}

// TestEveryonePricedAsTheSchedule: all methods and collectives, on all networks, by all members and by some, cost as
// traffic what their schedules cost.
func TestEveryonePricedAsTheSchedule(t *testing.T) {
	t.Parallel()
	sizes := []int{2, 3, 4, 6, 8, 12, 15, 16, 27, 64}
	if testing.Short() {
		sizes = []int{3, 6, 8, 15, 64}
	}
	for _, m := range methods.All() {
		if m.Own() && !m.InGallery() {
			continue
		}
		t.Run(fmt.Sprintf("method=%v", m), func(t *testing.T) {
			t.Parallel()
			for i, n := range sizes {
				for name, network := range networksOf(t, n) {
					some := slices.Contains([]string{"torus", "tree of 3", "open ladder"}, name)
					if n == 64 && testing.Short() && (m.Rings() > 0 || !some) {
						continue
					}
					model := cost.Model{Network: network}
					if i%2 == 0 {
						model.Overhead, model.FoldBytesPerSecond = us, 3e9
					}
					for _, c := range schedule.Collectives() {
						members := upTo(n)
						if i%3 == 1 && n > 3 { // some of them, in another order
							members = backwards(n)[:n-1]
						}
						compareAsTraffic(t, m, c, members, model, name)
					}
				}
			}
		})
	}
}

func compareAsTraffic(t *testing.T, m methods.Method, c schedule.Collective, members []int, model cost.Model,
	network string) {
	t.Helper()
	n := len(members)
	for root := range min(2, n) {
		s := methods.Spec{Method: m, Collective: c, Size: n, Ring: backwards(n), Second: upTo(n), Pieces: 3}
		if root > 0 && !c.Contract().Rooted() {
			continue
		}
		s.Root = root * (n - 1)
		for _, s.RankOrder = range []bool{false, true} {
			traffic, err := s.Traffic()
			if errors.Is(err, errors.ErrUnsupported) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if swings := m.String() == "swing" || m.String() == "swing_2d"; swings {
				model.Overhead = 0 // whose messages its traffic puts together
				if network != "torus" && network != "tree" && network != "clique" && network != "cliques" {
					continue // of several cables
				}
			}
			bytes := 96 * int64(traffic.Chunks)
			want := must[cost.Estimate](t)(model.Price(must[*schedule.Schedule](t)(methods.Build(s)), members, bytes))
			got := must[cost.Estimate](t)(model.PriceTraffic(traffic, members, bytes))
			if got != want {
				t.Errorf("%v of %v over %d of %s, root %d, in order %v: %+v, want %+v", c, m, n, network, s.Root,
					s.RankOrder, got, want)
			}
			for _, limit := range []time.Duration{0, want.Time - 1, want.Time, math.MaxInt64} {
				e, within, err := model.PriceWithin(traffic, members, bytes, limit)
				if err != nil || within != (want.Time <= limit) || within && e != want ||
					!within && e.Time > want.Time {
					t.Errorf("%v of %v over %d of %s, within %v: %+v, %v, %v, want %+v", c, m, n, network, limit, e,
						within, err, want)
				}
			}
		}
	}
}
