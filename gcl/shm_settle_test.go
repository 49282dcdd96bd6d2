package gcl_test

import (
	"runtime"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
	"gogcl.dev/transport/tcp"
)

// TestSharedSettle: replicas that have agreed on all calls close without an error, the one after the other. Before the
// last call, which has a root, went a broadcast on boards, whose root goes into what members compare from then on.
func TestSharedSettle(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shared memory needs Linux")
	}
	leaktest.Check(t)
	comms := apartOn(t, tcp.Shm, 3)
	errs := make(chan error, len(comms))
	for _, c := range comms {
		go func() {
			big, err := gcl.Alloc[float32](c, 1<<16)
			if err == nil {
				err = gcl.BroadcastInPlace(t.Context(), c, make([]float32, 1), 0)
			}
			if err == nil {
				o := withOptions(c, gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful})
				err = gcl.BroadcastInPlace(t.Context(), o, big, 0)
			}
			errs <- err
		}()
	}
	for range comms {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for i, c := range comms { // each has heard the question of those before
		if err := c.Close(); err != nil {
			t.Errorf("replica %d: %v", i, err)
		}
	}
}
