package flight

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/internal/watch"
	"gogcl.dev/transport"
)

// TestWatchKeepsNothing: recorders of a communicator that nobody has closed, and nobody has any more, are collected,
// although calls that wait are looked for.
func TestWatchKeepsNothing(t *testing.T) {
	open := func() weak.Pointer[Recorders] {
		s := New(func(transport.Call) string { return "" })
		s.Watch(time.Hour, func([]Stall, []watch.Process) {})
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

// TestStalls: calls that wait for longer than the time of Watch are listed until they are over, each once.
func TestStalls(t *testing.T) {
	s := New(func(transport.Call) string { return "" })
	members := []int{0, 1, 2}
	group := wire.GroupID(members, 0)
	var all []*Recorder
	for m := range members {
		f := s.Open(m, 0)
		defer f.Close()
		all = append(all, f)
		if m < 2 {
			f.Begin(&Label{Members: members, Rank: m, Group: group}, &transport.Call{Group: group, Seq: 1}, ticks.Now())
		}
	}
	if got := s.Stalls(); got != nil {
		t.Errorf("without a time: %v", got)
	}
	s.Watch(time.Hour, func([]Stall, []watch.Process) {})
	if got := s.Stalls(); got != nil {
		t.Errorf("before the time: %v", got)
	}
	s.stalls.after = 1 // it has waited for longer
	time.Sleep(time.Millisecond)
	got := s.Stalls()
	if len(got) != 1 || !slices.Equal(got[0].Replicas, []int{0, 1}) || got[0].Waited <= 0 ||
		!strings.Contains(got[0].Why, "waiting for replica 2") {
		t.Errorf("%+v", got)
	}
	for _, f := range all[:2] {
		f.End(false, 0)
	}
	if got := s.Stalls(); got != nil {
		t.Errorf("after the call: %v", got)
	}
}

// TestFailure: why a connection fails is known until it is closed, and longer where no other is open.
func TestFailure(t *testing.T) {
	s, reason := New(func(transport.Call) string { return "" }), &watch.Failure{Error: "the reason"}
	well, ill := s.Open(0, 0), s.Open(1, 0)
	if f := s.Failure(); f != nil {
		t.Error(f)
	}
	now := reason
	ill.FailsBy(func() *watch.Failure { return now })
	if f := s.Failure(); f != reason {
		t.Errorf("%v, want the reason", f)
	}
	ill.Close()
	now = nil
	if f := s.Failure(); f != nil {
		t.Errorf("%v, of a closed connection beside one that works", f)
	}
	if well.Close(); s.Failure() != reason {
		t.Errorf("%v after all were closed, want the reason", s.Failure())
	}
}

// TestFailureInClose: what comes out while a connection is being closed is why it fails, and stays so.
func TestFailureInClose(t *testing.T) {
	s, reason := New(func(transport.Call) string { return "" }), &watch.Failure{Error: "the reason"}
	f := s.Open(0, 0)
	var now *watch.Failure
	f.FailsBy(func() *watch.Failure { return now })
	if f.BeginClose(); !f.IsClosed() || s.Failure() != nil {
		t.Errorf("closed %v, %v", f.IsClosed(), s.Failure())
	}
	now = reason
	if got := s.Failure(); got != reason {
		t.Errorf("%v while it is being closed, want the reason", got)
	}
	f.Close()
	now = nil
	for range 2 {
		if got := s.Failure(); got != reason {
			t.Errorf("%v after it was closed, want the reason", got)
		}
		f.Close()
	}
}
