package gcl

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// do1 carries out a collective with one input and one output.
func do1[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, dst, src []T, op Operator,
	root int) error {
	return c.do(ctx, &call{
		ask: newAsk(collective, op, root), dtype: tensor.DTypeOf[T](),
		dst: tensor.Bytes(dst), src: tensor.Bytes(src), dstLen: len(dst), srcLen: len(src),
	})
}

// result makes the output of a collective and carries it out.
func result[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, n int, src []T, op Operator,
	root int) ([]T, error) {
	dst := make([]T, n)
	if err := do1(ctx, c, collective, dst, src, op, root); err != nil {
		return nil, err
	}
	return dst, nil
}

// AllReduce returns the reduction of data over the group, element by element: the same bits on every rank. data has the
// same length on all of them, and is not changed.
func AllReduce[T tensor.Element](ctx context.Context, c *Comm, data []T, op Operator) ([]T, error) {
	return result(ctx, c, schedule.AllReduce, len(data), data, op, 0)
}

// AllReduceTo is AllReduce with the result in dst, which has the length of data and is data itself or apart from it.
// After an error dst is unspecified. It allocates nothing once a call like it has been made.
func AllReduceTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, op Operator) error {
	return do1(ctx, c, schedule.AllReduce, dst, data, op, 0)
}

// AllReduceInPlace is AllReduce with the result in data. What data holds after an error is unspecified.
func AllReduceInPlace[T tensor.Element](ctx context.Context, c *Comm, data []T, op Operator) error {
	return do1(ctx, c, schedule.AllReduce, data, data, op, 0)
}

// ReduceScatter returns this rank's shard of the reduction of data over the group: with n elements and G ranks, c =
// ceil(n/G) of them from rank*c on, and zeros past the end of data. data has the same length on all ranks, and is not
// changed.
func ReduceScatter[T tensor.Element](ctx context.Context, c *Comm, data []T, op Operator) ([]T, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return result(ctx, c, schedule.ReduceScatter, chunks.PerRank(len(data), c.Size()), data, op, 0)
}

// ReduceScatterTo is ReduceScatter with the result in dst, of ceil(n/G) elements, apart from data or exactly its own
// place in data. After an error dst is unspecified. It allocates nothing once a call like it has been made.
func ReduceScatterTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, op Operator) error {
	return do1(ctx, c, schedule.ReduceScatter, dst, data, op, 0)
}

// AllGather returns the data of all ranks one after the other, G times the length of data, in rank order. data has the
// same length on all ranks, and is not changed.
func AllGather[T tensor.Element](ctx context.Context, c *Comm, data []T) ([]T, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return result(ctx, c, schedule.AllGather, gatheredLength[T](len(data), c.Size()), data, 0, 0)
}

// AllGatherTo is AllGather with the result in dst, of G times the length of data, apart from it or with data exactly in
// its own place in dst. After an error dst is unspecified. It allocates nothing once a call like it has been
// made.
func AllGatherTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T) error {
	return do1(ctx, c, schedule.AllGather, dst, data, 0, 0)
}

// AllToAll returns part r of every rank's data, r being this rank, in rank order: of G equal parts, out[j] of rank i is
// data[i] of rank j. The length of data is a multiple of G and the same on all ranks; data is not changed.
func AllToAll[T tensor.Element](ctx context.Context, c *Comm, data []T) ([]T, error) {
	return result(ctx, c, schedule.AllToAll, len(data), data, 0, 0)
}

// AllToAllTo is AllToAll with the result in dst, which has the length of data and is data itself or apart from it. What
// dst holds after an error is unspecified. It allocates nothing once a call like it has been made.
func AllToAllTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T) error {
	return do1(ctx, c, schedule.AllToAll, dst, data, 0, 0)
}

// AllToAllInPlace is AllToAll with the result in data. What would be overwritten before it is sent is kept in memory of
// the library: directly on peer memory a piece of 32 KiB, else up to all that arrives. What data holds after an error
// is unspecified.
func AllToAllInPlace[T tensor.Element](ctx context.Context, c *Comm, data []T) error {
	return do1(ctx, c, schedule.AllToAll, data, data, 0, 0)
}

// Broadcast returns the data of the rank root, an index in the group: with several groups there is one root in each.
// data has the same length on all ranks, and is not changed; only the root's is read.
//
// A member need not wait for all others: a root returns once its data is where those next to it find it, and who has
// the data and has passed it on is done. So when a member is in another call, those who have returned get the error,
// ErrMismatch with both calls, from their next call or from Close.
func Broadcast[T tensor.Element](ctx context.Context, c *Comm, data []T, root int) ([]T, error) {
	return result(ctx, c, schedule.Broadcast, len(data), data, 0, root)
}

// BroadcastTo is Broadcast with the result in dst, which has the length of data and is data itself or apart from it.
// After an error dst is unspecified. It allocates nothing once a call like it has been made.
func BroadcastTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, root int) error {
	return do1(ctx, c, schedule.Broadcast, dst, data, 0, root)
}

// BroadcastInPlace is Broadcast with the result in data, which at the root is the input. What the others' data holds
// after an error is unspecified.
func BroadcastInPlace[T tensor.Element](ctx context.Context, c *Comm, data []T, root int) error {
	return do1(ctx, c, schedule.Broadcast, data, data, 0, root)
}

// Barrier returns when every member of the group has called it. It moves no data, but counts as a collective, and fails
// as collectives do.
func (c *Comm) Barrier(ctx context.Context) error {
	return c.do(ctx, &call{ask: newAsk(schedule.Barrier, 0, 0), dtype: tensor.U8})
}
