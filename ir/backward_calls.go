package ir

import (
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/tensor"
)

// call builds the gradient of a call: a call of the gradient.
func (b *back) call(n *node, called *Graph) {
	var ends []end
	var starts []cell
	var endGrads []*Tensor
	for _, v := range b.flow.changes[n] {
		if b.grads[v] == nil {
			continue
		}
		c := v.cell
		if c.buffer == nil {
			c.memory = called.inputs[n.modified(c.memory)]
		}
		ends, endGrads = append(ends, end{c, b.readers[v]}), append(endGrads, b.grads[v])
	}
	for _, v := range b.flow.entries[n] {
		if b.varies[v] {
			starts = append(starts, v.cell)
		}
	}
	inner := b.differ.graph(called, ends, starts)
	if !b.mayKeep(n, called, inner) {
		return
	}
	info := &CallInfo{graph: called, parent: n.graph, node: n, inputs: n.in, outputs: n.out[:len(called.outputs)],
		what: "call", pos: n.pos}
	by := map[*Tensor]*Tensor{}
	for i, t := range inner.Needs {
		v := made(info.export(t))
		if k := slices.Index(called.inputs, t); k >= 0 {
			v = b.flow.in[n][k]
		}
		by[inner.needed[i]] = b.need(v)
	}
	for i, in := range inner.Grads {
		if in != nil {
			by[in] = b.grad(made(n.out[i]))
		}
	}
	for i, in := range inner.endGrads {
		by[in] = endGrads[i]
	}
	out := b.graph.CallWithInfo(inner.Graph, by).Outputs()
	for i, grad := range out {
		b.addInner(n, called, inner, i, grad)
	}
}

// mayKeep reports whether the gradient may keep what that of a called graph needs, and fails otherwise.
func (b *back) mayKeep(n *node, called *Graph, inner *GradInfo) bool {
	kept := len(b.info.Needs) + len(inner.Needs)
	if kept <= b.mostKept {
		return true
	}
	counts := stepCounts{}
	counts.of(called)
	chain := append([]string{plainName(called.name)}, counts.chain(called)...)
	b.refuse(n, fmt.Errorf("the gradient of %s needs %d tensors with those of each call, at most %d: it calls %s",
		plainName(b.of.name), kept, b.mostKept, strings.Join(chain, ", which calls ")))
	return false
}

// addInner adds output i of the gradient of what a node calls.
func (b *back) addInner(n *node, called *Graph, inner *GradInfo, i int, grad *Tensor) {
	if i < len(inner.Inputs) {
		b.add(b.flow.in[n][slices.Index(called.inputs, inner.Inputs[i])], grad, n)
		return
	}
	if i -= len(inner.Inputs); i >= len(inner.starts) {
		return
	}
	for _, v := range b.flow.entries[n] {
		if v.cell == inner.starts[i] {
			from := n
			if i < len(inner.readers) && inner.readers[i] != nil {
				from = inner.readers[i]
			}
			b.add(v, grad, from)
		}
	}
}

// modified is the input by which a node changes a memory.
func (n *node) modified(memory *Tensor) int {
	return n.modifies[slices.IndexFunc(n.modifies, func(i int) bool { return n.in[i].memory() == memory })]
}

// effect is an operation of a graph, or of one that it calls, that has an effect that cannot be had again; or nil.
func (g *Graph) effect() *node {
	return g.find(func(n *node) bool {
		_, has := n.op.(Ordered)
		_, again := n.op.(Repeatable)
		return has && !again
	})
}

// loopEnds are what a loop changes from turn to turn that leads to a gradient: inputs that stay, and entries of
// buffers.
func (b *back) loopEnds(n *node, op *repeatOp) []end {
	g, changed := op.graph, op.graph.changes()
	f := b.differ.flow(g)
	var could, ends []end
	for i, t := range g.inputs {
		if i >= len(g.outputs) && t.sp.DType.IsFloat() && (changed[t] || n.changesInput(i)) {
			reader := n
			v := value{cell{memory: n.in[i].memory()}, n}
			if b.grads[v] != nil && n.changesInput(i) {
				ends, reader = append(ends, end{cell{memory: t}, b.readers[v]}), nil
			}
			if reader != nil {
				could = append(could, end{cell{memory: t}, n})
			}
		}
	}
	for _, v := range b.flow.changes[n] {
		switch {
		case v.buffer == nil:
		case b.grads[v] != nil:
			ends = append(ends, end{v.cell, b.readers[v]})
		default:
			could = append(could, end{v.cell, n})
		}
	}
	for { // until no more of what a turn leaves leads to what a later turn gives
		var to []value
		for _, t := range g.outputs {
			to = append(to, f.end(cell{memory: t.memory()}))
		}
		for _, e := range ends {
			to = append(to, f.end(e.cell))
		}
		leads := f.leads(g, to)
		i := slices.IndexFunc(could, func(e end) bool { return leads[value{cell: e.cell}] })
		if i < 0 {
			return ends
		}
		ends, could = append(ends, could[i]), slices.Delete(could, i, i+1)
	}
}

// repeat builds the gradient of a loop: a loop over the turns from the last to the first. Each turn takes what the
// inputs were that change from turn to turn, computes the body again, and calls its gradient. Where the body cannot be
// computed again it takes all that the gradient needs, which the loop then keeps of every turn. It carries the
// gradients of what the body changes from turn to turn, the sums of those of what stays, and the number of the turn.
func (b *back) repeat(n *node, op *repeatOp) {
	p, carried := b.graph.program, len(op.graph.outputs)
	ends := b.loopEnds(n, op)
	var starts []cell
	for _, v := range b.flow.entries[n] {
		if isEnd(ends, v.cell) || b.varies[v] {
			starts = append(starts, v.cell)
		}
	}
	inner := b.differ.graph(op.graph, ends, starts)
	if op.graph.effect() != nil && !b.mayKeep(n, op.graph, inner) {
		return
	}
	body := p.newGraph(op.graph.name + "_turn_back")
	var args, outputs []*Tensor                               // of the loop, and what the body returns
	input := func(s Spec, name string, arg *Tensor) *Tensor { // of the body
		t := body.tensor(s.clone())
		t.name = name
		body.inputs, args = append(body.inputs, t), append(args, arg)
		return t
	}
	after := func(v value) *Tensor { // the gradient of what the loop leaves
		if b.grads[v] != nil {
			return b.grads[v]
		}
		return b.zeros(b.spec(v.cell))
	}
	gradOf := map[cell]*Tensor{} // the input of this body that the gradient of what the forward body begins with is
	var sums []cell              // those that a turn adds to
	for i, t := range op.graph.inputs {
		c := cell{memory: t}
		switch {
		case !t.sp.DType.IsFloat():
		case i < carried:
			gradOf[c] = input(t.sp, "gradient", b.grad(made(n.out[i])))
		case isEnd(ends, c) && n.changesInput(i):
			gradOf[c] = input(t.sp, "gradient", after(value{cell{memory: n.in[i].memory()}, n}))
		case isEnd(ends, c):
			gradOf[c] = input(t.sp, "gradient", b.zeros(t.sp))
		default:
			sums = append(sums, c)
			gradOf[c] = input(t.sp, "sum", b.zeros(t.sp))
		}
	}
	for _, c := range starts {
		if isEnd(ends, c) {
			gradOf[c] = input(b.spec(c), "gradient", after(value{c, n}))
			continue
		}
		sums = append(sums, c)
		gradOf[c] = input(b.spec(c), "sum", b.zeros(b.spec(c)))
	}
	last := tensor.Scalar(int32(op.count - 1))
	turn := input(SpecOf(last), "turn", b.constant(last))
	changed := op.graph.changes()
	before := func(t *Tensor) *Tensor { // what a tensor of the forward body was in the turn
		i := slices.Index(op.graph.inputs, t)
		if i >= carried && !changed[t] {
			return input(t.sp, t.name, b.need(b.flow.in[n][i]))
		}
		kept := n.history(t, op.count)
		history := input(kept.sp, t.name, b.need(made(kept)))
		return apply(turnOp{}, body, b.pos, []*Tensor{history, turn})[0]
	}
	by := map[*Tensor]*Tensor{}
	if op.graph.effect() == nil {
		var forward []*Tensor
		for _, t := range op.graph.inputs {
			forward = append(forward, before(t))
		}
		by = inner.By(body.CallWithInfo(op.graph, nil, forward...))
	} else {
		for k, t := range inner.Needs {
			by[inner.needed[k]] = before(t)
		}
	}
	for i, in := range inner.Grads {
		if in != nil {
			by[in] = gradOf[cell{memory: op.graph.inputs[i]}]
		}
	}
	for i, in := range inner.endGrads {
		by[in] = gradOf[ends[i].cell]
	}
	grads := body.CallWithInfo(inner.Graph, by).Outputs()
	for k, c := range inner.outputs() {
		grad := body.broken()
		if k < len(grads) {
			grad = grads[k]
		}
		if slices.Contains(sums, c) {
			grad = apply(sumOp{}, body, b.pos, []*Tensor{gradOf[c], grad})[0]
		}
		outputs = append(outputs, grad)
	}
	outputs = append(outputs, apply(beforeOp{}, body, b.pos, []*Tensor{turn})[0])
	body.outputs, body.built = outputs, true
	for k, grad := range b.graph.Repeat(body, op.count, args...) {
		b.addInner(n, op.graph, inner, k, grad)
	}
}

// isEnd reports whether a cell is among some ends.
func isEnd(ends []end, c cell) bool {
	return slices.ContainsFunc(ends, func(e end) bool { return e.cell == c })
}

// outputs are what the outputs of the gradient are gradients of.
func (i *GradInfo) outputs() []cell {
	var out []cell
	for _, t := range i.Inputs {
		out = append(out, cell{memory: t})
	}
	return append(out, i.starts...)
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
	if i, is := n.exportAt[t]; is {
		return n.out[first+i]
	}
	if n.exportAt == nil {
		n.exportAt = map[*Tensor]int{}
	}
	n.exportAt[t] = len(n.exports)
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
	if _, is := c.node.op.(carrying); is {
		c.parent.refuse(c.what, caller(""), fmt.Errorf("the gradient of %s is that of one turn: put the loop into a "+
			"graph, and use its gradient", c.calledName()))
		return c.parent.broken()
	}
	if p, err := c.GraphToParent(t); err == nil {
		return p
	}
	if _, is := c.node.op.(*callOp); !is || t.graph != c.graph {
		c.parent.refuse(c.what, caller(""),
			fmt.Errorf("%v is no tensor of %s that a %s can give out", t, c.calledName(), c.what))
		return c.parent.broken()
	}
	return c.node.exported(t, t.sp.clone())
}

// versionOf is what has made the version of the tensor of the parent that export returns: of an input the one that the
// call was given.
func (c *CallInfo) versionOf(t *Tensor) *node {
	if i := slices.Index(c.graph.inputs, t); i >= 0 && c.node != nil {
		return c.parent.changedBy(c.inputs[i].memory(), c.node.index)
	}
	return nil
}
