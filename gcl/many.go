package gcl

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// This file holds the collectives on several slices of one type that GCL has; of other collectives a Batch serves. All
// ranks give slices of the same lengths in the same order, which may be empty. A destination is its own input, where
// the collective on one slice allows that, or apart from all inputs and destinations. Nothing but destinations is
// changed, and what they hold after an error is unspecified. One set of messages serves all slices: docs/design/many.md
// says how. With a method named in Options, or with Options.Reproducible, the results have the bits of a call for each.

// doSlices carries out a collective on several slices.
func doSlices[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, dst, src [][]T,
	op Operator, fresh bool) error {
	return c.doList(ctx, &list{
		ask: newAsk(collective, op, 0), form: ofSlices, fresh: fresh,
		dtype: tensor.DTypeOf[T](), dsts: headers(dst), srcs: headers(src),
	})
}

// results makes the outputs of a collective, whose length follows from that of an input, and carries it out.
func results[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, src [][]T, op Operator,
	length func(n, ranks int) int) ([][]T, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	dst := make([][]T, len(src))
	for t := range dst {
		dst[t] = make([]T, length(len(src[t]), c.Size()))
	}
	if err := doSlices(ctx, c, collective, dst, src, op, true); err != nil {
		return nil, err
	}
	return dst, nil
}

func sameLength(n, _ int) int { return n }

// AllReduceMany is AllReduce of each slice of data, all in one go. The lengths are the same on all ranks.
func AllReduceMany[T tensor.Element](ctx context.Context, c *Comm, data [][]T, op Operator) ([][]T, error) {
	return results(ctx, c, schedule.AllReduce, data, op, sameLength)
}

// AllReduceManyTo is AllReduceMany with the results in dst: dst[i], which has the length of data[i], is data[i]
// itself or apart from all other slices. It allocates nothing once a call like it has been made.
func AllReduceManyTo[T tensor.Element](ctx context.Context, c *Comm, dst, data [][]T, op Operator) error {
	return doSlices(ctx, c, schedule.AllReduce, dst, data, op, false)
}

// AllReduceManyInPlace is AllReduceMany with the results in data, whose slices lie apart.
func AllReduceManyInPlace[T tensor.Element](ctx context.Context, c *Comm, data [][]T, op Operator) error {
	return doSlices(ctx, c, schedule.AllReduce, data, data, op, false)
}

// ReduceScatterMany is ReduceScatter of each slice of data, all in one go: a slice of n elements gives this rank's
// shard of ceil(n/G), padded with zeros on its own. The lengths are the same on all ranks.
func ReduceScatterMany[T tensor.Element](ctx context.Context, c *Comm, data [][]T, op Operator) ([][]T, error) {
	return results(ctx, c, schedule.ReduceScatter, data, op, chunks.PerRank)
}

// ReduceScatterManyTo is ReduceScatterMany with the results in dst: dst[i], of ceil(n/G) elements for the n of
// data[i], is its own place in data[i] or apart from all other slices. It allocates nothing once a call like it has
// been made.
func ReduceScatterManyTo[T tensor.Element](ctx context.Context, c *Comm, dst, data [][]T, op Operator) error {
	return doSlices(ctx, c, schedule.ReduceScatter, dst, data, op, false)
}

// AllGatherMany is AllGather of each slice of data, all in one go: a slice of n elements gives G times as many, in rank
// order. The lengths are the same on all ranks.
func AllGatherMany[T tensor.Element](ctx context.Context, c *Comm, data [][]T) ([][]T, error) {
	return results(ctx, c, schedule.AllGather, data, 0, gatheredLength[T])
}

// AllGatherManyTo is AllGatherMany with the results in dst: dst[i], of G times the length of data[i], has data[i] in
// its own place or is apart from all other slices. It allocates nothing once a call like it has been made.
func AllGatherManyTo[T tensor.Element](ctx context.Context, c *Comm, dst, data [][]T) error {
	return doSlices(ctx, c, schedule.AllGather, dst, data, 0, false)
}
