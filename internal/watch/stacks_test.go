package watch_test

import (
	"strings"
	"sync"
	"testing"

	"gogcl.dev/internal/goroutine"
	"gogcl.dev/internal/watch"
)

// TestStacks: each replica has its own goroutine. A process of one replica without one has main.
func TestStacks(t *testing.T) {
	numbers, over := make(chan uint64), make(chan struct{})
	bodies := map[int]uint64{}
	var all sync.WaitGroup
	for replica := range 3 {
		all.Go(func() {
			numbers <- goroutine.ID()
			<-over
		})
		bodies[replica] = <-numbers
	}
	bodies[2] = 0
	for got := watch.Stacks(bodies); len(got) != 2 || !strings.Contains(got[0], "TestStacks.func") || got[1] == ""; {
		got = watch.Stacks(bodies) // until they wait
	}
	close(over)
	all.Wait()
	main := watch.Stacks(map[int]uint64{4: 0}) // of the test
	if len(main) != 1 || !strings.Contains(main[4], "main.main") {
		t.Error(main)
	}
}
