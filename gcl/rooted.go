package gcl

import (
	"context"
	"fmt"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// This file holds the collectives of which one rank, the root, has the result or the data: an index in the group, so
// that with several groups there is one root in each. The buffers that only the root's count of may be missing on other
// ranks: of length 0, or nil; or as long as the root's, and then they are neither read nor written. As a Broadcast
// does, they return on a rank when its part is done: see Broadcast for what that means where members disagree.

// lengthAtRoot is the length of a result that only the root has.
func lengthAtRoot(c *Comm, root, n int) int {
	if c.Rank() != root {
		return 0
	}
	return n
}

// Reduce returns the reduction of data over the group at the rank root, and nil elsewhere. data has the same length on
// all ranks, and is not changed. With Options.Reproducible it has the bits of AllReduce. Local gives the root its own
// data.
func Reduce[T tensor.Element](ctx context.Context, c *Comm, data []T, op Operator, root int) ([]T, error) {
	return resultAtRoot(ctx, c, schedule.Reduce, len(data), data, op, root)
}

// resultAtRoot is result, and nil on ranks that have none.
func resultAtRoot[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, n int, src []T,
	op Operator, root int) ([]T, error) {
	dst, err := result(ctx, c, collective, lengthAtRoot(c, root, n), src, op, root)
	if c.Rank() != root {
		return nil, err
	}
	return dst, err
}

// ReduceTo is Reduce with the result in the root's dst, which has the length of data and is data itself or apart from
// it. Elsewhere dst is empty or of that length, and not written. What the root's dst holds after an error is
// unspecified. It allocates nothing once a call like it has been made.
func ReduceTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, op Operator, root int) error {
	return do1(ctx, c, schedule.Reduce, dst, data, op, root)
}

// ReduceInPlace is Reduce with the result in the root's data. The others' data is not changed. What the root's holds
// after an error is unspecified.
func ReduceInPlace[T tensor.Element](ctx context.Context, c *Comm, data []T, op Operator, root int) error {
	return do1(ctx, c, schedule.Reduce, data, data, op, root)
}

// Gather returns the data of all ranks one after the other, in rank order, at the rank root, and nil elsewhere. data
// has the same length on all ranks, and is not changed.
func Gather[T tensor.Element](ctx context.Context, c *Comm, data []T, root int) ([]T, error) {
	return resultAtRoot(ctx, c, schedule.Gather, gatheredLength[T](len(data), max(c.Size(), 1)), data, 0, root)
}

// GatherTo is Gather with the result in the root's dst, of G times the length of data, apart from it or with data
// exactly in its own place in dst. Elsewhere dst is empty or of that length, and not written. What the root's dst holds
// after an error is unspecified. It allocates nothing once a call like it has been made.
func GatherTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, root int) error {
	return do1(ctx, c, schedule.Gather, dst, data, 0, root)
}

// Scatter returns n elements of the root's data, which has G times as many: part i to rank i. n is the same on all
// ranks. Elsewhere data is empty or as long as the root's, and not read. A negative n, or one that is not that of the
// root's data, is an error.
func Scatter[T tensor.Element](ctx context.Context, c *Comm, data []T, n, root int) ([]T, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var invalid error
	switch dtype := tensor.DTypeOf[T](); {
	case n < 0:
		invalid = fmt.Errorf("%d elements for each rank", n)
	case !fits(n, c.Size(), dtype.Size()):
		invalid = checkSize(n, c.Size(), dtype)
	case c.Rank() == root && len(data) != n*c.Size():
		invalid = fmt.Errorf("the input has %d elements, want %d for parts of %d over %d ranks",
			len(data), n*c.Size(), n, c.Size())
	default:
		return result(ctx, c, schedule.Scatter, n, data, 0, root)
	}
	return nil, c.do(ctx, &call{ask: newAsk(schedule.Scatter, 0, root), dtype: tensor.DTypeOf[T](), invalid: invalid})
}

// ScatterTo is Scatter with the result in dst, whose length is that of a part: apart from data, or at the root exactly
// its own place in data. After an error dst is unspecified. It allocates nothing once a call like it has
// been made.
func ScatterTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, root int) error {
	return do1(ctx, c, schedule.Scatter, dst, data, 0, root)
}
