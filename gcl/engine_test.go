package gcl_test

import (
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/dumbengine"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// engines connects n replicas by engines.
func engines(t testing.TB, n int) ([]transport.Endpoint, *dumbengine.Room) {
	t.Helper()
	ends, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	return dumbengine.New(ends)
}

// onEngines is the option of Run for n replicas on engines.
func onEngines(t testing.TB, n int) gcl.CommOption {
	ends, _ := engines(t, n)
	return gcl.WithEndpoints(ends)
}
