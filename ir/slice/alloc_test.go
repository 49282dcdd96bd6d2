//go:build !race

package slice_test

import (
	"context"
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
			err = s.Within(func() error {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := s.RunTo(context.Background(), take, give)
				runtime.ReadMemStats(&after)
				// The session allocates a little in its first run: a context, and what waits for it. Without what is
				// taken when it is made it is 8 KiB at least.
				if n := after.TotalAlloc - before.TotalAlloc; n >= 4096 {
					t.Errorf("%s, planned %v: %d bytes allocated in the first run", v, planned, n)
				} else {
					t.Log(v, planned, n)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
