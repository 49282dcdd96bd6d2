package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
	"gogcl.dev/transport/inproc"
)

// transfers counts those of one call by all replicas, by messages, each in one segment.
func transfers(t *testing.T, n int, m methods.Method, call func(context.Context, *gcl.Comm) error) int64 {
	t.Helper()
	count, endpoints := counted(t, n)
	machine, err := topology.New(topology.Config{Replicas: []int{n}, IOTiles: topology.MaxIOTiles})
	if err != nil {
		t.Fatal(err)
	}
	replicas(t, n, call, gcl.WithEndpoints(endpoints), gcl.WithOptions(gcl.Options{Method: m}),
		gcl.WithTopology(machine))
	return count.Load()
}

// TestManyShareMessages: however many small tensors there are, they take the messages of one. Large ones have
// messages of their own.
func TestManyShareMessages(t *testing.T) {
	const n = 4
	of := func(tensors, size int) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			data := make([][]float32, tensors)
			for i := range data {
				data[i] = make([]float32, size)
			}
			_, err1 := gcl.ReduceScatterMany(ctx, c, data, gcl.Add)
			_, err2 := gcl.AllGatherMany(ctx, c, data)
			return errors.Join(err1, err2,
				gcl.AllReduceManyInPlace(ctx, c, data, gcl.Add), batchInPlace(ctx, c, schedule.AllToAll, data, 0, 0),
				batchInPlace(ctx, c, schedule.Broadcast, data, 0, 1))
		}
	}
	for _, m := range thinned.Methods(n) {
		one := transfers(t, n, m, of(1, 8))
		for _, tensors := range []int{0, 2, 64} {
			if got := transfers(t, n, m, of(tensors, 8)); got != one {
				t.Errorf("%v: %d tensors take %d transfers, one takes %d", m, tensors, got, one)
			}
		}
		large := transfers(t, n, m, of(1, 3<<17)) // which pipelines cut into more pieces
		if got := transfers(t, n, m, of(3, 1<<17)); got != 3*large {
			t.Errorf("%v: 3 large tensors take %d transfers, one of their length takes %d", m, got, large)
		}
	}
}

// TestManyMessagesAreBounded has more large tensors than may have messages of their own: 256 have, the others share.
func TestManyMessagesAreBounded(t *testing.T) {
	const n, bound = 2, 256
	of := func(tensors int) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			data := make([][]float32, tensors)
			for i := range data {
				data[i] = make([]float32, 3000)
			}
			return gcl.AllReduceManyInPlace(ctx, c, data, gcl.Add)
		}
	}
	one := transfers(t, n, methods.Direct, of(1))
	for tensors, want := range map[int]int64{255: 255, 256: 256, 257: bound + 1, 300: bound + 1} {
		if got := transfers(t, n, methods.Direct, of(tensors)); got != want*one {
			t.Errorf("%d tensors take %d transfers, want %d x %d", tensors, got, want, one)
		}
	}
}

// TestManyLargeTensors has more large tensors than may have messages of their own.
func TestManyLargeTensors(t *testing.T) {
	const n, tensors, size = 2, 300, 2100
	for _, o := range []gcl.Options{
		{Method: methods.ClockwiseRing}, {Method: methods.Direct, Implementation: gcl.Syncless}, {Method: methods.ClockwiseRing, Implementation: gcl.Syncful}, {},
	} {
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			c = withOptions(c, o)
			var data [][]int32
			for i := range tensors {
				data = append(data, make([]int32, size))
				for k := range data[i] {
					data[i][k] = int32(c.Rank() + i*k)
				}
			}
			if err := gcl.AllReduceManyInPlace(ctx, c, data, gcl.Add); err != nil {
				return err
			}
			for i := range data {
				for k, v := range data[i] {
					if v != int32(1+2*i*k) {
						return fmt.Errorf("%+v: element %d of tensor %d is %d, want %d", o, k, i, v, 1+2*i*k)
					}
				}
			}
			return nil
		})
	}
}

// A transport without peer memory has a barrier before each round with Syncful.
func TestManyWithBarriers(t *testing.T) {
	const n = 3
	x := newManyCase(gcl.Add, n, []int{5, 0, 30000, 1, 97})
	_, endpoints := counted(t, n) // which hides the peer memory
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		for _, m := range testMethods {
			c := withOptions(c, gcl.Options{Method: m, Implementation: gcl.Syncful})
			if err := errors.Join(x.tryReductions(ctx, c), x.tryMoves(ctx, c)); err != nil {
				return fmt.Errorf("method=%v: %w", m, err)
			}
		}
		return nil
	}, gcl.WithEndpoints(endpoints))
}

// An error of the transport in the middle of a call leaves a connection that refuses, and not one that gives out what
// it had kept.
func TestManyAfterAnAbort(t *testing.T) {
	endpoints, err := inproc.New(2)
	if err != nil {
		t.Fatal(err)
	}
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		data := [][]float32{make([]float32, 10), make([]float32, 20000)}
		if err := gcl.AllReduceManyInPlace(ctx, c, data, gcl.Add); err != nil {
			return err
		}
		if c.Rank() == 0 {
			c.Abort(errBoom)
		}
		if err := gcl.AllReduceManyInPlace(ctx, c, data, gcl.Add); !errors.Is(err, gcl.ErrAborted) ||
			!errors.Is(err, errBoom) {
			return fmt.Errorf("%w, want the abort", err)
		}
		return gcl.AllReduceManyInPlace(ctx, c, data, gcl.Local)
	}, gcl.WithEndpoints(endpoints))
	for r, err := range errs {
		if !errors.Is(err, gcl.ErrAborted) || contains(err, "want the abort") {
			t.Errorf("replica %d: %v", r, err)
		}
	}
}
