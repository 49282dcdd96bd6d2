package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/tensor"
)

// The example of SEMANTICS.md: [x,y,z,w] with x, y, z on IPU 0 and w on IPU 1.
func TestMappedExample(t *testing.T) {
	everyMethod(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		m := chunks.Mapping{3, 1}
		r := float32(c.Rank())
		in := []float32{1 + r, 10 * (1 + r), 100 * (1 + r), 1000 * (1 + r)}
		for _, x := range []struct {
			op         gcl.Operator
			x, y, z, w float32
		}{
			{gcl.Add, 10, 100, 1000, 10000},
			{gcl.Max, 4, 40, 400, 4000},
			{gcl.Mean, 2.5, 25, 250, 2500},
			{gcl.SquareAdd, 30, 3000, 300000, 30000000},
		} {
			out, err := gcl.ReduceScatterMapped(ctx, c, in, m, x.op)
			want := [][]float32{{x.x, x.w}, {x.y, 0}, {x.z, 0}, {0, 0}}
			to := []float32{-1, -1} // the zeros are written
			if err := errors.Join(err, gcl.ReduceScatterMappedTo(ctx, c, to, in, m, x.op),
				check(x.op.String(), out, want[c.Rank()]), check(x.op.String()+" to", to, want[c.Rank()])); err != nil {
				return err
			}
			back, err := gcl.AllGatherMapped(ctx, c, out, m)
			all := make([]float32, 4)
			if err := errors.Join(err, gcl.AllGatherMappedTo(ctx, c, all, out, m),
				check("gathered", back, []float32{x.x, x.y, x.z, x.w}), check("gathered to", all, back)); err != nil {
				return err
			}
		}
		return nil
	})
}

// randomMapping cuts n elements over up to eight IPUs, some of which have none.
func randomMapping(r *rand.Rand, n int) chunks.Mapping {
	m := make(chunks.Mapping, 1+r.IntN(8))
	for n > 0 {
		some := 1 + r.IntN(n)
		m[r.IntN(len(m))] += some
		n -= some
	}
	return m
}

// mappedCase is a reduce-scatter and the all-gather that undoes it, by package oracle.
type mappedCase[T tensor.Element] struct {
	op      gcl.Operator
	mapping chunks.Mapping
	in      [][]T // by rank
	shards  [][]T // by rank
	back    []T
}

func newMappedCase[T tensor.Element](op gcl.Operator, n, size int, m chunks.Mapping) mappedCase[T] {
	in := inputs[T](op, n, size)
	shards := oracle.ReduceScatterMapped(named(op), in, m)
	return mappedCase[T]{op, m, in, shards, oracle.AllGatherMapped(shards, m)}
}

func (x mappedCase[T]) try(ctx context.Context, c *gcl.Comm) error {
	in := slices.Clone(x.in[c.Rank()])
	out, err := gcl.ReduceScatterMapped(ctx, c, in, x.mapping, x.op)
	if err := errors.Join(err, check("reduce-scatter", out, x.shards[c.Rank()]),
		check("the input", in, x.in[c.Rank()])); err != nil {
		return fmt.Errorf("mapping=%v op=%v: %w", x.mapping, x.op, err)
	}
	gathered, err := gcl.AllGatherMapped(ctx, c, out, x.mapping)
	if err := errors.Join(err, check("all-gather", gathered, x.back)); err != nil {
		return fmt.Errorf("mapping=%v op=%v: %w", x.mapping, x.op, err)
	}
	return nil
}

// TestMappedRoundTrip tries random mappings, sizes and numbers of replicas by all methods, both ways.
func TestMappedRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 15))
	for n := 1; n <= 8; n++ {
		if underRace && n > 3 {
			break
		}
		var tries []func(context.Context, *gcl.Comm) error
		for _, size := range []int{0, 1, 2, 7, 64, 1291, 30011} {
			for range 2 {
				tries = append(tries,
					newMappedCase[int32](gcl.Add, n, size, randomMapping(random, size)).try,
					newMappedCase[tensor.BFloat16](gcl.Max, n, size/2, randomMapping(random, size/2)).try,
					newMappedCase[uint8](gcl.Local, n, size, randomMapping(random, size)).try)
			}
		}
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, o := range manyOptions(n) {
				for i, try := range tries {
					o.Reproducible = i%4 == 3
					if err := try(ctx, withOptions(c, o)); err != nil {
						return fmt.Errorf("%+v %w", o, err)
					}
				}
			}
			return nil
		})
	}
}
