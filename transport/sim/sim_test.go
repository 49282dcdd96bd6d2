package sim_test

import (
	"flag"
	"math"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods/cost"
	"gogcl.dev/transport"
	"gogcl.dev/transport/sim"
	"gogcl.dev/transport/transporttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// cable is the link of the networks here: 100 Gb/s.
var cable = cost.Link{BytesPerSecond: 12.5e9, Latency: time.Microsecond}

func must(t testing.TB) func(cost.Network, error) cost.Network {
	return func(n cost.Network, err error) cost.Network {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// star is n replicas on one switch.
func star(t testing.TB, n int) cost.Network {
	t.Helper()
	return must(t)(cost.FatTree(cost.Level{Children: n, Link: cable}))
}

func open(t testing.TB, c sim.Config) (*sim.Net, []transport.Endpoint) {
	t.Helper()
	net, eps, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return net, eps
}

var full = flag.Bool("full", false, "TestConformance under the race detector too, and TestLarge with 4,096 replicas")

func TestConformance(t *testing.T) {
	if underRace && !*full {
		t.Skip("takes a minute of processors")
	}
	sim.Hurry(t)
	transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint {
		_, eps := open(t, sim.Config{Model: cost.Model{Network: star(t, n)}})
		return eps
	}, transporttest.NamesDeadlocks, transporttest.KeepsCauses, transporttest.Brief)
}

// TestLink: a latency that nothing has room for is the greatest there is.
func TestLink(t *testing.T) {
	slow := must(t)(cost.Torus([]int{8}, cost.Link{BytesPerSecond: 1, Latency: math.MaxInt64 / 2}))
	_, eps := open(t, sim.Config{Model: cost.Model{Network: slow}})
	for _, e := range eps {
		defer e.Close()
	}
	if l := eps[0].(transport.Linked).Link(0, 1); l.Latency != math.MaxInt64 || l.BytesPerSecond != 1 {
		t.Errorf("%+v", l)
	}
}
