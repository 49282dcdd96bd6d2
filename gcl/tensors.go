package gcl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// This file holds the collectives on several tensors, whose dtypes and shapes may differ from one to the next. All
// ranks give tensors of the same dtypes and shapes in the same order; any dimension may be 0. The rest is as with
// several slices: many.go.

// doTensors carries out a collective on several tensors.
func doTensors(ctx context.Context, c *Comm, collective schedule.Collective, dst, src []*tensor.Tensor, op Operator,
	fresh bool) error {
	return c.doList(ctx, &list{ask: newAsk(collective, op, 0), form: ofTensors, fresh: fresh, dstTensors: dst,
		srcTensors: src})
}

// tensorResults makes the outputs of a collective and carries it out.
func tensorResults(ctx context.Context, c *Comm, collective schedule.Collective, src []*tensor.Tensor,
	op Operator) ([]*tensor.Tensor, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	a := newAsk(collective, op, 0)
	dst := make([]*tensor.Tensor, len(src))
	for t := range dst {
		if c.checkInput(&a, src[t]) != nil {
			continue // it is refused
		}
		var err error
		if dst[t], err = tensor.New(src[t].DType(), outputShape(collective, src[t], c.Size())...); err != nil {
			return nil, fmt.Errorf("gcl: %v: tensor %d: %w", collective, t, err)
		}
	}
	if err := doTensors(ctx, c, collective, dst, src, op, true); err != nil {
		return nil, err
	}
	return dst, nil
}

// outputShape is the shape of a collective's output, which has one that an input of its own tells.
func outputShape(collective schedule.Collective, src *tensor.Tensor, ranks int) tensor.Shape {
	switch contract := collective.Contract(); {
	case contract.Deals():
		return src.Shape()[1:]
	case contract.Output == schedule.Own:
		return tensor.Shape{chunks.PerRank(src.Len(), ranks)}
	case contract.Input == schedule.Own:
		return slices.Concat(tensor.Shape{ranks}, src.Shape())
	}
	return src.Shape()
}

// checkInput says what is wrong with a tensor as an input. Parts that the root deals out are its alone to give.
func (c *Comm) checkInput(a *ask, src *tensor.Tensor) error {
	contract, ranks := a.Collective.Contract(), c.Size()
	switch {
	case src == nil && contract.Deals() && !a.Reads(c.Rank()):
		return nil
	case src == nil:
		return errors.New("it is nil")
	case !src.DType().Valid():
		return errors.New("it is the zero Tensor, which has no dtype")
	case contract.Input == schedule.Blocks && (src.Rank() == 0 || src.Dim(0) != ranks),
		contract.Deals() && (src.Rank() == 0 || src.Dim(0) != ranks):
		return fmt.Errorf("the first dimension of %s is that of the ranks, %d, not as in the shape %v",
			wire.WithArticle(a.Collective), ranks, src.Shape())
	case contract.Output == schedule.Own && !contract.Deals() && src.Rank() != 1:
		return fmt.Errorf("%s takes one dimension, not the shape %v", wire.WithArticle(a.Collective), src.Shape())
	case contract.Input == schedule.Own:
		return checkSize(src.Len(), ranks, src.DType())
	}
	return nil
}

// checkShapes refuses a destination of another dtype or shape than the input asks for. It allocates nothing when all
// is well. Where one of the two may be missing on this rank, and is, there is nothing to compare.
func checkShapes(collective schedule.Collective, dst, src *tensor.Tensor, ranks int) error {
	if dst == nil || src == nil {
		return nil
	}
	ok := dst.DType() == src.DType()
	switch contract := collective.Contract(); {
	case contract.Deals():
		ok = ok && src.Rank() == dst.Rank()+1 && src.Dim(0) == ranks && sameDims(src, dst, 1)
	case contract.Output == schedule.Own:
		ok = ok && dst.Rank() == 1 && dst.Len() == chunks.PerRank(src.Len(), ranks)
	case contract.Input == schedule.Own:
		ok = ok && dst.Rank() == src.Rank()+1 && dst.Dim(0) == ranks && sameDims(dst, src, 1)
	default:
		ok = ok && dst.Rank() == src.Rank() && sameDims(dst, src, 0)
	}
	if !ok {
		return fmt.Errorf("the destination is %v of shape %v, want %v of shape %v",
			dst.DType(), dst.Shape(), src.DType(), outputShape(collective, src, ranks))
	}
	return nil
}

// sameDims reports whether the dimensions of src are those of dst after the first few.
func sameDims(dst, src *tensor.Tensor, after int) bool {
	for i := range src.Rank() {
		if dst.Dim(after+i) != src.Dim(i) {
			return false
		}
	}
	return true
}

// AllReduceTensors is AllReduce of each tensor, all in one go. A result has the shape of its input.
func AllReduceTensors(ctx context.Context, c *Comm, data []*tensor.Tensor, op Operator) ([]*tensor.Tensor, error) {
	return tensorResults(ctx, c, schedule.AllReduce, data, op)
}

// AllReduceTensorsTo is AllReduceTensors with the results in dst: the memory of dst[i] is that of data[i], or apart
// from that of all other tensors. It allocates nothing once a call like it has been made.
func AllReduceTensorsTo(ctx context.Context, c *Comm, dst, data []*tensor.Tensor, op Operator) error {
	return doTensors(ctx, c, schedule.AllReduce, dst, data, op, false)
}

// AllReduceTensorsInPlace is AllReduceTensors with the results in data.
func AllReduceTensorsInPlace(ctx context.Context, c *Comm, data []*tensor.Tensor, op Operator) error {
	return doTensors(ctx, c, schedule.AllReduce, data, data, op, false)
}

// ReduceScatterTensors is ReduceScatter of each tensor, all in one go. Each has one dimension, n, and its result one of
// ceil(n/G).
func ReduceScatterTensors(ctx context.Context, c *Comm, data []*tensor.Tensor, op Operator) ([]*tensor.Tensor, error) {
	return tensorResults(ctx, c, schedule.ReduceScatter, data, op)
}

// ReduceScatterTensorsTo is ReduceScatterTensors with the results in dst: the memory of dst[i] is its own place in
// that of data[i], or apart from that of all other tensors. It allocates nothing once a call like it has been made.
func ReduceScatterTensorsTo(ctx context.Context, c *Comm, dst, data []*tensor.Tensor, op Operator) error {
	return doTensors(ctx, c, schedule.ReduceScatter, dst, data, op, false)
}

// AllGatherTensors is AllGather of each tensor, all in one go. The result of a shape (a, b) has the shape (G, a, b).
func AllGatherTensors(ctx context.Context, c *Comm, data []*tensor.Tensor) ([]*tensor.Tensor, error) {
	return tensorResults(ctx, c, schedule.AllGather, data, 0)
}

// AllGatherTensorsTo is AllGatherTensors with the results in dst: the memory of dst[i] has that of data[i] in its own
// place, or is apart from that of all other tensors. It allocates nothing once a call like it has been made.
func AllGatherTensorsTo(ctx context.Context, c *Comm, dst, data []*tensor.Tensor) error {
	return doTensors(ctx, c, schedule.AllGather, dst, data, 0, false)
}
