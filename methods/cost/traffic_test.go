package cost_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// described are methods whose traffic is described.
var described = []methods.Method{methods.ClockwiseRing, methods.AnticlockwiseRing, methods.BidirectionalRingPair,
	methods.MeetInMiddleRing, methods.QuadDirectionalRing, methods.RecursiveDoubling}

// models are networks of n replicas, with processors that take time and without.
func models(t testing.TB, n int) []cost.Model {
	side := 1
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			side = d
		}
	}
	domains := []int{n}
	if n > 3 {
		domains = []int{n / 2, n - n/2}
	}
	two := cost.Link{BytesPerSecond: 5e8, Latency: 3 * us, Cables: 2}
	torus := must[cost.Network](t)(cost.Torus([]int{side, n / side}, fast))
	tree := must[cost.Network](t)(cost.FatTree(cost.Level{Children: side, Link: fast},
		cost.Level{Children: n / side, Link: two}))
	return []cost.Model{
		{Network: torus, Overhead: us, FoldBytesPerSecond: 3e9},
		{Network: tree},
		{Network: cost.Machine(machine(t, topology.Clique, 2, domains...))},
		{Network: cost.Machine(machine(t, topology.OpenLadder, 1, n)), FoldBytesPerSecond: 1e9},
	}
}

// TestTrafficIsPricedAsTheSchedule: to the nanosecond, at every size up to 256 for all-reduces by a ring and by
// recursive_doubling. The others, and those too with -short, at some. TestTrafficIsTheSchedule of package methods
// compares the messages.
func TestTrafficIsPricedAsTheSchedule(t *testing.T) {
	t.Parallel()
	for _, method := range described {
		t.Run(fmt.Sprintf("method=%v", method), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= 256; n++ {
				some := n <= 20 || n%45 == 0 || n == 64 || n == 127
				all := !testing.Short() && (method == methods.ClockwiseRing || method == methods.RecursiveDoubling)
				model := models(t, n)[n%4]
				for _, c := range []schedule.Collective{schedule.AllReduce, schedule.ReduceScatter,
					schedule.Broadcast} {
					if !some && (!all || c != schedule.AllReduce) {
						continue
					}
					s := methods.Spec{Method: method, Collective: c, Size: n, Ring: backwards(n), Second: upTo(n),
						Pieces: 3}
					comparePrices(t, s, model, 96000*int64(n)) // a multiple of the chunks
				}
			}
		})
	}
}

// TestTrafficOfGalleryIsPriced: the same of the gallery, at every size up to 20 and some up to 256. A traffic has one
// message for what a schedule sends in several from one rank to another, as some methods do. The prices of these are
// compared on networks in which the number of messages costs nothing.
func TestTrafficOfGalleryIsPriced(t *testing.T) {
	t.Parallel()
	for _, l := range methods.Gallery() {
		if _, ok := l.Generator.(methods.TrafficGenerator); !ok {
			continue
		}
		method, err := methods.Parse(l.Name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run("method="+l.Name, func(t *testing.T) {
			t.Parallel()
			compared := 0
			for n := 2; n <= 256; n++ {
				if n > 20 && n%45 != 0 && n != 24 && n != 32 && n != 64 && n != 127 && n != 256 {
					continue
				}
				model := models(t, n)[n%4]
				if strings.Contains("circulant hierarchical_8 swing swing_2d", l.Name) {
					model = models(t, n)[n%2*2]
					model.Overhead = 0
				}
				for _, c := range schedule.Collectives() {
					s := methods.Spec{Method: method, Collective: c, Size: n}
					if _, err := s.Traffic(); errors.Is(err, errors.ErrUnsupported) {
						continue
					}
					comparePrices(t, s, model, 96000*int64(n)*int64(n))
					compared++
				}
			}
			if compared < 4 {
				t.Errorf("%d prices compared", compared)
			}
		})
	}
}

// TestTrafficIsPricedToTheLastDigit has rounds of so many hours that a nanosecond is the last digit of their seconds.
// Processors fold and pass on messages in other orders in a schedule and in its traffic.
func TestTrafficIsPricedToTheLastDigit(t *testing.T) {
	t.Parallel()
	for n := 2; n <= 24; n++ {
		for i, m := range models(t, n)[:2] {
			m.Overhead, m.FoldBytesPerSecond = 1234, 1234.5678+float64(i)
			for _, method := range described {
				s := methods.Spec{Method: method, Collective: schedule.AllReduce, Size: n, Ring: backwards(n),
					Second: upTo(n), Pieces: 3}
				comparePrices(t, s, m, 123457*12*int64(n))
			}
		}
	}
}

// backwards is n-1, ..., 1, 0.
func backwards(n int) []int {
	out := upTo(n)
	for i := range out {
		out[i] = n - 1 - i
	}
	return out
}

func comparePrices(t *testing.T, s methods.Spec, m cost.Model, bytes int64) {
	t.Helper()
	steps := must[*schedule.Schedule](t)(methods.Build(s))
	traffic := must[*schedule.Traffic](t)(s.Traffic())
	if bytes%int64(traffic.Chunks) != 0 {
		t.Fatalf("%d chunks do not divide %d", traffic.Chunks, bytes)
	}
	want := must[cost.Estimate](t)(m.Price(steps, upTo(s.Size), bytes))
	got := must[cost.Estimate](t)(m.PriceTraffic(traffic, upTo(s.Size), bytes))
	if got != want {
		t.Errorf("%v of %v over %d on a %T: %+v, want %+v", s.Collective, s.Method, s.Size, m.Network, got, want)
	}
}

// TestAxes: prices on a torus by symmetry are those on the same network without it, and those of traffic that has none,
// as it is of some ranks, across the dimensions or of other members, are not taken for more symmetric than it is.
func TestAxes(t *testing.T) {
	t.Parallel()
	link := []cost.Link{{BytesPerSecond: 1e9, Latency: us}, {BytesPerSecond: 3e8, Latency: 5 * us, Cables: 2},
		{BytesPerSecond: 7e8, Latency: 2 * us, Cables: 3}}
	for _, dims := range [][]int{{8}, {4, 2}, {2, 4}, {6, 3}, {3, 4, 4}, {4, 4, 2}, {1, 8}, {3, 1, 4}} {
		torus := must[cost.Network](t)(cost.Torus(dims, link[:len(dims)]...))
		n := torus.Replicas()
		shuffled := upTo(n)
		shuffled[0], shuffled[1] = 1, 0
		for stride := 1; stride <= n; stride++ {
			for radix := 2; radix <= n; radix++ {
				for _, f := range []schedule.Flow{{}, {Alternate: true}, {First: 1}, {Count: 2}, {Every: 2},
					{Order: 1}} {
					f.Stride, f.Radix, f.Move, f.Chunks = stride, radix, 1, 2
					back := schedule.Flow{Stride: stride, Radix: radix, Move: -1, Chunks: 1}
					traffic := &schedule.Traffic{Size: n, Chunks: 3, Orders: [][]int{shuffled},
						Rounds: []schedule.Alike{
							{Times: 2, Flows: []schedule.Flow{f, {Move: n - 1, Chunks: 1}}},
							{Times: 1, Flows: []schedule.Flow{f, back, f}}}}
					for _, members := range [][]int{upTo(n), shuffled} {
						want, wantErr := cost.Model{Network: plain{torus}}.PriceTraffic(traffic, members, 30000)
						got, err := cost.Model{Network: torus}.PriceTraffic(traffic, members, 30000)
						if got != want || (err == nil) != (wantErr == nil) {
							t.Errorf("%v %+v: %+v, %v, want %+v, %v", dims, f, got, err, want, wantErr)
						}
					}
				}
			}
		}
	}
}

// plain hides that a network is a torus.
type plain struct{ cost.Network }

// Chunks of a fraction of a byte: 10 bytes over 4 ranks are pieces of 2.5, where the schedule has 2, 3, 2 and 3.
func TestTrafficInFractions(t *testing.T) {
	t.Parallel()
	ring := must[cost.Network](t)(cost.Torus([]int{4}, cost.Link{BytesPerSecond: 1}))
	s := methods.Spec{Method: methods.ClockwiseRing, Collective: schedule.ReduceScatter, Size: 4, Ring: upTo(4)}
	traffic := must[*schedule.Traffic](t)(s.Traffic())
	got := must[cost.Estimate](t)(cost.Model{Network: ring}.PriceTraffic(traffic, upTo(4), 10))
	if want := (cost.Estimate{Rounds: 3, SentBytes: 8, Time: 7500 * time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	huge := must[cost.Estimate](t)(cost.Model{Network: ring}.PriceTraffic(
		&schedule.Traffic{Size: 4, Chunks: 1, Rounds: []schedule.Alike{{Times: 3,
			Flows: []schedule.Flow{{Move: 1, Chunks: 1}}}}}, upTo(4), math.MaxInt64))
	if huge.SentBytes != math.MaxInt64 || huge.Time != math.MaxInt64 {
		t.Errorf("%+v, want the greatest numbers", huge)
	}
}

// joined is a network in which nothing is between two replicas of a pair.
type joined struct{ cost.Network }

func (j joined) Route(links []int, from, to int) ([]int, error) {
	if from/2 == to/2 {
		return links, nil
	}
	return j.Network.Route(links, from, to)
}

// TestNothingInTheWay: a message that takes no link takes no time, also for PriceWithin, and its processors' time.
func TestNothingInTheWay(t *testing.T) {
	t.Parallel()
	network := joined{must[cost.Network](t)(cost.Torus([]int{8}, fast))}
	traffic := &schedule.Traffic{Size: 8, Chunks: 1, Rounds: []schedule.Alike{{Times: 3,
		Flows: []schedule.Flow{{Radix: 2, Move: 1, Alternate: true, Chunks: 1}}}}}
	for overhead, want := range map[time.Duration]time.Duration{0: 0, us: 6 * us} { // each sends and receives
		m := cost.Model{Network: network, Overhead: overhead}
		e, within, err := m.PriceWithin(traffic, upTo(8), 1<<20, want)
		if err != nil || !within || e.Time != want {
			t.Errorf("%v, %v, %v, want %v", e.Time, within, err, want)
		}
		if want == 0 {
			continue
		}
		if _, within, err = m.PriceWithin(traffic, upTo(8), 1<<20, want-1); within || err != nil {
			t.Errorf("%v, %v, want a price above the limit", within, err)
		}
	}
}

func TestTrafficErrors(t *testing.T) {
	t.Parallel()
	model := cost.Model{Network: must[cost.Network](t)(cost.Torus([]int{4}, fast))}
	traffic := func(move, radix int) *schedule.Traffic {
		return &schedule.Traffic{Size: 3, Chunks: 1, Rounds: []schedule.Alike{{Times: 1,
			Flows: []schedule.Flow{{Move: move, Radix: radix, Chunks: 1}}}}}
	}
	tests := []struct {
		model   cost.Model
		traffic *schedule.Traffic
		members []int
		bytes   int64
		want    string
	}{
		{model, nil, nil, 0, "cost: schedule: nil traffic"},
		{model, &schedule.Traffic{}, nil, 0, "cost: schedule: traffic of 0 ranks"},
		{model, traffic(0, 0), upTo(3), 0, "cost: schedule: rounds 0 of a traffic, flow 0: place 0 sends to place 0 of 3"},
		{model, traffic(1, 2), upTo(3), 0, "place 2 sends to place 3 of 3"},
		{model, traffic(1, 0), upTo(2), 0, "2 members for a schedule of 3 ranks"},
		{model, traffic(1, 0), []int{0, 1, 4}, 0, "rank 2 is replica 4, but there are 4 replicas"},
		{model, traffic(1, 0), upTo(3), -1, "-1 bytes"},
		{cost.Model{}, traffic(1, 0), upTo(3), 0, "no network"},
		{cost.Model{Network: odd{3, 1, fast, []int{1}}}, traffic(1, 0), upTo(3), 0, "the route takes link 1 of 1"},
	}
	if _, err := model.PriceTraffic(traffic(1, 0), upTo(3), 1); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		e, err := tt.model.PriceTraffic(tt.traffic, tt.members, tt.bytes)
		if err == nil || !strings.Contains(err.Error(), tt.want) || e != (cost.Estimate{}) {
			t.Errorf("%+v, error %v, want one with %q", e, err, tt.want)
		}
	}
}

// BenchmarkPriceTraffic prices all-reduces over 65,536 ranks, the description of their messages included.
func BenchmarkPriceTraffic(b *testing.B) {
	const n = 1 << 16
	members := upTo(n)
	flat, deep := []int{256, 256}, []int{16, 16, 16, 16}
	fat := func(cables int) cost.Link { return cost.Link{BytesPerSecond: 1e9, Latency: us, Cables: cables} }
	networks := []struct {
		name    string
		network cost.Network
		dims    []int // of a torus
	}{
		{"clique", cost.Machine(machine(b, topology.Clique, 1, n)), nil},
		{"tree", must[cost.Network](b)(cost.FatTree(cost.Level{Children: 32, Link: fast},
			cost.Level{Children: 32, Link: fat(16)}, cost.Level{Children: 64, Link: fat(256)})), nil},
		{"torus=256x256", must[cost.Network](b)(cost.Torus(flat, fast)), flat},
		{"torus=256x256,unsymmetric", plain{must[cost.Network](b)(cost.Torus(flat, fast))}, nil},
		{"torus=16x16x16x16", must[cost.Network](b)(cost.Torus(deep, fast)), deep},
	}
	run := func(method, name string, network cost.Network, n int, describe func() (*schedule.Traffic, error)) {
		b.Run(fmt.Sprintf("method=%s/network=%s/n=%d", method, name, n), func(b *testing.B) {
			for b.Loop() {
				t := must[*schedule.Traffic](b)(describe())
				must[cost.Estimate](b)(cost.Model{Network: network}.PriceTraffic(t, members[:n], 1<<30))
			}
		})
	}
	spec := func(method methods.Method, n int) methods.Spec {
		return methods.Spec{Method: method, Size: n, Ring: members[:n], Second: members[:n]}
	}
	circulant := must[methods.Method](b)(methods.Parse("circulant"))
	torus := must[methods.Method](b)(methods.Parse("torus_2d"))
	for _, network := range networks {
		for _, method := range []methods.Method{methods.ClockwiseRing, methods.QuadDirectionalRing,
			methods.RecursiveDoubling, circulant, torus} {
			run(method.String(), network.name, network.network, n, spec(method, n).Traffic)
		}
		if network.dims != nil {
			run("swing", network.name, network.network, n, func() (*schedule.Traffic, error) {
				return methods.SwingTraffic(network.dims, true)
			})
		}
	}
	// Each rank needs a search of its own where messages go far.
	for method, n := range map[methods.Method]int{methods.ClockwiseRing: n, methods.RecursiveDoubling: 1 << 11} {
		ladder := cost.Machine(machine(b, topology.OpenLadder, 1, n))
		run(method.String(), "ladder", ladder, n, spec(method, n).Traffic)
	}
}
