package methods

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow: the tests make schedules by the hundred thousand and keep none, and at the usual setting
// collecting garbage takes a third of their time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	os.Exit(m.Run())
}
