package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// roundingTensors are the tensors of all ranks, of mixed floating point types, on which the order of a sum shows.
func roundingTensors(n, seed int) (of []kind, in [][]*tensor.Tensor) {
	floats := slices.DeleteFunc(kinds(), func(k kind) bool { return k.random == nil })
	sizes := []int{61, 1, 0, 1500, n - 1, 7, 300, n + 1, 2}
	if !underRace && n <= 3 {
		sizes = append(sizes, 40000, 20000, 9001)
	}
	for i := range sizes {
		of = append(of, floats[(i+seed)%len(floats)])
	}
	in = make([][]*tensor.Tensor, n)
	for r := range in {
		random := rand.New(rand.NewPCG(uint64(seed), uint64(r)))
		for i, size := range sizes {
			in[r] = append(in[r], of[i].random(random, size))
		}
	}
	return of, in
}

// manyBitsOptions are those with which the bits of a call on several tensors are those of a call on each.
func manyBitsOptions() []gcl.Options {
	var out []gcl.Options
	for _, o := range bothWays() {
		if o.Method != 0 {
			out = append(out, o)
		}
		o.Reproducible = true
		out = append(out, o)
	}
	return out
}

// TestManyHasTheBitsOfSingleCalls compares with a call for each tensor, on data whose sums depend on their order, for
// every method by name and for Reproducible.
func TestManyHasTheBitsOfSingleCalls(t *testing.T) {
	for _, n := range roundingRanks {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			of, in := roundingTensors(n, n)
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				for _, o := range manyBitsOptions() {
					c := withOptions(c, o)
					for _, op := range floatOperators {
						if err := compareWithSingle(ctx, c, of, in[c.Rank()], op); err != nil {
							return fmt.Errorf("%+v op=%v: %w", o, op, err)
						}
					}
				}
				return nil
			})
		})
	}
}

func compareWithSingle(ctx context.Context, c *gcl.Comm, of []kind, in []*tensor.Tensor, op gcl.Operator) error {
	var all, shards []*tensor.Tensor
	for t := range in {
		x, err := of[t].single(ctx, c, in[t], op, false)
		y, err2 := of[t].single(ctx, c, in[t], op, true)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		all, shards = append(all, x), append(shards, y)
	}
	reduced, err := gcl.AllReduceTensors(ctx, c, in, op)
	scattered, err2 := gcl.ReduceScatterTensors(ctx, c, in, op)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	return errors.Join(sameTensors("all-reduce", reduced, all), sameTensors("reduce-scatter", scattered, shards))
}

// TestManyInOtherPieces has a transport fold in other pieces, the last first: the bits are the same.
func TestManyInOtherPieces(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		of, in := roundingTensors(n, n+1)
		for _, piece := range []int{64, 192, 4096} {
			folds := tapped(t, n, func(_ transport.Call, batch []transport.Transfer) { foldIn(batch, piece) })
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				for _, o := range manyBitsOptions() {
					c := withOptions(c, o)
					for _, op := range []gcl.Operator{gcl.Add, gcl.Mean} {
						if err := compareWithSingle(ctx, c, of, in[c.Rank()], op); err != nil {
							return fmt.Errorf("in pieces of %d, %+v op=%v: %w", piece, o, op, err)
						}
					}
				}
				return nil
			}, gcl.WithEndpoints(folds))
		}
	}
}

// TestManyHasTheSameBitsEveryRun runs Auto too, on one, two and eight processors.
func TestManyHasTheSameBitsEveryRun(t *testing.T) {
	const n = 5
	_, in := roundingTensors(n, 3)
	var want [][]*tensor.Tensor // by option
	for run, processors := range []int{2, 1, 2, 8} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			got := make([][][]*tensor.Tensor, n) // by rank and option
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				for _, o := range bothWays() {
					out, err := gcl.AllReduceTensors(ctx, withOptions(c, o), in[c.Rank()], gcl.Add)
					if err != nil {
						return err
					}
					got[c.Rank()] = append(got[c.Rank()], out)
				}
				return nil
			})
			if run == 0 {
				want = got[0]
			}
			for r := range got {
				for i, o := range bothWays() {
					if err := sameTensors(fmt.Sprintf("run %d on %d processors, rank %d, %+v", run, processors, r, o),
						got[r][i], want[i]); err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
}
