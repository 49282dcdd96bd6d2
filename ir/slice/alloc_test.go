//go:build !race

package slice_test

import (
	"context"
	"math"
	"runtime"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// TestFirstRun: operations on rows take their memory when the session is made, and none in its first run, by two
// workers or without a plan, sorted or not. (The race detector allocates.)
func TestFirstRun(t *testing.T) {
	for _, planned := range []bool{false, true} {
		for _, v := range []string{"slice", "update", "add", "max"} {
			c := call{shape: []int{3000, 3}, dims: []int{0}, sizes: []int{1}, n: 2000, planned: planned}
			// What the operations allocate they allocate in every session. What the runtime and other tests' goroutines
			// allocate beside them, a thread's 5 KB for one, is not in all.
			least := uint64(math.MaxUint64)
			for trial := 0; trial < 5 && least >= rowMemory/2; trial++ {
				least = min(least, firstRun(t, c, v))
			}
			if least >= rowMemory/2 {
				t.Errorf("%s, planned %v: %d bytes allocated in the first run", v, planned, least)
			}
		}
	}
}

// rowMemory is what each of the operations takes at least when it is not taken with the session. A session allocates
// some 100 bytes in its first run: a context, and what waits for it.
const rowMemory = 8 << 10

// firstRun is how many bytes the process allocates in the first run of a session.
func firstRun(t *testing.T, c call, v string) uint64 {
	t.Helper()
	in := c.inputs(t, v, tensor.F16)
	plan := c.plan(t, v, tensor.F16)
	p := build(1, in, func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{c.op(in, v, plan, false)} })
	s, err := ir.NewSession(p.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	give, take := map[*ir.Stream]*tensor.Tensor{}, map[*ir.Stream]*tensor.Tensor{}
	for i, x := range in {
		give[p.in[i]] = x
	}
	take[p.out[0]] = newTensor(t, s.HostSpec(p.out[0]))
	var before, after runtime.MemStats
	err = s.Within(func() error {
		runtime.ReadMemStats(&before)
		err := s.RunTo(context.Background(), take, give)
		runtime.ReadMemStats(&after)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return after.TotalAlloc - before.TotalAlloc
}
