package gcl_test

import (
	"os"
	"runtime/debug"
	"testing"

	"gogcl.dev/internal/leaktest"
)

// TestMain fails when the tests leave a goroutine behind. Most tests make replicas by the thousand, which live for
// less than a millisecond: a third of the time went into collecting 4 MiB at a time.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30)
	}
	leaktest.Main(m)
}
