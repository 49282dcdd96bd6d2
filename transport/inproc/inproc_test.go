package inproc_test

import (
	"flag"
	"testing"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/transporttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func open(t testing.TB, n int) []transport.Endpoint { return plainly(t)(inproc.New(n)) }

// plainly fails the test on an error.
func plainly(t testing.TB) func([]transport.Endpoint, error) []transport.Endpoint {
	return func(eps []transport.Endpoint, err error) []transport.Endpoint {
		if err != nil {
			t.Fatal(err)
		}
		return eps
	}
}

func TestConformance(t *testing.T) {
	transporttest.Run(t, open, transporttest.NoAlloc, transporttest.NamesDeadlocks, transporttest.KeepsCauses)
}

var full = flag.Bool("full", false, "repeat as often in every way of meeting as in TestConformance")

// again are the options of runs beside TestConformance, where the network is set up in another way.
func again(options ...transporttest.Option) []transporttest.Option {
	options = append(options, transporttest.NamesDeadlocks, transporttest.KeepsCauses)
	if !*full {
		options = append(options, transporttest.Brief)
	}
	return options
}

// The register never takes a slow replica for a deadlock, though everybody who parks looks for one at once.
func TestConformanceEager(t *testing.T) {
	if testing.Short() {
		t.Skip("TestConformance is enough")
	}
	transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint {
		return plainly(t)(inproc.NewEager(n))
	}, again()...)
}
