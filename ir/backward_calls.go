package ir

import (
	"fmt"
	"slices"

	"gogcl.dev/tensor"
)

// call builds the gradient of a call: a call of the gradient.
func (b *back) call(n *node, called *Graph) {
	inner := b.differ.graph(called)
	info := &CallInfo{graph: called, parent: n.graph, node: n, inputs: n.in, outputs: n.out[:len(called.outputs)],
		what: "call", pos: n.pos}
	by := map[*Tensor]*Tensor{}
	for i, t := range inner.Needs {
		by[inner.needed[i]] = b.need(info.export(t))
	}
	for i, in := range inner.Grads {
		if in != nil {
			by[in] = b.grad(n.out[i])
		}
	}
	out := b.graph.CallWithInfo(inner.Graph, by).Outputs()
	for i, t := range inner.Inputs {
		if i < len(out) {
			b.add(n.in[slices.Index(called.inputs, t)], out[i])
		}
	}
}

// repeatable returns an error if the turns of a loop cannot be computed again.
func (o *repeatOp) repeatable() error {
	changed := o.graph.changes()
	for _, t := range o.graph.inputs[len(o.graph.outputs):] {
		if changed[t] {
			return fmt.Errorf("graph %s changes in place its input %v, which stays from turn to turn: what it was is "+
				"not kept", o.graph.name, t)
		}
	}
	if n := o.graph.effect(); n != nil {
		return fmt.Errorf("%s of graph %s, built at %v, cannot be done again: the gradient of a loop computes its "+
			"turns anew", n.op.Name(), n.graph.name, n.pos)
	}
	return nil
}

// effect is an operation of a graph, or of one that it calls, that has an effect that cannot be had again; or nil.
func (g *Graph) effect() *node {
	return g.find(func(n *node) bool {
		_, has := n.op.(Ordered)
		_, again := n.op.(Repeatable)
		return has && !again
	})
}

// repeat builds the gradient of a loop: a loop over the turns from the last to the first. Each turn takes what the
// carried inputs were, computes the body again, and calls its gradient. It carries the gradients of what the body
// carries, the sums of those of what stays, and the number of the turn.
func (b *back) repeat(n *node, op *repeatOp) {
	p, carried := b.graph.program, len(op.graph.outputs)
	inner := b.differ.graph(op.graph)
	body := p.newGraph(op.graph.name + "_turn_back")
	var args, outputs []*Tensor                               // of the loop, and what the body returns
	input := func(s Spec, name string, arg *Tensor) *Tensor { // of the body
		t := body.tensor(s.clone())
		t.name = name
		body.inputs, args = append(body.inputs, t), append(args, arg)
		return t
	}
	gradOf := map[int]*Tensor{} // by input of the forward body: the input of this one that its gradient goes on from
	for i, t := range op.graph.inputs {
		switch {
		case !t.sp.DType.IsFloat():
		case i < carried:
			gradOf[i] = input(t.sp, "gradient", b.grad(n.out[i]))
		default:
			gradOf[i] = input(t.sp, "sum", b.zeros(t.sp))
		}
	}
	last := tensor.Scalar(int32(op.count - 1))
	turn := input(SpecOf(last), "turn", apply(&constantOp{last}, b.graph, b.pos, nil)[0])
	var forward []*Tensor
	for i, t := range op.graph.inputs {
		if i < carried {
			kept := n.history(t, op.count)
			history := input(kept.sp, t.name, b.need(kept))
			forward = append(forward, apply(turnOp{}, body, b.pos, []*Tensor{history, turn})[0])
			continue
		}
		forward = append(forward, input(t.sp, t.name, b.need(n.in[i])))
	}
	again := body.CallWithInfo(op.graph, nil, forward...)
	by := inner.By(again)
	for i, in := range inner.Grads {
		if in != nil {
			by[in] = gradOf[i]
		}
	}
	grads := body.CallWithInfo(inner.Graph, by).Outputs()
	for k, t := range inner.Inputs {
		i, grad := slices.Index(op.graph.inputs, t), body.broken()
		if k < len(grads) {
			grad = grads[k]
		}
		if i >= carried {
			grad = apply(sumOp{}, body, b.pos, []*Tensor{gradOf[i], grad})[0]
		}
		outputs = append(outputs, grad)
	}
	outputs = append(outputs, apply(beforeOp{}, body, b.pos, []*Tensor{turn})[0])
	body.outputs, body.built = outputs, true
	out := b.graph.Repeat(body, op.count, args...)
	for k, t := range inner.Inputs {
		if k < len(out) {
			b.add(n.in[slices.Index(op.graph.inputs, t)], out[k])
		}
	}
}

// history is a tensor of the parent of a loop that holds an input that the body carries, as it is in every turn.
func (n *node) history(t *Tensor, count int) *Tensor {
	s := t.sp.clone()
	s.Shape = append(tensor.Shape{count}, s.Shape...)
	return n.exported(t, s)
}

// exported is a further output of a call.
func (n *node) exported(t *Tensor, s Spec) *Tensor {
	first := len(n.calls()[0].outputs)
	if i := slices.Index(n.exports, t); i >= 0 {
		return n.out[first+i]
	}
	out := n.graph.tensor(s)
	out.name, out.node, out.out = t.name, n, len(n.out)
	n.exports, n.out = append(n.exports, t), append(n.out, out)
	return out
}

// export is the tensor of the parent that stands for any tensor of the called graph.
func (c *CallInfo) export(t *Tensor) *Tensor {
	if c.node == nil {
		return c.parent.broken()
	}
	if p, err := c.GraphToParent(t); err == nil {
		return p
	}
	if _, is := c.node.op.(*callOp); !is || t.graph != c.graph {
		c.parent.program.fail(&BuildError{Op: c.what, Graph: c.parent.name, Position: caller(""),
			Err: fmt.Errorf("%v is no tensor of %s that a %s can give out", t, c.calledName(), c.what)})
		return c.parent.broken()
	}
	return c.node.exported(t, t.sp.clone())
}
