package main

import (
	"context"
	"errors"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// operand is what one replica calls a collective on.
type operand[T tensor.Element] struct {
	collective    collective
	place         place
	op            gcl.Operator
	root          int
	input, result []T // in place: one is the other or its place in it
	src, dst      *tensor.Tensor
	batch         *gcl.Batch // nil: calls are made one by one
}

// newOperand lays out a call with count elements in a replica's two buffers. A buffer that only the root has is there
// on all replicas: it may be.
func newOperand[T tensor.Element](c collective, p place, count int, comm *gcl.Comm, first,
	second []T) (operand[T], error) {
	n, rank := comm.Size(), comm.Rank()
	input, result := c.lengths(count, n)
	o := operand[T]{collective: c, place: p, input: first[:input], result: second[:result]}
	if p == inPlace {
		o.input, o.result = second[:input], second[:result]
		switch own := second[min(rank*count, len(second)-count):][:count]; {
		case input > result:
			o.result = own
		case input < result:
			o.input = own
		}
	}
	var err1, err2 error
	o.src, err1 = tensor.FromSlice(o.input, o.shape(c.contract().Input, n)...)
	o.dst, err2 = tensor.FromSlice(o.result, o.shape(c.contract().Output, n)...)
	return o, errors.Join(err1, err2)
}

// shape is that of the tensor in a buffer: a row for each replica where a collective on tensors wants it, or else one
// dimension.
func (o *operand[T]) shape(h schedule.Holding, n int) []int {
	contract := o.collective.contract()
	rows := h == schedule.Blocks || h != schedule.Own && (contract.Input == schedule.Own || contract.Deals())
	if rows {
		return []int{n, max(len(o.input), len(o.result)) / n}
	}
	return nil
}

// combine is the operator of the call, or 0 where nothing is reduced.
func (o *operand[T]) combine() gcl.Operator {
	if o.collective.reduces() {
		return o.op
	}
	return 0
}

// from is the root of the call, or 0 where it has none.
func (o *operand[T]) from() int {
	if o.collective.rooted() {
		return o.root
	}
	return 0
}

// together has the calls made by a Batch.
func (o *operand[T]) together(comm *gcl.Comm) {
	o.batch = comm.Batch(schedule.Collective(o.collective), o.combine(), o.from())
	gcl.Append(o.batch, o.result, o.input)
}

// call carries out the collective, in a form that allocates nothing.
func (o *operand[T]) call(ctx context.Context, c *gcl.Comm) error {
	if o.batch != nil {
		return o.batch.Run(ctx)
	}
	return c.Do(ctx, schedule.Collective(o.collective), o.dst, o.src, o.combine(), o.from())
}

// prepare spoils the result and fills the input.
func (o *operand[T]) prepare(p *pattern, comm *gcl.Comm) {
	rank, size := comm.Rank(), p.dtype.Size()
	o.each(p, comm, func(got, want []byte, first int) { spoil(got, want, p.dtype, first) })
	if o.collective.contract().Input == schedule.AtRoot && rank != o.root {
		if o.place == outOfPlace { // not read: any values do
			fill(tensor.Bytes(o.input), p.inputs[rank], size, 0)
		}
		return
	}
	fill(tensor.Bytes(o.input), p.inputs[rank], size, 0)
}

// each calls do for every part of the result, of which a replica other than the root may have none: with the block that
// the part must be like, the part beginning with element first of it.
func (o *operand[T]) each(p *pattern, comm *gcl.Comm, do func(got, want []byte, first int)) {
	rank, size, rest := comm.Rank(), p.dtype.Size(), tensor.Bytes(o.result)
	elements := len(tensor.Bytes(o.input)) / size
	for _, part := range oracle.Parts(schedule.Collective(o.collective), comm.Size(), rank, o.root, elements) {
		if part.Count == 0 {
			continue
		}
		n := part.Count * size
		do(rest[:n], p.block(part.From, rank), part.First)
		rest = rest[n:]
	}
}

// check counts the wrong elements of the result. where is the first of them.
func (o *operand[T]) check(p *pattern, comm *gcl.Comm) (wrong, where int) {
	before := 0
	o.each(p, comm, func(got, want []byte, first int) {
		w, at := compare(got, want, p.dtype.Size(), first)
		if wrong == 0 {
			where = before + at
		}
		wrong += w
		before += len(got) / p.dtype.Size()
	})
	return wrong, where
}
