package sim_test

import (
	"flag"
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

var full = flag.Bool("full", false, "TestConformance under the race detector too")

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
