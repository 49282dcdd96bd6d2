package ir

import (
	"errors"
	"fmt"

	"gogcl.dev/tensor"
)

// Backward is what an operation builds its gradient with.
type Backward struct {
	back *back
	node *node
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

// at is tensor i of a list of the operation's. Another i makes an error stick.
func (b *Backward) at(what string, list func(n *node) []*Tensor, i int, of func(t *Tensor) *Tensor) *Tensor {
	if b.none() {
		return noTensor()
	}
	all := list(b.node)
	if i < 0 || i >= len(all) {
		b.Fail(fmt.Errorf("%s %d of an operation that has %d", what, i, len(all)))
		return b.back.graph.broken()
	}
	return of(all[i])
}

func inputsOf(n *node) []*Tensor  { return n.in }
func outputsOf(n *node) []*Tensor { return n.out }

// In returns input i of the operation as a tensor of the gradient's graph.
func (b *Backward) In(i int) *Tensor {
	return b.at("input", inputsOf, i, func(t *Tensor) *Tensor { return b.back.need(t) })
}

// Out returns output i of the operation as a tensor of the gradient's graph.
func (b *Backward) Out(i int) *Tensor {
	return b.at("output", outputsOf, i, func(t *Tensor) *Tensor { return b.back.need(t) })
}

// Grad returns the gradient of output i, a tensor of the gradient's graph: zeros if none flows back.
func (b *Backward) Grad(i int) *Tensor {
	return b.at("output", outputsOf, i, func(t *Tensor) *Tensor { return b.back.grad(t) })
}

// Inputs returns the number of inputs of the operation.
func (b *Backward) Inputs() int {
	if b.none() {
		return 0
	}
	return len(b.node.in)
}

// Of returns the same for input i and output i alone, as if they were the only ones: of an operation that does one
// thing to several tensors.
func (b *Backward) Of(i int) *Backward {
	if b.none() || i < 0 || i >= len(b.node.in) || i >= len(b.node.out) {
		return &Backward{}
	}
	one := *b.node
	one.in, one.out = b.node.in[i:i+1], b.node.out[i:i+1]
	return &Backward{back: b.back, node: &one}
}

// InSpec returns the spec of input i, which needs no tensor.
func (b *Backward) InSpec(i int) Spec {
	return b.at("input", inputsOf, i, func(t *Tensor) *Tensor { return t }).Spec()
}

// Fail makes it an error, which sticks, that the operation has no gradient in this case. The error has its name and
// line.
func (b *Backward) Fail(err error) {
	if b.none() {
		return
	}
	n := b.node
	b.back.fail(b.back.graph.program, n.graph, n.op.Name(), n.pos, fmt.Errorf("autodiff: %w", err))
}

// IdenticalLosses reports whether the gradient is built with that option.
func (b *Backward) IdenticalLosses() bool { return !b.none() && b.back.identical }

// back is the gradient of one graph that is being built.
type back struct {
	*differ
	info   *GradInfo
	graph  *Graph
	varies map[*Tensor]bool    // tensors of the forward graph that have a gradient: those that depend on info.Inputs
	grads  map[*Tensor]*Tensor // by tensor of the forward graph
	stands map[*Tensor]*Tensor // inputs of the gradient's graph, by the tensor that they stand for
	usedAt map[*Tensor]int     // by the same: the first node whose gradient needs it
	now    int                 // the node whose gradient is being built
}

// add adds to the gradient of a tensor, if it has one.
func (b *back) add(t, grad *Tensor) {
	if grad == nil || !b.varies[t] {
		return
	}
	if grad.failed() || grad.sp.Equal(t.sp) {
		if sum := b.grads[t]; sum != nil {
			grad = apply(sumOp{}, b.graph, b.pos, []*Tensor{sum, grad})[0]
		}
		b.grads[t] = grad
		return
	}
	b.fail(b.graph.program, t.graph, "autodiff", b.pos,
		fmt.Errorf("the gradient of %v, which is %v, is %v", t, t.sp, grad.sp))
}

// grad is the gradient of a tensor: zeros if none has come.
func (b *back) grad(t *Tensor) *Tensor {
	if b.grads[t] == nil {
		b.grads[t] = b.zeros(t.sp)
	}
	return b.grads[t]
}

func (b *back) zeros(s Spec) *Tensor {
	z, err := tensor.New(s.DType, s.Shape...)
	if err != nil {
		b.fail(b.graph.program, b.graph, "autodiff", b.pos, err)
		return b.graph.broken()
	}
	return apply(&constantOp{z}, b.graph, b.pos, nil)[0]
}

// need is the input of the gradient's graph that stands for a tensor of the forward graph. Constants are made anew.
func (b *back) need(t *Tensor) *Tensor {
	if at, is := b.usedAt[t]; !is || b.now < at {
		b.usedAt[t] = b.now
	}
	if s := b.stands[t]; s != nil {
		return s
	}
	if t.failed() {
		return b.graph.broken()
	}
	if t.node != nil {
		if c, is := t.node.op.(*constantOp); is {
			b.stands[t] = apply(c, b.graph, b.pos, nil)[0]
			return b.stands[t]
		}
	}
	in := b.graph.tensor(t.sp)
	in.name = t.name
	b.graph.inputs = append(b.graph.inputs, in)
	b.stands[t] = in
	b.info.Needs, b.info.needed = append(b.info.Needs, t), append(b.info.needed, in)
	return in
}

// node builds the gradient of one operation. It returns false after an error.
func (b *back) node(n *node) bool {
	flows := false
	for _, t := range n.out {
		flows = flows || b.grads[t] != nil
	}
	if !flows {
		return true
	}
	failed := func(err error) bool {
		b.fail(b.graph.program, n.graph, n.op.Name(), n.pos, fmt.Errorf("autodiff: %w", err))
		return false
	}
	b.now = n.index
	if len(n.modifies) > 0 {
		return failed(errors.New("what changes a tensor in place has no gradient"))
	}
	if calls := n.calls(); len(calls) > 0 {
		for i := len(calls[0].outputs); i < len(n.out); i++ {
			if b.grads[n.out[i]] != nil {
				return failed(fmt.Errorf("%v is given out beside the outputs, for another gradient: there is no "+
					"gradient of that", n.out[i]))
			}
		}
	}
	switch op := n.op.(type) {
	case *constantOp, *variableOp:
		return true
	case *callOp:
		b.call(n, op.graph)
		return true
	case *repeatOp:
		if err := op.repeatable(); err != nil {
			return failed(err)
		}
		b.repeat(n, op)
		return true
	case *waitOp:
		return failed(errBesideGradient)
	case *ifOp:
		return failed(errors.New("a choice has no gradient: which branch was taken is not kept"))
	case Differentiable:
		w := &Backward{back: b, node: n}
		grads := op.Gradient(w)
		for i, grad := range grads {
			if i < len(n.in) && n.in[i].sp.DType.IsFloat() {
				b.add(n.in[i], grad)
			}
		}
		return true
	}
	return failed(errors.New("the operation has no gradient"))
}
