package main

import (
	"context"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/tensor"
)

// operand is what one replica calls a collective on.
type operand[T tensor.Element] struct {
	collective    collective
	place         place
	op            gcl.Operator
	root          int
	input, result []T // in place: one is the other or its place in it
}

// newOperand lays out a call with count elements in a replica's two buffers.
func newOperand[T tensor.Element](c collective, p place, count int, comm *gcl.Comm, first, second []T) operand[T] {
	n, rank := comm.Size(), comm.Rank()
	input, result := c.lengths(count, n)
	o := operand[T]{collective: c, place: p, input: first[:input], result: second[:result]}
	if p == inPlace {
		o.input, o.result = second[:input], second[:result]
		switch c {
		case reduceScatter:
			o.result = second[rank*count : (rank+1)*count]
		case allGather:
			o.input = second[rank*count : (rank+1)*count]
		}
	}
	return o
}

// call carries out the collective, in a form that allocates nothing.
func (o *operand[T]) call(ctx context.Context, c *gcl.Comm) error {
	switch o.collective {
	case allReduce:
		if o.place == inPlace {
			return gcl.AllReduceInPlace(ctx, c, o.result, o.op)
		}
		return gcl.AllReduceTo(ctx, c, o.result, o.input, o.op)
	case reduceScatter:
		return gcl.ReduceScatterTo(ctx, c, o.result, o.input, o.op)
	case allGather:
		return gcl.AllGatherTo(ctx, c, o.result, o.input)
	case allToAll:
		if o.place == inPlace {
			return gcl.AllToAllInPlace(ctx, c, o.result)
		}
		return gcl.AllToAllTo(ctx, c, o.result, o.input)
	default:
		if o.place == inPlace {
			return gcl.BroadcastInPlace(ctx, c, o.result, o.root)
		}
		return gcl.BroadcastTo(ctx, c, o.result, o.input, o.root)
	}
}

// prepare spoils the result and fills the input.
func (o *operand[T]) prepare(p *pattern, comm *gcl.Comm) {
	rank, size := comm.Rank(), p.dtype.Size()
	o.each(p, comm, func(got, want []byte, first int) { spoil(got, want, p.dtype, first) })
	if o.collective == broadcast && rank != o.root {
		if o.place == outOfPlace { // not read: any values do
			fill(tensor.Bytes(o.input), p.inputs[rank], size, 0)
		}
		return
	}
	fill(tensor.Bytes(o.input), p.inputs[rank], size, 0)
}

// each calls do for every part of the result: with the block that the part must be like, the part beginning with
// element first of it.
func (o *operand[T]) each(p *pattern, comm *gcl.Comm, do func(got, want []byte, first int)) {
	rank, size, rest := comm.Rank(), p.dtype.Size(), tensor.Bytes(o.result)
	elements := len(tensor.Bytes(o.input)) / size
	for _, part := range oracle.Parts(o.collective.of(), comm.Size(), rank, o.root, elements) {
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
