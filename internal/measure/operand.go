package measure

import (
	"context"
	"errors"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Operand is what one replica calls a collective on.
type Operand struct {
	Collective    Collective
	Place         Place
	op            gcl.Operator
	root          int
	input, result *tensor.Tensor // in place: one is the other or its place in it
	batch         *gcl.Batch     // nil: calls are made one by one
}

// Operand lays out a call with count elements in a replica's two buffers. A buffer that only the root has is there on
// all replicas: it may be.
func (s *Settings) Operand(c Collective, p Place, count int, comm *gcl.Comm, b *Buffers) (Operand, error) {
	n, rank, size := comm.Size(), comm.Rank(), s.DType.Size()
	inputs, results := c.lengths(count, n)
	first, second := 0, 0 // where the two begin, in elements
	from := b.first
	if p == InPlace {
		from = b.second
		switch own := min(rank*count, len(b.second)/size-count); {
		case inputs > results:
			second = own
		case inputs < results:
			first = own
		}
	}
	o := Operand{Collective: c, Place: p, op: s.Op, root: s.Root}
	view := func(h schedule.Holding, buffer []byte, at, elements int) (*tensor.Tensor, error) {
		return tensor.View(s.DType, c.shape(h, elements, max(inputs, results), n), buffer[at*size:][:elements*size])
	}
	var err1, err2 error
	o.input, err1 = view(c.Contract().Input, from, first, inputs)
	o.result, err2 = view(c.Contract().Output, b.second, second, results)
	return o, errors.Join(err1, err2)
}

// shape is that of the tensor in a buffer: a row for each replica where a collective on tensors wants it, or else one
// dimension.
func (c Collective) shape(h schedule.Holding, elements, larger, n int) tensor.Shape {
	contract := c.Contract()
	if h == schedule.Blocks || h != schedule.Own && (contract.Input == schedule.Own || contract.Deals()) {
		return tensor.Shape{n, larger / n}
	}
	return tensor.Shape{elements}
}

// combine is the operator of the call, or 0 where nothing is reduced.
func (o *Operand) combine() gcl.Operator {
	if o.Collective.Reduces() {
		return o.op
	}
	return 0
}

// from is the root of the call, or 0 where it has none.
func (o *Operand) from() int {
	if o.Collective.Rooted() {
		return o.root
	}
	return 0
}

// Together has the calls made by a Batch.
func (o *Operand) Together(comm *gcl.Comm) {
	o.batch = comm.Batch(schedule.Collective(o.Collective), o.combine(), o.from())
	o.batch.AppendTensor(o.result, o.input)
}

// Call carries out the collective, in a form that allocates nothing.
func (o *Operand) Call(ctx context.Context, c *gcl.Comm) error {
	if o.batch != nil {
		return o.batch.Run(ctx)
	}
	return c.Do(ctx, schedule.Collective(o.Collective), o.result, o.input, o.combine(), o.from())
}

// Clear makes the input of an in-place reduction zeros, since real data would grow with each call.
func (o *Operand) Clear() {
	if o.Place == InPlace && o.Collective.Reduces() {
		clear(o.input.Bytes())
	}
}

// prepare spoils the result and fills the input.
func (o *Operand) prepare(p *pattern, comm *gcl.Comm) {
	rank, size := comm.Rank(), p.dtype.Size()
	o.each(p, comm, func(got, want []byte, first int) { spoil(got, want, p.dtype, first) })
	if o.Collective.Contract().Input == schedule.AtRoot && rank != o.root {
		if o.Place == OutOfPlace { // not read: any values do
			fill(o.input.Bytes(), p.inputs[rank], size, 0)
		}
		return
	}
	fill(o.input.Bytes(), p.inputs[rank], size, 0)
}

// rewrite writes values into the input of which few are those of the turn before. A replica that has no input writes
// nothing.
func (o *Operand) rewrite(p *pattern, comm *gcl.Comm, turn int) {
	if o.Collective.Contract().Input == schedule.AtRoot && comm.Rank() != o.root {
		return
	}
	fill(o.input.Bytes(), p.inputs[comm.Rank()], p.dtype.Size(), turn)
}

// each calls do for every part of the result, of which a replica other than the root may have none: with the block that
// the part must be like, the part beginning with element first of it.
func (o *Operand) each(p *pattern, comm *gcl.Comm, do func(got, want []byte, first int)) {
	rank, size, rest := comm.Rank(), p.dtype.Size(), o.result.Bytes()
	for _, part := range oracle.Parts(schedule.Collective(o.Collective), comm.Size(), rank, o.root, o.input.Len()) {
		if part.Count == 0 {
			continue
		}
		n := part.Count * size
		do(rest[:n], p.block(part.From, rank), part.First)
		rest = rest[n:]
	}
}

// check counts the wrong elements of the result. where is the first of them.
func (o *Operand) check(p *pattern, comm *gcl.Comm) (wrong, where int) {
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
