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
