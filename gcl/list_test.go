package gcl_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/gcl"
)

// TestManySpareOfAnother has a spare Batch that was put together of some buffers serve another call on the very same
// ones, after as many other calls as a connection keeps spares for.
func TestManySpareOfAnother(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		same := [][]int32{make([]int32, 3), make([]int32, 5)}
		call := func(op gcl.Operator, want int32) error {
			for _, s := range same {
				for i := range s {
					s[i] = int32(c.Rank() + 1)
				}
			}
			if err := gcl.AllReduceManyInPlace(ctx, c, same, op); err != nil {
				return err
			}
			for _, s := range same {
				if s[0] != want || s[len(s)-1] != want {
					return fmt.Errorf("%v gives %v, want %d", op, s, want)
				}
			}
			return nil
		}
		if err := call(gcl.Add, 3); err != nil {
			return err
		}
		for range 31 { // with which there are 32
			other := [][]int32{make([]int32, 3), make([]int32, 5)}
			if err := gcl.AllReduceManyInPlace(ctx, c, other, gcl.Add); err != nil {
				return err
			}
		}
		return call(gcl.Max, 2)
	})
}

// TestManySpareInUse has several goroutines make calls of one kind at a time.
func TestManySpareInUse(t *testing.T) {
	replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		var all errgroup.Group
		for id := range 8 {
			all.Go(func() error {
				data := [][]int32{slices.Repeat([]int32{int32(id)}, 100), slices.Repeat([]int32{int32(-id)}, 200)}
				for range 200 {
					got, err := gcl.AllReduceMany(ctx, c, data, gcl.Add)
					if err != nil {
						return err
					}
					if !slices.Equal(got[0], data[0]) || !slices.Equal(got[1], data[1]) {
						return fmt.Errorf("goroutine %d has the data of %d and %d", id, got[0][0], got[1][0])
					}
				}
				return nil
			})
		}
		return all.Wait()
	})
}

// TestManyInTurn has calls that differ in one thing take turns: each keeps its own spare Batch, and its results.
func TestManyInTurn(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		slice := func(n int, value int32) []int32 { return slices.Repeat([]int32{value}, n) }
		out := [][]int32{{}, slice(3, 0), slice(2, 0)}
		a, b := [][]int32{{}, slice(3, 1), slice(2, 2)}, [][]int32{{}, slice(3, 10), slice(2, 20)}
		for range 3 {
			for _, x := range []struct {
				in   [][]int32
				want int32
			}{{a, 2}, {b, 20}, {out, 40}} {
				if err := gcl.AllReduceManyTo(ctx, c, out, x.in, gcl.Add); err != nil {
					return err
				}
				if out[1][2] != x.want || out[2][0] != 2*x.want {
					return fmt.Errorf("%v, want %d", out, x.want)
				}
			}
		}
		return nil
	})
}
