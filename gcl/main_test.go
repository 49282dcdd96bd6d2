package gcl_test

import (
	"os"
	"runtime/debug"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
)

// asReplica report whether this process was no test but a replica of one, which has ended.
var asReplica []func() bool

// TestMain fails when the tests leave a goroutine behind. Most tests make replicas by the thousand, which live for
// less than a millisecond: a third of the time went into collecting 4 MiB at a time.
func TestMain(m *testing.M) {
	gcl.WithoutTables() // what was measured may change; tests of it say so
	for _, was := range asReplica {
		if was() {
			return
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30)
	}
	leaktest.Main(m)
}
