// Package leaktest finds goroutines that a test has started and left behind.
//
// In a package that starts goroutines:
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
//
// and in a test that is to be blamed by name, as its first line:
//
//	leaktest.Check(t)
//
// Check compares with the goroutines that there were when it was called, so it is not for tests that run in parallel
// with others.
//
// go.uber.org/goleak v1.3.0 does the same, but gives up after 0.44 s, and no option has it wait longer. On a busy
// machine a goroutine that is about to end would fail a test. This package waits for 10 s.
package leaktest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long a goroutine may take to end. A passing test waits only as long as it must.
const patience = 10 * time.Second

// ours are parts of the stacks of goroutines that belong to the testing package and the runtime.
var ours = []string{
	"testing.(*M).",
	"testing.(*T).Run(",
	"testing.(*B).run",
	"testing.(*F).Fuzz",
	"testing.runFuzz",
	"testing.tRunner(",
	"internal/fuzz.",
	"os/signal.signal_recv",
	"os/signal.loop",
	"runtime/pprof.profileWriter(",
	"runtime/trace.",
	"runtime.ensureSigM",
	"runtime.ReadTrace",
}

// Main runs the tests of a package and exits, with an error when they leave goroutines behind.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if left := wait(nil, patience); len(left) > 0 {
			fmt.Fprintln(os.Stderr, report(left))
			code = 1
		}
	}
	os.Exit(code)
}

// Check fails the test when, after its cleanups that were registered later, a goroutine that it has started is still
// there.
func Check(t testing.TB) {
	t.Helper()
	before := map[string]bool{}
	for _, g := range goroutines() {
		before[id(g)] = true
	}
	t.Cleanup(func() {
		if left := wait(before, patience); len(left) > 0 {
			t.Error(report(left))
		}
	})
}

// wait returns the stacks of the goroutines that are not among those before and do not end in time.
func wait(before map[string]bool, limit time.Duration) []string {
	deadline := time.Now().Add(limit)
	pause := 50 * time.Microsecond
	for tries := 0; ; tries++ {
		left := leaked(before)
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		if tries < 100 {
			runtime.Gosched()
			continue
		}
		runtime.GC() // some goroutines end when nobody has what they are for any more
		time.Sleep(pause)
		pause = min(2*pause, 100*time.Millisecond)
	}
}

func leaked(before map[string]bool) []string {
	var left []string
	for _, g := range goroutines()[1:] { // the first is the one that asks
		if !before[id(g)] && !isOurs(g) {
			left = append(left, g)
		}
	}
	return left
}

func isOurs(g string) bool {
	for _, part := range ours {
		if strings.Contains(g, part) {
			return true
		}
	}
	return false
}

// goroutines returns the stack of each goroutine, its own first.
func goroutines() []string {
	buf := make([]byte, 64<<10)
	for {
		if n := runtime.Stack(buf, true); n < len(buf) {
			return strings.Split(strings.TrimSpace(string(buf[:n])), "\n\n")
		}
		buf = make([]byte, 2*len(buf))
	}
}

// id is the number in "goroutine 7 [running]:".
func id(g string) string {
	if f := strings.Fields(g); len(f) > 1 {
		return f[1]
	}
	return g
}

func report(left []string) string {
	return fmt.Sprintf("%d goroutines left behind:\n\n%s", len(left), strings.Join(left, "\n\n"))
}
