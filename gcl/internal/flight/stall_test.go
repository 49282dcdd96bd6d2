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

// TestOpen: the recorders of this process are listed from their first connection to the end of the last.
func TestOpen(t *testing.T) {
	listed := func(s *Recorders) bool {
		for o := range Open() {
			if o == s {
				return true
			}
		}
		return false
	}
	s := New(func(transport.Call) string { return "" })
	if listed(s) {
		t.Error("listed without a connection")
	}
	a, b := s.Open(0, 0), s.Open(1, 0)
	if a.Close(); !listed(s) {
		t.Error("not listed with a connection")
	}
	a.Close()
	if b.Close(); listed(s) {
		t.Error("listed after the last connection")
	}
	if s.Open(0, 1); !listed(s) {
		t.Error("not listed when there is one again")
	}
}
