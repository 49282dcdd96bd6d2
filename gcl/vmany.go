package gcl

import (
	"context"
	"fmt"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// This file holds the ...V forms on several slices of one type: counts[i] are those of slice i. The rest is as with the
// ...V forms on one slice, vforms.go, and with several slices, many.go.

// manyCounts are the counts of a call on several operands, by operand as counts are.
type manyCounts struct {
	given           bool
	ranks, received [][]int
}

// manyByCounts are counts of several operands.
func manyByCounts(ranks, received [][]int) manyCounts { return manyCounts{true, ranks, received} }

// check looks at how many lists of counts there are for a number of operands.
func (n *manyCounts) check(collective schedule.Collective, operands int) error {
	blocks := collective.Contract().Input == schedule.Blocks
	switch {
	case !n.given:
	case len(n.ranks) != operands:
		return fmt.Errorf("%d lists of counts for %d tensors", len(n.ranks), operands)
	case blocks && len(n.received) != operands:
		return fmt.Errorf("%d lists of counts received for %d tensors", len(n.received), operands)
	case blocks:
		return checkBlockOperands(operands)
	}
	return nil
}

// checkBlockOperands bounds the operands of an all-to-all by counts: each has a message of its own from rank to rank.
func checkBlockOperands(n int) error {
	if n > transport.MaxTag+1 {
		return fmt.Errorf("%d tensors in an all-to-all by counts, want at most %d", n, transport.MaxTag+1)
	}
	return nil
}

// of are the counts of operand t, in elements.
func (n *manyCounts) of(collective schedule.Collective, t int) counts {
	out := byCounts(n.ranks[t], nil)
	if collective.Contract().Input == schedule.Blocks {
		out.received = n.received[t]
	}
	return out
}

// operands is how many there are, or 0 where they are not as many as the lists of counts.
func (n *manyCounts) operands(collective schedule.Collective, operands int) int {
	if n.check(collective, operands) != nil {
		return 0
	}
	return operands
}

// countsOf are the counts of operand t.
func (k *manyCall) countsOf(t int) counts {
	n := k.counts.of(k.Collective, t)
	if k.form == ofTensors {
		n.unit = rowOf(k.dstTensors[t], k.srcTensors[t])
	}
	return n
}

// putCounts puts counts into the words.
func (m *many) putCounts(n *manyCounts) {
	for _, lists := range [...][][]int{n.ranks, n.received} {
		for _, list := range lists {
			m.words = append(m.words, uint64(len(list)))
			for _, count := range list {
				m.words = append(m.words, uint64(count))
			}
		}
	}
}

// doSlicesV carries out a collective by counts on several slices.
func doSlicesV[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, dst, src [][]T,
	n manyCounts, op Operator, root int, fresh bool) error {
	return c.doMany(ctx, manyCall{
		ask: newAsk(collective, op, root), form: ofSlices, fresh: fresh, counts: n,
		dtype: tensor.DTypeOf[T](), dsts: headers(dst), srcs: headers(src),
	})
}

// resultsV makes the outputs of a collective by counts and carries it out.
func resultsV[T tensor.Element](ctx context.Context, c *Comm, collective schedule.Collective, src [][]T, n manyCounts,
	op Operator) ([][]T, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	dst := make([][]T, len(src))
	for t := range n.operands(collective, len(src)) {
		dst[t] = make([]T, c.resultLength(&call{ask: newAsk(collective, op, 0), dtype: tensor.DTypeOf[T](),
			counts: n.of(collective, t), srcLen: len(src[t])}))
	}
	if err := doSlicesV(ctx, c, collective, dst, src, n, op, 0, true); err != nil {
		return nil, err
	}
	return dst, nil
}

// AllGatherVMany is AllGatherV of each slice of data, all in one go: counts[i] are those of data[i]. Of all ...VMany
// forms: another number of lists than of slices is an error, and each slice has the errors of the form on one, which
// name it; nothing has been sent then.
func AllGatherVMany[T tensor.Element](ctx context.Context, c *Comm, data [][]T, counts [][]int) ([][]T, error) {
	return resultsV(ctx, c, schedule.AllGather, data, manyByCounts(counts, nil), 0)
}

// AllGatherVManyTo is AllGatherVMany with the results in dst: dst[i], as long as the sum of counts[i], has data[i] in
// its own place or is apart from all other slices. It allocates nothing once a call like it has been made.
func AllGatherVManyTo[T tensor.Element](ctx context.Context, c *Comm, dst, data [][]T, counts [][]int) error {
	return doSlicesV(ctx, c, schedule.AllGather, dst, data, manyByCounts(counts, nil), 0, 0, false)
}

// ReduceScatterVMany is ReduceScatterV of each slice of data, all in one go: counts[i] are those of data[i].
func ReduceScatterVMany[T tensor.Element](ctx context.Context, c *Comm, data [][]T, counts [][]int,
	op Operator) ([][]T, error) {
	return resultsV(ctx, c, schedule.ReduceScatter, data, manyByCounts(counts, nil), op)
}

// ReduceScatterVManyTo is ReduceScatterVMany with the results in dst: dst[i], of counts[i][r] elements on rank r, is
// its own place in data[i] or apart from all other slices. It allocates nothing once a call like it has been made.
func ReduceScatterVManyTo[T tensor.Element](ctx context.Context, c *Comm, dst, data [][]T, counts [][]int,
	op Operator) error {
	return doSlicesV(ctx, c, schedule.ReduceScatter, dst, data, manyByCounts(counts, nil), op, 0, false)
}

// GatherVManyTo is GatherVTo of each slice of data, all in one go: counts[i], on all ranks, are those of data[i]. On
// ranks other than the root dst has as many slices, which may be empty: see AllGatherVManyTo.
func GatherVManyTo[T tensor.Element](ctx context.Context, c *Comm, dst, data [][]T, counts [][]int, root int) error {
	return doSlicesV(ctx, c, schedule.Gather, dst, data, manyByCounts(counts, nil), 0, root, false)
}

// ScatterVManyTo is ScatterVTo of each slice of data, all in one go: counts[i], on all ranks, are those of data[i]. On
// ranks other than the root data has as many slices, which may be empty.
func ScatterVManyTo[T tensor.Element](ctx context.Context, c *Comm, dst, data [][]T, counts [][]int, root int) error {
	return doSlicesV(ctx, c, schedule.Scatter, dst, data, manyByCounts(counts, nil), 0, root, false)
}

// AllToAllVMany is AllToAllV of each slice of data, all in one go: sent[i] and received[i] are the counts of data[i].
// Every part of every slice is a message of its own. There may be 65536 slices.
func AllToAllVMany[T tensor.Element](ctx context.Context, c *Comm, data [][]T, sent, received [][]int) ([][]T, error) {
	return resultsV(ctx, c, schedule.AllToAll, data, manyByCounts(sent, received), 0)
}

// AllToAllVManyTo is AllToAllVMany with the results in dst: dst[i], as long as the counts received[i], is data[i]
// itself where those sent are the same, or apart from all other slices. It allocates nothing once a call like it has
// been made.
func AllToAllVManyTo[T tensor.Element](ctx context.Context, c *Comm, dst, data [][]T, sent, received [][]int) error {
	return doSlicesV(ctx, c, schedule.AllToAll, dst, data, manyByCounts(sent, received), 0, 0, false)
}

// AllToAllVManyInPlace is AllToAllVMany with the results in data, whose slices lie apart, where as much comes from each
// rank as goes to it: counts[i] are those of data[i].
func AllToAllVManyInPlace[T tensor.Element](ctx context.Context, c *Comm, data [][]T, counts [][]int) error {
	return doSlicesV(ctx, c, schedule.AllToAll, data, data, manyByCounts(counts, counts), 0, 0, false)
}
