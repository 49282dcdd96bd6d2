package gcl_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Elements of derived types, and ints, go by every form as those that they are made of.
func TestDerivedElements(t *testing.T) {
	type celsius float32
	type id uint8
	t.Run("float32", testDerived[celsius, float32])
	t.Run("uint8", testDerived[id, uint8])
	t.Run("duration", testDerived[time.Duration, int64])
	if strconv.IntSize == 64 {
		t.Run("int", testDerived[int, int64])
		t.Run("uint", testDerived[uint, uint64])
	} else {
		t.Run("int", testDerived[int, int32])
		t.Run("uint", testDerived[uint, uint32])
	}
}

type number interface {
	tensor.Element
	~int | ~uint | ~int32 | ~int64 | ~uint8 | ~uint32 | ~uint64 | ~float32
}

// testDerived has replica 0 give T and the others B, so that the two must be one type to their calls.
func testDerived[T, B number](t *testing.T) {
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			return callsOf[T](ctx, c)
		}
		return callsOf[B](ctx, c)
	})
}

// callsOf makes a call of each form.
func callsOf[T number](ctx context.Context, c *gcl.Comm) error {
	r, n := T(c.Rank()), c.Size()
	sum, err := gcl.AllReduce(ctx, c, []T{r + 1, 2}, gcl.Add)
	err = errors.Join(err, check("all-reduce", sum, []T{6, 6}))

	mine := slices.Repeat([]T{r}, c.Rank())
	counts, failed := gcl.AllGather(ctx, c, []int{len(mine)})
	all, failedV := gcl.AllGatherV(ctx, c, mine, counts)
	err = errors.Join(err, failed, failedV, check("all-gather by counts", all, []T{1, 2, 2}))

	many, failed := gcl.AllReduceMany(ctx, c, [][]T{{r}, {1, r}}, gcl.Max)
	err = errors.Join(err, failed, check("many, first", many[0], []T{2}), check("many, second", many[1], []T{1, 2}))

	b := c.Batch(schedule.AllGather, 0, 0)
	gathered := make([]T, n)
	gcl.Append(b, gathered, []T{r})
	err = errors.Join(err, b.Run(ctx), check("batch", gathered, []T{0, 1, 2}))

	x, failed := tensor.FromSlice([]T{r})
	err = errors.Join(err, failed)
	y, failed := gcl.AllReduceTensors(ctx, c, []*tensor.Tensor{x}, gcl.Add)
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	total, err := tensor.Of[T](y[0])
	return errors.Join(err, check("tensors", total, []T{3}))
}

// Members whose elements are of different widths are told so.
func TestDerivedElementsDiffer(t *testing.T) {
	type celsius float64
	for rank, err := range failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			return gcl.AllReduceInPlace(ctx, c, []celsius{1}, gcl.Add)
		}
		return gcl.AllReduceInPlace(ctx, c, []float32{1}, gcl.Add)
	}) {
		if !errors.Is(err, gcl.ErrMismatch) {
			t.Errorf("replica %d: %v", rank, err)
		}
	}
}
