package gcl

import (
	"context"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// This file holds the ...V forms: collectives whose ranks have parts of different lengths, one after the other, nothing
// padded. counts[i] is the length of the part of rank i, which may be 0. All ranks give the same counts; where they
// differ it is ErrMismatch. Errors before anything is sent: another number of counts than ranks, a negative count, a
// buffer whose length is not by the counts, buffers that overlap elsewhere than in the rank's own place, which begins
// where the parts before it end.

// doV carries out a collective by counts with one input and one output.
func doV[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, dst, src []T, n counts,
	op Operator, root int) error {
	return c.do(ctx, &call{
		ask: newAsk(collective, op, root), dtype: tensor.DTypeOf[T](), counts: n,
		dst: tensor.Bytes(dst), src: tensor.Bytes(src), dstLen: len(dst), srcLen: len(src),
	})
}

// resultV makes the output of a collective by counts and carries it out.
func resultV[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, src []T, n counts,
	op Operator, root int) ([]T, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	dst := make([]T, c.resultLength(&call{ask: newAsk(collective, op, root), dtype: tensor.DTypeOf[T](), counts: n,
		srcLen: len(src)}))
	if err := doV(ctx, c, collective, dst, src, n, op, root); err != nil {
		return nil, err
	}
	return dst, nil
}

// AllGatherV is AllGather of parts of different lengths: it returns the data of all ranks one after the other, in rank
// order. data has counts[r] elements on rank r, and is not changed. All ranks give the same counts. Zero counts are
// fine. A negative count, another number of counts than ranks, and data of another length are errors before anything is
// sent; counts that differ between ranks are ErrMismatch on all of them.
func AllGatherV[T tensor.Element](ctx context.Context, c *Comm, data []T, counts []int) ([]T, error) {
	return resultV(ctx, c, schedule.AllGather, data, byCounts(counts, nil), 0, 0)
}

// AllGatherVTo is AllGatherV with the result in dst, as long as the sum of the counts, apart from data or with data
// exactly in its own place in dst: after the parts of the ranks before. After an error dst is unspecified. It allocates
// nothing once a call like it has been made.
func AllGatherVTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, counts []int) error {
	return doV(ctx, c, schedule.AllGather, dst, data, byCounts(counts, nil), 0, 0)
}

// ReduceScatterV is ReduceScatter to parts of different lengths: it returns this rank's part of the reduction of data
// over the group, counts[r] elements on rank r, which follow those of the ranks before. data has as many elements as
// the counts together, and is not changed. All ranks give the same counts; errors are those of AllGatherV.
func ReduceScatterV[T tensor.Element](ctx context.Context, c *Comm, data []T, counts []int, op Operator) ([]T, error) {
	return resultV(ctx, c, schedule.ReduceScatter, data, byCounts(counts, nil), op, 0)
}

// ReduceScatterVTo is ReduceScatterV with the result in dst, of counts[r] elements on rank r, apart from data or
// exactly its own place in data. After an error dst is unspecified. It allocates nothing once a call like it has been
// made.
func ReduceScatterVTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, counts []int, op Operator) error {
	return doV(ctx, c, schedule.ReduceScatter, dst, data, byCounts(counts, nil), op, 0)
}

// GatherV is Gather of parts of different lengths: it returns the data of all ranks one after the other, in rank order,
// at the rank root, and nil elsewhere. data has counts[r] elements on rank r, and is not changed. All ranks give the
// same counts; errors are those of AllGatherV.
func GatherV[T tensor.Element](ctx context.Context, c *Comm, data []T, counts []int, root int) ([]T, error) {
	dst, err := resultV(ctx, c, schedule.Gather, data, byCounts(counts, nil), 0, root)
	if err != nil || c.Rank() != root {
		return nil, err
	}
	return dst, nil
}

// GatherVTo is GatherV with the result in the root's dst, as long as the sum of the counts, apart from data or with
// data exactly in its own place in dst. Elsewhere dst is empty or of that length, and not written. What the root's dst
// holds after an error is unspecified. It allocates nothing once a call like it has been made.
func GatherVTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, counts []int, root int) error {
	return doV(ctx, c, schedule.Gather, dst, data, byCounts(counts, nil), 0, root)
}

// ScatterV is Scatter of parts of different lengths: it returns counts[r] elements of the root's data on rank r, those
// that follow the parts of the ranks before. The root's data is as long as the sum of the counts; elsewhere data is
// empty or of that length, and not read. All ranks give the same counts; errors are those of AllGatherV.
func ScatterV[T tensor.Element](ctx context.Context, c *Comm, data []T, counts []int, root int) ([]T, error) {
	return resultV(ctx, c, schedule.Scatter, data, byCounts(counts, nil), 0, root)
}

// ScatterVTo is ScatterV with the result in dst, of counts[r] elements on rank r: apart from data, or at the root
// exactly its own place in data. After an error dst is unspecified. It allocates nothing once a call like it has been
// made.
func ScatterVTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, counts []int, root int) error {
	return doV(ctx, c, schedule.Scatter, dst, data, byCounts(counts, nil), 0, root)
}

// AllToAllV is AllToAll of parts of different lengths. sent[i] elements of data go to rank i, and received[i] come from
// it, in rank order in both buffers. Each rank gives counts of its own: received[i] of rank r is sent[r] of rank i, and
// where they differ all ranks get ErrMismatch, with an error that names the part and both lengths. A rank whose message
// has left already may get it from its next call or from Close. data, as long as the counts sent, is not changed.
//
// Every part goes straight to its rank, in one message whatever Options.MaxBytesPerTile says, so that both ends compare
// its length. So it goes by the method direct whatever Options.Method is, and by messages also where replicas share
// memory; method native refuses it. The lengths are compared, and nothing else need be known of other ranks.
//
// Errors before anything is sent: another number of counts than ranks, negative ones, data that is not as long as the
// counts sent, and a count sent by this rank to itself that is not the one received.
func AllToAllV[T tensor.Element](ctx context.Context, c *Comm, data []T, sent, received []int) ([]T, error) {
	return resultV(ctx, c, schedule.AllToAll, data, byCounts(sent, received), 0, 0)
}

// AllToAllVTo is AllToAllV with the result in dst, as long as the counts received. dst lies apart from data, or is data
// itself where as much comes from each rank as goes to it. After an error dst is unspecified. It allocates nothing once
// a call like it has been made.
func AllToAllVTo[T tensor.Element](ctx context.Context, c *Comm, dst, data []T, sent, received []int) error {
	return doV(ctx, c, schedule.AllToAll, dst, data, byCounts(sent, received), 0, 0)
}

// AllToAllVInPlace is AllToAllV with the result in data, where as much comes from each rank as goes to it: counts[i]
// elements. What arrives is kept in memory of the library until all has been sent. What data holds after an error is
// unspecified.
func AllToAllVInPlace[T tensor.Element](ctx context.Context, c *Comm, data []T, counts []int) error {
	return doV(ctx, c, schedule.AllToAll, data, data, byCounts(counts, counts), 0, 0)
}
