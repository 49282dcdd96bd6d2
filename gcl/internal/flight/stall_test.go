package flight

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"gogcl.dev/transport"
)

// TestWatchKeepsNothing: recorders of a communicator that nobody has closed, and nobody has any more, are collected,
// although calls that wait are looked for.
func TestWatchKeepsNothing(t *testing.T) {
	open := func() weak.Pointer[Recorders] {
		s := New(func(transport.Call) string { return "" })
		s.Watch(time.Hour, func(Stall) {})
		s.Open(0, 7)
		return weak.Make(s)
	}
	kept := open()
	for range 3 {
		runtime.GC()
	}
	if kept.Value() != nil {
		t.Error("the recorders are kept")
	}
}
