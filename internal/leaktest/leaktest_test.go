package leaktest

import (
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

func before() map[string]bool {
	known := map[string]bool{}
	for _, g := range goroutines() {
		known[id(g)] = true
	}
	return known
}

func TestFindsWhatIsLeft(t *testing.T) {
	known := before()
	stop, started := make(chan bool), make(chan bool)
	go func() {
		close(started)
		<-stop
	}()
	<-started
	left := wait(known, time.Millisecond)
	if len(left) != 1 || !strings.Contains(left[0], "TestFindsWhatIsLeft.func1") {
		t.Errorf("found %d goroutines, want the one started here:\n%s", len(left), report(left))
	}
	if left := wait(nil, time.Millisecond); len(left) != 1 {
		t.Errorf("without a list of known ones: found %d goroutines, want 1:\n%s", len(left), report(left))
	}
	close(stop)
	if left := wait(known, patience); len(left) != 0 {
		t.Errorf("after it has ended: %s", report(left))
	}
}

func TestWaitsForWhatEnds(t *testing.T) {
	known := before()
	for range 100 {
		c := make(chan bool)
		go func() { c <- true }()
		<-c
	}
	if left := wait(known, patience); len(left) != 0 {
		t.Error(report(left))
	}
}

// recorder stands in for the test that Check is called in.
type recorder struct {
	testing.TB
	failed  bool
	cleanup func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Error(...any)     { r.failed = true }
func (r *recorder) Cleanup(f func()) { r.cleanup = f }

func TestCheck(t *testing.T) {
	stop := make(chan bool)
	go func() { <-stop }()
	r := &recorder{TB: t}
	Check(r)
	r.cleanup()
	if r.failed {
		t.Error("blamed for a goroutine that was there before")
	}
	close(stop)
}
