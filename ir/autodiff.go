package ir

import (
	"errors"
	"fmt"
	"slices"
)

// GradInfo is the gradient of a graph: a graph of its own, and what its inputs and outputs are.
type GradInfo struct {
	// Graph is the gradient's graph. Its first inputs are Grads, and the others stand for the tensors Needs of the
	// forward graph. It has an output for each of Inputs, and no operations that lead to none.
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
	if i == nil || len(i.needed) != len(i.Needs) || forward == nil || forward.parent == nil { // after an error
		return by
	}
	for k, t := range i.Needs {
		by[i.needed[k]] = forward.export(t)
	}
	return by
}

// Input returns the input of Graph that stands for a tensor of the forward graph, one of Needs; nil if the gradient
// needs no such tensor.
func (i *GradInfo) Input(need *Tensor) *Tensor {
	if i == nil || len(i.needed) != len(i.Needs) { // after an error
		return nil
	}
	if k := slices.Index(i.Needs, need); k >= 0 {
		return i.needed[k]
	}
	return nil
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
// through calls, of which it builds the gradient of the called graph, and loops, whose turns it computes again one by
// one from the last to the first, with what the loop has kept of every turn. Errors, which stick: an operation without
// a gradient on the way, one that changes tensors in place, a choice.
func Autodiff(g *Graph, options ...AutodiffOption) *GradInfo {
	d := &differ{pos: caller(""), known: map[*Graph]*GradInfo{}}
	for _, o := range options {
		if o != nil {
			o(d)
		}
	}
	if g == nil {
		return &GradInfo{}
	}
	g = g.orNone()
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
	info.Graph.gradient = info
	b := &back{
		differ: d, info: info, graph: info.Graph, varies: g.varies(info.Inputs),
		grads: map[*Tensor]*Tensor{}, stands: map[*Tensor]*Tensor{}, usedAt: map[*Tensor]int{},
	}
	for _, t := range g.outputs {
		if t.failed() || !t.sp.DType.IsFloat() {
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

// checkChanges makes it an error if a graph changes in place a tensor that has a gradient, or one that a gradient
// needs as it was before.
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
				b.fail(g.program, g, n.op.Name(), n.pos,
					fmt.Errorf("autodiff: it changes %v in place, on the way of a gradient", n.in[i]))
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
		case t != nil && t.failed(): // which is an error already
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
		if len(n.modifies) == 0 && len(n.orderKeys()) == 0 && !n.beside() &&
			!slices.ContainsFunc(n.out, func(t *Tensor) bool {
				return used[t]
			}) {
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
