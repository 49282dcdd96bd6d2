package gcl_test

import (
	"context"

	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Collectives on several operands by a Batch that lives for one call.

// batchTo carries out a collective on slices.
func batchTo[T tensor.Element](ctx context.Context, c *gcl.Comm, collective schedule.Collective, dst, src [][]T,
	op gcl.Operator, root int) error {
	b := c.Batch(collective, op, root)
	gcl.AppendAll(b, dst, src)
	return b.Run(ctx)
}

// batchInPlace is batchTo with the results in data.
func batchInPlace[T tensor.Element](ctx context.Context, c *gcl.Comm, collective schedule.Collective, data [][]T,
	op gcl.Operator, root int) error {
	return batchTo(ctx, c, collective, data, data, op, root)
}

// batchTensorsTo carries out a collective on tensors.
func batchTensorsTo(ctx context.Context, c *gcl.Comm, collective schedule.Collective, dst, src []*tensor.Tensor,
	op gcl.Operator, root int) error {
	b := c.Batch(collective, op, root)
	for i := range src {
		b.AppendTensor(dst[i], src[i])
	}
	return b.Run(ctx)
}

// batchVTo carries out a collective by counts on slices: lists[k][i] is the list k of operand i.
func batchVTo[T tensor.Element](ctx context.Context, c *gcl.Comm, collective schedule.Collective, dst, src [][]T,
	op gcl.Operator, root int, lists ...[][]int) error {
	b := c.Batch(collective, op, root)
	for i := range src {
		gcl.AppendV(b, dst[i], src[i], countsAt(lists, i)...)
	}
	return b.Run(ctx)
}

// batchTensorsVTo is batchVTo on tensors.
func batchTensorsVTo(ctx context.Context, c *gcl.Comm, collective schedule.Collective, dst, src []*tensor.Tensor,
	op gcl.Operator, root int, lists ...[][]int) error {
	b := c.Batch(collective, op, root)
	for i := range src {
		b.AppendTensorV(dst[i], src[i], countsAt(lists, i)...)
	}
	return b.Run(ctx)
}

// countsAt are the lists of counts of operand i.
func countsAt(lists [][][]int, i int) (counts [][]int) {
	for _, list := range lists {
		counts = append(counts, list[i])
	}
	return counts
}
