package inproc_test

import (
	"testing"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/transporttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func open(t testing.TB, n int) []transport.Endpoint {
	eps, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	return eps
}

func TestConformance(t *testing.T) {
	transporttest.Run(t, open, transporttest.NoAlloc, transporttest.NamesDeadlocks, transporttest.KeepsCauses)
}

// The register never takes a slow replica for a deadlock, though everybody who parks looks for one at once.
func TestConformanceEager(t *testing.T) {
	if testing.Short() {
		t.Skip("as long as TestConformance")
	}
	transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint {
		inside, err := inproc.NewEager(n)
		if err != nil {
			t.Fatal(err)
		}
		eps := make([]transport.Endpoint, n)
		for i, e := range inside {
			eps[i] = e
		}
		return eps
	}, transporttest.NamesDeadlocks, transporttest.KeepsCauses)
}
