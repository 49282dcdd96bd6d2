package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport/sim"
)

// places is the ranks 0 to n-1.
func places(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// parse returns the method of a name.
func parse(t *testing.T, name string) methods.Method {
	t.Helper()
	m, err := methods.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// allReduceOf is the request for the schedule of an all-reduce.
func allReduceOf(m methods.Method, n int) methods.Spec {
	return methods.Spec{Collective: schedule.AllReduce, Method: m, Size: n, Ring: places(n), Second: places(n)}
}

func build(t *testing.T, spec methods.Spec) *schedule.Schedule {
	t.Helper()
	s, err := methods.Build(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// allReduce runs an all-reduce of float32 over a network, by a method, and checks what comes out. It returns the
// request for the schedule that was run.
func allReduce(c sim.Config, elements int, m methods.Method) (*sim.Net, methods.Spec, error) {
	net, eps, err := sim.New(c)
	if err != nil {
		return nil, methods.Spec{}, err
	}
	n := len(eps)
	spec := allReduceOf(m, n)
	trace := &gcl.Trace{MethodChosen: func(c gcl.TraceCall, of gcl.TraceMethod) {
		if c.Replica == 0 && of.Ring != nil {
			spec.Ring, spec.Second = of.Ring, of.Second
		}
	}}
	err = gcl.Run(context.Background(), n, func(ctx context.Context, c *gcl.Comm) error {
		in, out := make([]float32, elements), make([]float32, elements)
		for i := range in {
			in[i] = float32(c.Replica() + i%7)
		}
		if err := gcl.AllReduceTo(ctx, c, out, in, gcl.Add); err != nil {
			return err
		}
		for i := range out {
			if want := float32(n*(n-1)/2 + n*(i%7)); out[i] != want {
				return fmt.Errorf("element %d is %v, want %v", i, out[i], want)
			}
		}
		return nil
	}, gcl.WithEndpoints(eps), gcl.WithOptions(gcl.Options{Method: m, Strict: true, Trace: trace}))
	return net, spec, err
}

// unlike are the methods whose time is not their price, by the name of the network: their ranks are not in step there.
var unlike = map[string][]string{
	"switch":   {"swing_2d"},
	"ring":     {"circulant", "double_binary_tree", "torus_3d", "hierarchical_8", "swing_2d"},
	"torus":    {"double_binary_tree", "swing"},
	"fat tree": {"circulant", "double_binary_tree", "swing", "swing_2d"},
}

// TestPrice: an all-reduce by the real library takes to the nanosecond what it costs, by all methods but those of
// unlike, and these take no more than 3 % more. Without data it takes as long.
func TestPrice(t *testing.T) {
	const n, elements = 16, 16 * 720
	for name, network := range map[string]cost.Network{
		"switch":   star(t, n),
		"ring":     must(t)(cost.Torus([]int{16}, cable)),
		"torus":    must(t)(cost.Torus([]int{4, 4}, cable)),
		"fat tree": must(t)(cost.ParseNetwork("fattree:4x4:12.5e9,1us")),
	} {
		for _, m := range methods.All() {
			if _, err := methods.Build(allReduceOf(m, n)); err != nil {
				continue // the method has none of so many ranks
			}
			t.Run(fmt.Sprintf("network=%s/method=%v", name, m), func(t *testing.T) {
				model := cost.Model{Network: network}
				net, spec, err := allReduce(sim.Config{Model: model}, elements, m)
				if err != nil {
					t.Fatal(err)
				}
				s := build(t, spec)
				estimate, err := model.Price(s, places(n), 4*elements)
				if err != nil {
					t.Fatal(err)
				}
				replayed, err := sim.Replay(context.Background(), model, s, places(n), 4*elements)
				chains := name == "ring" && m.String() == "hierarchical_8" // whose messages wait for each other
				if err != nil || replayed != net.Now() && !chains {
					t.Errorf("%v without data, %v, and %v with", replayed, err, net.Now())
				}
				compare(t, net.Now(), estimate.Time, !slices.Contains(unlike[name], m.String()))
			})
		}
	}
}

// TestPage: docs/design/sim.md says by which methods the time without data is the price, and where it is not, between
// which parts of the price it is. With -v the rows of its table are printed.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/design/sim.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fattree:16", "torus:16", "torus:4x4", "fattree:4x4",
		"fattree:4x4:12.5e9,1us:12.5e9,1us,2", "clique:8+8", "joined-ladder:16", "open-ladder:16", "torus:8x8",
		"open-ladder:64"} {
		network := must(t)(cost.ParseNetwork(name))
		n := network.Replicas()
		if n > 16 && (testing.Short() || underRace) {
			continue
		}
		equal, all, others := 0, 0, []string(nil)
		for _, m := range methods.All() {
			spec := allReduceOf(m, n)
			if _, err := methods.Build(spec); err != nil {
				continue
			}
			s, same, low, high := build(t, spec), true, math.Inf(1), 0.0
			for _, length := range []int64{45 << 10, 1 << 30} {
				for _, overhead := range []time.Duration{0, 500} {
					model := cost.Model{Network: network, Overhead: overhead}
					price, err := model.Price(s, places(n), length)
					if err != nil {
						t.Fatal(err)
					}
					got, err := sim.Replay(context.Background(), model, s, places(n), length)
					if err != nil {
						t.Fatal(err)
					}
					ratio := float64(got) / float64(price.Time)
					same, low, high = same && got == price.Time, min(low, ratio), max(high, ratio)
				}
			}
			if all++; same {
				equal++
				continue
			}
			others = append(others, fmt.Sprintf("%v %.2f to %.2f", m, low, high))
		}
		row := fmt.Sprintf("| `%s` | %d of %d | %s |", name, equal, all, strings.Join(others, ", "))
		t.Log(row)
		if !bytes.Contains(page, []byte(row+"\n")) {
			t.Errorf("docs/design/sim.md has no row %s", row)
		}
	}
}

// compare checks a time by a price.
func compare(t *testing.T, got, price time.Duration, exact bool) {
	t.Helper()
	if exact && got != price || float64(got) > 1.03*float64(price) {
		t.Errorf("takes %v, and costs %v: %.3f of it", got, price, float64(got)/float64(price))
	}
}

// TestQueued: messages that wait in line take no less time than the network has for its bytes, and as long as fair ones
// where none meets another.
func TestQueued(t *testing.T) {
	const n, elements = 8, 1 << 12
	for _, m := range []methods.Method{methods.ClockwiseRing, methods.RecursiveDoubling, methods.Direct} {
		fair, _, err := allReduce(sim.Config{Model: cost.Model{Network: star(t, n)}}, elements, m)
		if err != nil {
			t.Fatal(err)
		}
		queued, _, err := allReduce(sim.Config{Model: cost.Model{Network: star(t, n)}, Queued: true}, elements, m)
		if err != nil {
			t.Fatal(err)
		}
		if alone := m != methods.Direct; alone && queued.Now() != fair.Now() || queued.Now() <= 0 {
			t.Errorf("%v: %v queued, %v fair", m, queued.Now(), fair.Now())
		}
	}
}

// TestDirect: 256 replicas that all send to all, over links that many messages share.
func TestDirect(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("65,280 messages at once")
	}
	const n, bytes = 256, 1 << 30
	for _, name := range []string{"torus:16x16", "fattree:16x16"} {
		network := must(t)(cost.ParseNetwork(name))
		s, model := build(t, allReduceOf(methods.Direct, n)), cost.Model{Network: network}
		estimate, err := model.Price(s, places(n), bytes)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sim.Replay(context.Background(), model, s, places(n), bytes)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, got, estimate.Time, true)
	}
}

// TestReplayTraffic: a traffic takes as long as its schedule, and as long as it costs where that cannot be built.
func TestReplayTraffic(t *testing.T) {
	for _, c := range []struct {
		method  methods.Method
		network string
		n       int
		bytes   int64
	}{
		{methods.ClockwiseRing, "torus:4x4", 16, 1 << 20},
		{methods.RecursiveDoubling, "fattree:4x4", 16, 1 << 20},
		{parse(t, "halving_doubling"), "fattree:16x16x16", 4096, 1 << 30},
	} {
		model := cost.Model{Network: must(t)(cost.ParseNetwork(c.network)), Overhead: time.Microsecond,
			FoldBytesPerSecond: 20e9}
		spec := allReduceOf(c.method, c.n)
		traffic, err := spec.Traffic()
		if err != nil {
			t.Fatal(err)
		}
		estimate, err := model.PriceTraffic(traffic, places(c.n), c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sim.ReplayTraffic(context.Background(), model, traffic, places(c.n), c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, got, estimate.Time, true)
		if c.n > 100 {
			continue
		}
		long, err := sim.Replay(context.Background(), model, build(t, spec), places(c.n), c.bytes)
		if long != got || err != nil {
			t.Errorf("%v: %v by steps, %v, and %v by traffic", c.method, long, err, got)
		}
	}
}

// TestLarge: 1,024 replicas of the real library, with -full 4,096, each of which checks its result.
func TestLarge(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("1,024 replicas")
	}
	const elements = 256
	n, rounds, network := 1024, 10, "fattree:32x32"
	if *full {
		n, rounds, network = 4096, 12, "fattree:64x64"
	}
	model := cost.Model{Network: must(t)(cost.ParseNetwork(network))}
	net, spec, err := allReduce(sim.Config{Model: model}, elements, methods.RecursiveDoubling)
	if err != nil {
		t.Fatal(err)
	}
	traffic, err := spec.Traffic()
	if err != nil {
		t.Fatal(err)
	}
	estimate, err := model.PriceTraffic(traffic, places(n), 4*elements)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, net.Now(), estimate.Time, true)
	if want := n * rounds; net.Messages() != want {
		t.Errorf("%d messages, want %d", net.Messages(), want)
	}
}
