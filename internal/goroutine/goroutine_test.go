package goroutine

import (
	"sync"
	"testing"
)

// TestID: a goroutine has one number, and others have others.
func TestID(t *testing.T) {
	mine := ID()
	if mine == 0 || ID() != mine {
		t.Errorf("numbers %d and %d", mine, ID())
	}
	var all sync.WaitGroup
	ids := make([]uint64, 10)
	for i := range ids {
		all.Go(func() { ids[i] = ID() })
	}
	all.Wait()
	seen := map[uint64]bool{mine: true}
	for _, id := range ids {
		if id == 0 || seen[id] {
			t.Errorf("number %d, beside %d and %v", id, mine, ids)
		}
		seen[id] = true
	}
}
