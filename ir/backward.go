package ir

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/tensor"
)

// Backward is what an operation builds its gradient with.
type Backward struct {
	back    *back
	node    *node
	in, out []value // versions of the node's inputs and outputs
}

// Graph is the gradient's graph.
func (b *Backward) Graph() *Graph {
	if b.none() {
		return nil
	}
	return b.back.graph
}

// none reports whether no gradient is being built.
func (b *Backward) none() bool { return b == nil || b.node == nil || b.back == nil }

// at is of a version of a list of the operation's. An i out of range makes an error stick.
func (b *Backward) at(what string, list []value, i int, of func(v value) *Tensor) *Tensor {
	if b.none() {
		return noTensor()
	}
	if i < 0 || i >= len(list) {
		b.Fail(fmt.Errorf("%s %d of an operation that has %d", what, i, len(list)))
		return b.back.graph.broken()
	}
	return of(list[i])
}

// In returns input i of the operation, as it was before the operation, as a tensor of the gradient's graph.
func (b *Backward) In(i int) *Tensor {
	return b.at("input", b.ins(), i, func(v value) *Tensor { return b.back.need(v) })
}

// Out returns output i of the operation as a tensor of the gradient's graph.
func (b *Backward) Out(i int) *Tensor {
	return b.at("output", b.outs(), i, func(v value) *Tensor { return b.back.need(v) })
}

func (b *Backward) ins() []value {
	if b.none() {
		return nil
	}
	return b.in
}

func (b *Backward) outs() []value {
	if b.none() {
		return nil
	}
	return b.out
}

// Grad returns the gradient of output i, a tensor of the gradient's graph: zeros if none flows back.
func (b *Backward) Grad(i int) *Tensor {
	return b.at("output", b.outs(), i, func(v value) *Tensor { return b.back.grad(v) })
}

// Inputs returns the number of inputs of the operation.
func (b *Backward) Inputs() int {
	if b.none() {
		return 0
	}
	return len(b.in)
}

// Of returns the same for input i and output i alone, as if they were the only ones: of an operation that does one
// thing to several tensors.
func (b *Backward) Of(i int) *Backward {
	if b.none() || i < 0 || i >= len(b.in) || i >= len(b.out) {
		return &Backward{}
	}
	return &Backward{back: b.back, node: b.node, in: b.in[i : i+1], out: b.out[i : i+1]}
}

// InSpec returns the spec of input i, which needs no tensor.
func (b *Backward) InSpec(i int) Spec {
	return b.at("input", b.ins(), i, func(v value) *Tensor { return v.memory }).Spec()
}

// Fail makes it an error, which sticks, that the operation has no gradient in this case. The error has its name and
// line.
func (b *Backward) Fail(err error) {
	if b.none() {
		return
	}
	b.back.refuse(b.node, err)
}

// IdenticalLosses reports whether the gradient is built with that option.
func (b *Backward) IdenticalLosses() bool { return !b.none() && b.back.identical }

// back is the gradient of one graph that is being built.
type back struct {
	*differ
	info    *GradInfo
	graph   *Graph
	of      *Graph            // the forward graph
	flow    *flow             // of which
	varies  map[value]bool    // versions in the forward graph that have a gradient: those that depend on info.Inputs
	grads   map[value]*Tensor // by version
	readers map[value]*node   // by the same: what reads it first; nil: it is an output only
	stands  map[value]*Tensor // inputs of the gradient's graph, by the version that they stand for
}

// add adds to the gradient of a version, if it has one, what comes from a node that reads it.
func (b *back) add(v value, grad *Tensor, from *node) {
	if grad == nil || !b.varies[v] {
		return
	}
	spec := b.spec(v.cell)
	if grad.failed() || grad.sp.Equal(spec) {
		if sum := b.grads[v]; sum != nil {
			grad = apply(sumOp{}, b.graph, b.pos, []*Tensor{sum, grad})[0]
		}
		if from != nil {
			b.readers[v] = from
		}
		b.grads[v] = grad
		return
	}
	b.of.refuse("autodiff", b.pos,
		fmt.Errorf("the gradient of %v, which is %v, is %v", v, spec, grad.sp))
}

// grad is the gradient of a version: zeros if none has come.
func (b *back) grad(v value) *Tensor {
	if b.grads[v] == nil {
		b.grads[v] = b.zeros(b.spec(v.cell))
	}
	return b.grads[v]
}

func (b *back) zeros(s Spec) *Tensor { return b.zerosIn(b.graph, s) }

// zerosIn is a constant of zeros in a graph of the gradient's.
func (b *back) zerosIn(g *Graph, s Spec) *Tensor {
	z, err := tensor.New(s.DType, s.Shape...)
	if err != nil {
		g.refuse("autodiff", b.pos, err)
		return g.broken()
	}
	return apply(&constantOp{value: z}, g, b.pos, nil)[0]
}

func (b *back) constant(t *tensor.Tensor) *Tensor {
	return apply(&constantOp{value: t}, b.graph, b.pos, nil)[0]
}

// need is the input of the gradient's graph that stands for a version in the forward graph. Constants are made anew.
func (b *back) need(v value) *Tensor {
	if s := b.stands[v]; s != nil {
		return s
	}
	if v.memory.failed() {
		return b.graph.broken()
	}
	if n := v.memory.node; n != nil {
		if c, is := n.op.(*constantOp); is {
			b.stands[v] = apply(c, b.graph, b.pos, nil)[0]
			return b.stands[v]
		}
	}
	t := b.holds(v)
	if t.failed() {
		return b.graph.broken()
	}
	in := b.graph.tensor(t.sp)
	in.name = t.name
	b.graph.inputs = append(b.graph.inputs, in)
	b.stands[v] = in
	b.info.Needs, b.info.needed = append(b.info.Needs, t), append(b.info.needed, in)
	return in
}

// holds is the tensor of the forward graph that holds a version of one when the graph has run. An input stands for what
// the caller has given.
func (b *back) holds(v value) *Tensor {
	input := v.memory.node == nil
	switch {
	case v.by == nil && input:
		return v.memory
	case v.by != b.flow.last[v.cell]:
		return b.of.keep(v, false)
	case v.by == nil:
		return v.memory
	}
	for _, t := range v.by.out {
		if t.root != nil && t.memory() == v.memory {
			return t
		}
	}
	if input {
		return b.of.keep(v, false)
	}
	return v.memory
}

// node builds the gradient of one operation. It returns false after an error.
func (b *back) node(n *node) bool {
	if !slices.ContainsFunc(b.flow.out(n), func(v value) bool { return b.grads[v] != nil }) {
		return true
	}
	failed := func(err error) bool {
		b.refuse(n, err)
		return false
	}
	if calls := n.calls(); len(calls) > 0 {
		for i := len(calls[0].outputs); i < len(n.out); i++ {
			if b.grads[made(n.out[i])] != nil {
				return failed(fmt.Errorf("%v is given out beside the outputs, for another gradient: there is no "+
					"gradient of that", n.out[i]))
			}
		}
	}
	switch op := n.op.(type) {
	case control:
		if err := op.goBack(b, n); err != nil {
			return failed(err)
		}
		return true
	case Storer:
		b.storer(n, op)
		return true
	case Differentiable:
		w := &Backward{back: b, node: n, in: b.flow.in[n]}
		for i := range n.out {
			w.out = append(w.out, b.flow.output(n, i))
		}
		grads := op.Gradient(w)
		for i, grad := range grads {
			if i < len(n.in) && n.in[i].sp.DType.IsFloat() {
				b.add(b.flow.in[n][i], grad, n)
			}
		}
		return true
	}
	return failed(errors.New("the operation has no gradient"))
}

// refuse makes it an error that sticks that a node has no gradient. If it changes something that is read, the error
// says what reads it.
func (b *back) refuse(n *node, err error) {
	err = fmt.Errorf("autodiff: %w", err)
	for _, v := range b.flow.changes[n] {
		if b.grads[v] != nil {
			err = fmt.Errorf("%w, and what it changes, %v, is read by %s", err, v, b.readerOf(v))
			break
		}
	}
	n.graph.refuse(n.op.Name(), n.pos, err)
}

// readerOf says what reads a version.
func (b *back) readerOf(v value) string {
	if n := b.readers[v]; n != nil {
		return fmt.Sprintf("%s at %v", n.op.Name(), n.pos)
	}
	return fmt.Sprintf("who calls graph %s, built at %v, of which it is an output", b.of.name, b.of.pos)
}

// String says what a cell is.
func (c cell) String() string {
	switch {
	case c.buffer == nil:
		return c.memory.String()
	case c.entry == wholeBuffer:
		return "a buffer's entry whose number is computed"
	}
	return fmt.Sprintf("entry %d of a buffer", c.entry)
}

// storer builds the gradient of a store or a load of an entry of a buffer.
func (b *back) storer(n *node, op Storer) {
	at, _, stores := op.Entry()
	c := b.cell(op)
	var row *Tensor // which entry of a whole buffer
	if c.entry == wholeBuffer {
		if at < 0 {
			row = b.need(b.flow.in[n][len(n.in)-1])
		} else {
			row = b.constant(tensor.Scalar(int64(at)))
		}
	}
	if !stores {
		grad := b.grad(b.flow.output(n, 0))
		if row != nil {
			grad = apply(rowOp{b.buffers[c.buffer].entries}, b.graph, b.pos, []*Tensor{grad, row})[0]
		}
		b.add(b.flow.entries[n][0], grad, n)
		return
	}
	grad := b.grad(value{c, n})
	if row != nil {
		b.add(b.flow.entries[n][0], apply(withoutRowOp{}, b.graph, b.pos, []*Tensor{grad, row})[0], n)
		grad = apply(turnOp{}, b.graph, b.pos, []*Tensor{grad, row})[0]
	}
	b.add(b.flow.in[n][0], grad, n)
}
