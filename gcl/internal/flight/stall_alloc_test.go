//go:build !race

package flight

import (
	"testing"
	"time"

	"gogcl.dev/internal/watch"
)

// TestLookAllocatesNothing: while no call waits, looking for those that do costs no memory.
func TestLookAllocatesNothing(t *testing.T) {
	s := busy(3, 51)
	for _, f := range s.all {
		f.End(false, 0)
	}
	s.Watch(time.Hour, func([]Stall, []watch.Process) {})
	if n := testing.AllocsPerRun(100, s.lookForStalls); n != 0 {
		t.Errorf("%v allocations a look", n)
	}
}
