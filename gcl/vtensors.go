package gcl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// This file holds the ...V forms on tensors. Counts are of rows, that is of a tensor's first dimension: a part of 3 of
// tensors of shape (n, a, b) has the shape (3, a, b). The other dimensions are the same in input and destination, and
// on all ranks. The rest is as with the ...V forms on slices, vforms.go, and with several tensors, tensors.go.

// rowOf is the elements of a row of a call's tensors, of which one may be missing.
func rowOf(dst, src *tensor.Tensor) int {
	of := src
	if of == nil {
		of = dst
	}
	row := 1
	for i := 1; i < of.Rank(); i++ {
		d := of.Dim(i)
		if d > 0 && row > math.MaxInt/d {
			return math.MaxInt
		}
		row *= d
	}
	return row
}

// checkRows says what is wrong with a tensor, which may be nil, in a call by counts.
func checkRows(t *tensor.Tensor) error {
	switch {
	case t == nil:
		return nil
	case !t.DType().Valid():
		return errors.New("it is the zero Tensor, which has no dtype")
	case t.Rank() == 0:
		return errors.New("counts are of its first dimension, and it has none")
	}
	return nil
}

// checkInputV is checkInput of a call by counts.
func (c *Comm) checkInputV(a *ask, src *tensor.Tensor) error {
	if src == nil && !(a.Collective.Contract().Deals() && !a.Reads(c.Rank())) {
		return errors.New("it is nil")
	}
	return checkRows(src)
}

// checkShapesV refuses a destination of another dtype, or of other rows, than the input's. How many rows there are, the
// counts tell.
func checkShapesV(dst, src *tensor.Tensor) error {
	if err := checkRows(dst); err != nil {
		return fmt.Errorf("the destination: %w", err)
	}
	if dst == nil || src == nil || dst.DType() == src.DType() && dst.Rank() == src.Rank() && sameRows(dst, src) {
		return nil
	}
	want := src.Shape()
	return fmt.Errorf("the destination is %v of shape %v, want %v and, but for the first dimension, the shape %v", dst.DType(),
		dst.Shape(), src.DType(), want)
}

// sameRows reports whether the rows of two tensors with as many dimensions have one shape.
func sameRows(a, b *tensor.Tensor) bool {
	for i := 1; i < a.Rank(); i++ {
		if a.Dim(i) != b.Dim(i) {
			return false
		}
	}
	return true
}

// checkTensorsV is checkTensors of a call by counts.
func (c *Comm) checkTensorsV(a *ask, dst, src *tensor.Tensor) error {
	if err := c.checkInputV(a, src); err != nil {
		return fmt.Errorf("the input: %w", err)
	}
	if dst == nil && a.Writes(c.Rank()) {
		return errors.New("the destination: it is nil")
	}
	return checkShapesV(dst, src)
}

// DoV is Do of a ...V form: all-gather, reduce-scatter, gather, scatter or all-to-all by counts. There is one list of
// counts, by rank; of an all-to-all there are two: those sent, and those received. Counts are of the first dimension of
// the tensors, which have the others alike. To members that call on slices it is the same call. It allocates nothing
// once a call like it has been made. A collective without parts, another number of lists, counts that are not those of
// the shapes (any go with rows of no elements), and tensors without a dimension or of other rows or dtypes are errors,
// and nothing has been sent.
func (c *Comm) DoV(ctx context.Context, collective schedule.Collective, dst, src *tensor.Tensor, op Operator, root int,
	counts ...[]int) error {
	if err := c.check(); err != nil {
		return err
	}
	k := call{ask: newAsk(collective, op, root)}
	k.invalid = c.tensorsByCounts(&k, dst, src, counts)
	return c.do(ctx, &k)
}

// tensorsByCounts gives a call its two tensors and its counts, unless they are wrong.
func (c *Comm) tensorsByCounts(k *call, dst, src *tensor.Tensor, lists [][]int) error {
	if err := c.checkAsk(&k.ask); err != nil {
		return err
	}
	n, err := countsOf(k.Collective, lists)
	if err != nil {
		return err
	}
	if err := c.checkTensorsV(&k.ask, dst, src); err != nil {
		return err
	}
	n.unit = rowOf(dst, src)
	k.tensors(dst, src)
	k.counts = n
	return nil
}

// doTensorsV carries out a collective by counts on several tensors.
func doTensorsV(ctx context.Context, c *Comm, collective schedule.Collective, dst, src []*tensor.Tensor, n manyCounts,
	op Operator, root int, fresh bool) error {
	return c.doMany(ctx, manyCall{ask: newAsk(collective, op, root), form: ofTensors, fresh: fresh, dstTensors: dst,
		srcTensors: src, counts: n})
}

// tensorResultsV makes the outputs of a collective by counts and carries it out.
func tensorResultsV(ctx context.Context, c *Comm, collective schedule.Collective, src []*tensor.Tensor, n manyCounts,
	op Operator) ([]*tensor.Tensor, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	a := newAsk(collective, op, 0)
	dst := make([]*tensor.Tensor, len(src))
	for t := range n.operands(collective, len(src)) {
		if c.checkInputV(&a, src[t]) != nil {
			continue // it is refused
		}
		shape := slices.Clone(src[t].Shape())
		shape[0] = c.resultRows(&a, src[t], n.of(collective, t))
		var err error
		if dst[t], err = tensor.New(src[t].DType(), shape...); err != nil {
			return nil, fmt.Errorf("gcl: %v: tensor %d: %w", collective, t, err)
		}
	}
	if err := doTensorsV(ctx, c, collective, dst, src, n, op, 0, true); err != nil {
		return nil, err
	}
	return dst, nil
}

// resultRows is resultLength in rows: 0 also where a tensor has no room for so many.
func (c *Comm) resultRows(a *ask, src *tensor.Tensor, n counts) int {
	rows := c.resultLength(&call{ask: *a, dtype: tensor.U8, counts: n, srcLen: src.Dim(0)})
	if row := rowOf(nil, src); row > 0 && rows > maxBytes/src.DType().Size()/row {
		return 0
	}
	return rows
}

// AllGatherVTensors is AllGatherV of each tensor, all in one go: counts[i] are the rows of data[i] on each rank.
func AllGatherVTensors(ctx context.Context, c *Comm, data []*tensor.Tensor, counts [][]int) ([]*tensor.Tensor, error) {
	return tensorResultsV(ctx, c, schedule.AllGather, data, manyByCounts(counts, nil), 0)
}

// AllGatherVTensorsTo is AllGatherVTensors with the results in dst: the memory of dst[i] has that of data[i] in its own
// place, or is apart from that of all other tensors. It allocates nothing once a call like it has been made.
func AllGatherVTensorsTo(ctx context.Context, c *Comm, dst, data []*tensor.Tensor, counts [][]int) error {
	return doTensorsV(ctx, c, schedule.AllGather, dst, data, manyByCounts(counts, nil), 0, 0, false)
}

// ReduceScatterVTensors is ReduceScatterV of each tensor, all in one go: counts[i] are the rows of data[i] that each
// rank gets.
func ReduceScatterVTensors(ctx context.Context, c *Comm, data []*tensor.Tensor, counts [][]int,
	op Operator) ([]*tensor.Tensor, error) {
	return tensorResultsV(ctx, c, schedule.ReduceScatter, data, manyByCounts(counts, nil), op)
}

// ReduceScatterVTensorsTo is ReduceScatterVTensors with the results in dst: the memory of dst[i] is its own place in
// that of data[i], or apart from that of all other tensors. It allocates nothing once a call like it has been made.
func ReduceScatterVTensorsTo(ctx context.Context, c *Comm, dst, data []*tensor.Tensor, counts [][]int,
	op Operator) error {
	return doTensorsV(ctx, c, schedule.ReduceScatter, dst, data, manyByCounts(counts, nil), op, 0, false)
}

// GatherVTensorsTo is GatherVTo of each tensor, all in one go: counts[i] are the rows of data[i] on each rank.
// Elsewhere than at the root dst[i] may be nil.
func GatherVTensorsTo(ctx context.Context, c *Comm, dst, data []*tensor.Tensor, counts [][]int, root int) error {
	return doTensorsV(ctx, c, schedule.Gather, dst, data, manyByCounts(counts, nil), 0, root, false)
}

// ScatterVTensorsTo is ScatterVTo of each tensor, all in one go: counts[i] are the rows of dst[i] on each rank.
// Elsewhere than at the root data[i] may be nil.
func ScatterVTensorsTo(ctx context.Context, c *Comm, dst, data []*tensor.Tensor, counts [][]int, root int) error {
	return doTensorsV(ctx, c, schedule.Scatter, dst, data, manyByCounts(counts, nil), 0, root, false)
}

// AllToAllVTensors is AllToAllV of each tensor, all in one go: sent[i] are the rows of data[i] that go to each rank,
// and received[i] those that come from it. See AllToAllVMany.
func AllToAllVTensors(ctx context.Context, c *Comm, data []*tensor.Tensor, sent,
	received [][]int) ([]*tensor.Tensor, error) {
	return tensorResultsV(ctx, c, schedule.AllToAll, data, manyByCounts(sent, received), 0)
}

// AllToAllVTensorsTo is AllToAllVTensors with the results in dst: the memory of dst[i] is that of data[i] where as much
// comes from each rank as goes to it, or apart from that of all other tensors. It allocates nothing once a call like it
// has been made.
func AllToAllVTensorsTo(ctx context.Context, c *Comm, dst, data []*tensor.Tensor, sent, received [][]int) error {
	return doTensorsV(ctx, c, schedule.AllToAll, dst, data, manyByCounts(sent, received), 0, 0, false)
}

// AllToAllVTensorsInPlace is AllToAllVTensors with the results in data, where as much comes from each rank as goes to
// it: counts[i] are the rows of data[i].
func AllToAllVTensorsInPlace(ctx context.Context, c *Comm, data []*tensor.Tensor, counts [][]int) error {
	return doTensorsV(ctx, c, schedule.AllToAll, data, data, manyByCounts(counts, counts), 0, 0, false)
}
