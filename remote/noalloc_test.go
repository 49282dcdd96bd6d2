//go:build !race

package remote

import (
	"errors"
	"testing"
)

// TestNoAllocations is not for the race detector, with which system calls allocate.
func TestNoAllocations(t *testing.T) {
	eachStorage(t, func(t *testing.T, s Storage) {
		e := open(t, s, spec(3, chunkBytes))
		buf := make([]byte, 4*chunkBytes)
		i := 0
		if n := testing.AllocsPerRun(20, func() {
			if err := errors.Join(e.Store(i%2, buf), e.Load(i%3, buf)); err != nil {
				t.Fatal(err)
			}
			i++
		}); n != 0 {
			t.Errorf("%v allocations of a Store and a Load", n)
		}
		closeIt(t, e)
	})
}
