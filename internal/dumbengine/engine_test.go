package dumbengine_test

import (
	"testing"

	"gogcl.dev/internal/dumbengine"
	"gogcl.dev/transport"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/transporttest"
)

func open(t testing.TB, n int) []transport.Endpoint {
	t.Helper()
	ends, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	ends, _ = dumbengine.New(ends)
	return ends
}

// TestConformance shows that the suite of transport.Native passes where nothing is hidden.
func TestConformance(t *testing.T) {
	transporttest.RunNative(t, open, transporttest.NoAlloc, transporttest.NamesDeadlocks, transporttest.KeepsCauses)
}

// TestConformanceFaulty has package faulty between the suite and the engine.
func TestConformanceFaulty(t *testing.T) {
	if testing.Short() {
		t.Skip("TestConformance has run")
	}
	transporttest.RunNative(t, func(t testing.TB, n int) []transport.Endpoint {
		t.Helper()
		ends, err := faulty.WrapNative(open(t, n), 1)
		if err != nil {
			t.Fatal(err)
		}
		return ends
	}, transporttest.KeepsCauses, transporttest.Brief)
}
