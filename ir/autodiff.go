package ir

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/tensor"
)

// GradInfo is the gradient of a graph: a graph of its own, and what its inputs and outputs are.
type GradInfo struct {
	// Graph is the gradient's graph. Its first inputs are Grads, and the others stand for the tensors Needs of the forward
	// graph. It has an output for each of Inputs, and no operations that lead to none.
	Graph *Graph

	Grads  []*Tensor // inputs of Graph: the gradients of the forward graph's outputs; nil of one that is no float
	Needs  []*Tensor // tensors of the forward graph
	Inputs []*Tensor // inputs of the forward graph, in its order: those of ForInputs, else all that are floats

	forward *Graph
	needed  []*Tensor // inputs of Graph that stand for Needs
}

// By returns the tensors to call Graph with, but for the gradients: for each input that stands for one of Needs, that
// tensor as the call of the forward graph has it, made known to the parent. The caller adds one for each of Grads, and
// gives it to CallWithInfo.
func (i *GradInfo) By(forward *CallInfo) map[*Tensor]*Tensor {
	by := map[*Tensor]*Tensor{}
	for k, t := range i.Needs {
		by[i.needed[k]] = forward.export(t)
	}
	return by
}

// AutodiffOption says how gradients are built.
type AutodiffOption func(*differ)

// IdenticalLosses says that every replica computes the same loss, of which there is one. Without it each replica has a
// loss of its own, and what is differentiated is their sum. It changes the gradients of collectives.
func IdenticalLosses() AutodiffOption { return func(d *differ) { d.identical = true } }

// ForInputs says which inputs of the graph gradients are wanted of: not of images or labels, as a rule. Without it they
// are built of all inputs that are floats, as they are in any case of the graphs that the graph calls. Errors, which
// stick: what is no input of the graph, an input that is no float, one that is named twice.
func ForInputs(inputs ...*Tensor) AutodiffOption {
	return func(d *differ) { d.wanted = append([]*Tensor{}, inputs...) }
}

// Autodiff builds the gradient of a complete graph: the gradients of its inputs, given those of its outputs. It goes
// through calls, of which it builds the gradient of the called graph, and loops, whose turns it computes again one by one
// from the last to the first, with what the loop has kept of every turn. Errors, which stick: an operation without a
// gradient on the way, one that changes tensors in place, a choice.
func Autodiff(g *Graph, options ...AutodiffOption) *GradInfo {
	d := &differ{pos: caller(""), known: map[*Graph]*GradInfo{}}
	for _, o := range options {
		if o != nil {
			o(d)
		}
	}
	d.outer = g
	return d.graph(g)
}

// differ builds gradients.
type differ struct {
	pos       Position
	identical bool
	outer     *Graph    // that Autodiff is called for
	wanted    []*Tensor // inputs of outer; nil: all that are floats
	known     map[*Graph]*GradInfo
}

func (d *differ) fail(p *Program, g *Graph, op string, pos Position, err error) {
	p.fail(&BuildError{Op: op, Graph: g.name, Position: pos, Err: err})
}

// graph builds the gradient of a graph, once.
func (d *differ) graph(g *Graph) *GradInfo {
	if g == nil {
		return &GradInfo{}
	}
	if info := d.known[g]; info != nil {
		return info
	}
	p := g.program
	info := &GradInfo{forward: g}
	d.known[g] = info
	if !g.built {
		d.fail(p, g, "autodiff", d.pos, errors.New("the graph is not complete"))
	}
	info.Inputs = d.inputs(g)
	info.Graph = p.newGraph(g.name + "_gradient")
	b := &back{
		differ: d, info: info, graph: info.Graph, varies: g.varies(info.Inputs),
		grads: map[*Tensor]*Tensor{}, stands: map[*Tensor]*Tensor{}, usedAt: map[*Tensor]int{},
	}
	for _, t := range g.outputs {
		if t.bad || !t.sp.DType.IsFloat() {
			info.Grads = append(info.Grads, nil)
			continue
		}
		in := info.Graph.tensor(t.sp)
		in.name = "gradient"
		info.Graph.inputs = append(info.Graph.inputs, in)
		info.Grads = append(info.Grads, in)
		b.add(t, in)
	}
	nodes := g.scheduled()
	for i := len(nodes) - 1; i >= 0; i-- {
		if !b.node(nodes[i]) {
			break
		}
	}
	b.checkChanges(g)
	for _, t := range info.Inputs {
		info.Graph.outputs = append(info.Graph.outputs, b.grad(t))
	}
	info.Graph.built = true
	info.prune()
	return info
}

// checkChanges makes it an error if a graph changes in place a tensor that has a gradient, or one that a gradient needs as
// it was before.
func (b *back) checkChanges(g *Graph) {
	first := map[*Tensor]int{} // by memory: the first node after which it must not change
	for t, at := range b.usedAt {
		if before, is := first[t.memory()]; !is || at < before {
			first[t.memory()] = at
		}
	}
	for t := range b.grads {
		first[t.memory()] = -1
	}
	for _, n := range g.nodes {
		for _, i := range n.modifies {
			if at, is := first[n.in[i].memory()]; is && n.index > at {
				b.fail(g.program, g, n.op.Name(), n.pos, fmt.Errorf("autodiff: it changes %v in place, on the way of a gradient", n.in[i]))
				return
			}
		}
	}
}

// inputs are those of a graph whose gradients are built.
func (d *differ) inputs(g *Graph) []*Tensor {
	var out []*Tensor
	for _, t := range g.inputs {
		if t.sp.DType.IsFloat() && (g != d.outer || d.wanted == nil || slices.Contains(d.wanted, t)) {
			out = append(out, t)
		}
	}
	if g != d.outer {
		return out
	}
	for i, t := range d.wanted {
		var err error
		switch {
		case t != nil && t.bad: // which is an error already
		case !slices.Contains(g.inputs, t):
			err = fmt.Errorf("for inputs: %v is no input of the graph", t)
		case !t.sp.DType.IsFloat():
			err = fmt.Errorf("for inputs: %v is of %v, want floats", t, t.sp.DType)
		case slices.Contains(d.wanted[:i], t):
			err = fmt.Errorf("for inputs: %v is there twice", t)
		}
		if err != nil {
			d.fail(g.program, g, "autodiff", d.pos, err)
		}
	}
	return out
}

// varies are the tensors of a graph that depend on some of its inputs.
func (g *Graph) varies(inputs []*Tensor) map[*Tensor]bool {
	out := map[*Tensor]bool{}
	for _, t := range inputs {
		out[t] = true
	}
	for _, n := range g.nodes { // as they were built, which is after what they need
		if slices.ContainsFunc(n.in, func(t *Tensor) bool { return out[t] }) {
			for _, t := range n.out {
				out[t] = true
			}
		}
	}
	return out
}

// prune takes from the gradient's graph the operations that lead to no output and have no other effect, such as a
// product for the input of an operation that no gradient is wanted of, and then the inputs that nothing needs.
func (i *GradInfo) prune() {
	g, used := i.Graph, map[*Tensor]bool{}
	for _, t := range g.outputs {
		used[t] = true
	}
	var kept []*node // last first
	for _, n := range slices.Backward(g.nodes) {
		if len(n.modifies) == 0 && len(n.orderKeys()) == 0 && !slices.ContainsFunc(n.out, func(t *Tensor) bool { return used[t] }) {
			continue
		}
		kept = append(kept, n)
		for _, t := range n.in {
			used[t] = true
		}
	}
	slices.Reverse(kept)
	for k, n := range kept {
		n.index = k
	}
	g.nodes, g.order = kept, nil
	inputs := g.inputs[:len(g.inputs)-len(i.needed)]
	var needs, needed []*Tensor
	for k, t := range i.needed {
		if used[t] {
			needs, needed, inputs = append(needs, i.Needs[k]), append(needed, t), append(inputs, t)
		}
	}
	g.inputs, i.Needs, i.needed = inputs, needs, needed
}

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
	if grad.bad || grad.sp.Equal(t.sp) {
		if sum := b.grads[t]; sum != nil {
			grad = apply(sumOp{}, b.graph, b.pos, []*Tensor{sum, grad})[0]
		}
		b.grads[t] = grad
		return
	}
	b.fail(b.graph.program, t.graph, "autodiff", b.pos, fmt.Errorf("the gradient of %v, which is %v, is %v", t, t.sp, grad.sp))
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
	if t.bad {
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
				return failed(fmt.Errorf("%v is given out beside the outputs, for another gradient: there is no gradient of that", n.out[i]))
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

// call builds the gradient of a call: a call of the gradient.
func (b *back) call(n *node, called *Graph) {
	inner := b.differ.graph(called)
	info := &CallInfo{graph: called, parent: n.graph, node: n, inputs: n.in, outputs: n.out[:len(called.outputs)], what: "call", pos: n.pos}
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
			return fmt.Errorf("graph %s changes in place its input %v, which stays from turn to turn: what it was is not kept", o.graph.name, t)
		}
	}
	if n := o.graph.effect(); n != nil {
		return fmt.Errorf("%s of graph %s, built at %v, cannot be done again: the gradient of a loop computes its turns anew", n.op.Name(), n.graph.name, n.pos)
	}
	return nil
}

// effect is an operation of a graph, or of one that it calls, that has an effect that cannot be had again; or nil.
func (g *Graph) effect() *node {
	for _, n := range g.nodes {
		if _, is := n.op.(Ordered); is {
			if _, again := n.op.(Repeatable); !again {
				return n
			}
		}
		for _, called := range n.calls() {
			if found := called.effect(); found != nil {
				return found
			}
		}
	}
	return nil
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

// Backward is what an operation builds its gradient with.
type Backward struct {
	back *back
	node *node
}

// Graph is the gradient's graph.
func (b *Backward) Graph() *Graph { return b.back.graph }

// In returns input i of the operation as a tensor of the gradient's graph.
func (b *Backward) In(i int) *Tensor { return b.back.need(b.node.in[i]) }

// Out returns output i of the operation as a tensor of the gradient's graph.
func (b *Backward) Out(i int) *Tensor { return b.back.need(b.node.out[i]) }

// Grad returns the gradient of output i, a tensor of the gradient's graph: zeros if none flows back.
func (b *Backward) Grad(i int) *Tensor { return b.back.grad(b.node.out[i]) }

// Inputs returns the number of inputs of the operation.
func (b *Backward) Inputs() int { return len(b.node.in) }

// Of returns the same for input i and output i alone, as if they were the only ones: of an operation that does one thing
// to several tensors.
func (b *Backward) Of(i int) *Backward {
	one := *b.node
	one.in, one.out = b.node.in[i:i+1], b.node.out[i:i+1]
	return &Backward{back: b.back, node: &one}
}

// InSpec returns the spec of input i, which needs no tensor.
func (b *Backward) InSpec(i int) Spec { return b.node.in[i].Spec() }

// Fail makes it an error, which sticks, that the operation has no gradient in this case. The error has its name and line.
func (b *Backward) Fail(err error) {
	n := b.node
	b.back.fail(b.back.graph.program, n.graph, n.op.Name(), n.pos, fmt.Errorf("autodiff: %w", err))
}

// IdenticalLosses reports whether the gradient is built with that option.
func (b *Backward) IdenticalLosses() bool { return b.back.identical }
