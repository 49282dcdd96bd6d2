package gcl_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
)

// TestNobodysBuffersAreKept: when a call has returned, and when a Batch is dropped, a connection holds on to no buffer
// of it, by whatever path it went.
func TestNobodysBuffersAreKept(t *testing.T) {
	machine := must(topology.New(topology.Config{Replicas: []int{2, 2}}))
	for _, o := range []gcl.Options{
		{}, {Implementation: gcl.Syncless}, {Method: methods.ClockwiseRing, Implementation: gcl.Syncful},
		{Method: methods.RecursiveDoubling, Implementation: gcl.Syncless, Reproducible: true}, {StageFragments: true},
		{Implementation: gcl.Hybrid},
	} {
		for _, n := range []int{16, 40_000} {
			t.Run(fmt.Sprintf("method=%v/implementation=%v/reproducible=%v/staged=%v/n=%d",
				o.Method, o.Implementation, o.Reproducible, o.StageFragments, n), func(t *testing.T) {
				replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error { return keepNothing(ctx, c, n) },
					gcl.WithOptions(o), gcl.WithTopology(machine))
			})
		}
	}
}

// keepNothing makes calls on buffers of n elements or more that nobody else has, and waits after each until they are
// collected.
func keepNothing(ctx context.Context, c *gcl.Comm, n int) error {
	var made, gone atomic.Int64
	buffer := func(n int) []float32 {
		b := make([]float32, n, max(n, 4)) // less than 16 bytes share a block with others, which may live on
		made.Add(1)
		runtime.AddCleanup(unsafe.SliceData(b), func(gone *atomic.Int64) { gone.Add(1) }, &gone)
		return b
	}
	collected := func(what string) error {
		for range 100 {
			if made.Load() == gone.Load() {
				return nil
			}
			runtime.GC()
			runtime.Gosched() // cleanups run on a goroutine of their own
		}
		return fmt.Errorf("%s: %d buffers are still there", what, made.Load()-gone.Load())
	}
	for _, collective := range schedule.Collectives() {
		var op gcl.Operator
		if collective.Contract().Combines {
			op = gcl.Mean
		}
		buffers := func() (dst, src []float32) {
			larger := collective.Contract().Elements(n, c.Size())
			return buffer(collective.Contract().Output.Elements(larger, c.Size())), buffer(n)
		}
		shaped := func() (dst, src *tensor.Tensor) {
			d, s := buffers()
			in, out := shapesOf(collective, collective.Contract().Elements(n, c.Size()), c.Size())
			return must(tensor.FromSlice(d, out...)), must(tensor.FromSlice(s, in...))
		}
		dst, src := shaped()
		if err := c.Do(ctx, collective, dst, src, op, 0); err != nil {
			return err
		}
		if err := collected(fmt.Sprintf("Do of %v", collective)); err != nil {
			return err
		}
		b := c.Batch(collective, op, 0)
		for range 3 {
			dst, src := buffers()
			gcl.Append(b, dst, src)
		}
		if err := b.Run(ctx); err != nil {
			return err
		}
		if err := collected(fmt.Sprintf("a Batch of %v", collective)); err != nil {
			return err
		}
	}
	a, b := [][]float32{buffer(n), buffer(3)}, [][]float32{buffer(n), buffer(3)}
	for range 2 {
		if err := gcl.AllReduceManyTo(ctx, c, a, b, gcl.SquareAdd); err != nil {
			return err
		}
	}
	return collected("AllReduceManyTo")
}
