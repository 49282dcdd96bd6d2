package ir

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/tensor"
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
	needed  []*Tensor       // inputs of Graph that stand for Needs
	given   map[given]*node // the version that By has meant, by what has made it

	// Of a graph that is called: Graph has inputs for the gradients of ends too, as the graph leaves them, and after
	// the outputs for Inputs those for starts, as the graph finds them.
	ends     []cell // inputs that it changes, and entries of buffers that it stores
	endGrads []*Tensor
	starts   []cell  // entries of buffers that it loads
	readers  []*node // of starts: whose gradient has come
}

// By returns the tensors to call Graph with, but for the gradients: for each input that stands for one of Needs, that
// tensor as the call of the forward graph has it, made known to the parent. The caller adds one for each of Grads, and
// gives it to CallWithInfo. What has been changed in place since the forward call is kept as it was. What is changed
// between By and the call of Graph is an error of that call: ask By after the change.
func (i *GradInfo) By(forward *CallInfo) map[*Tensor]*Tensor {
	by := map[*Tensor]*Tensor{}
	if i == nil || len(i.needed) != len(i.Needs) || forward == nil || forward.parent == nil { // after an error
		return by
	}
	for k, t := range i.Needs {
		by[i.needed[k]] = i.give(i.needed[k], forward.export(t), forward.versionOf(t))
	}
	return by
}

// given is a tensor that By has returned for an input of a gradient's graph.
type given struct{ in, t *Tensor }

// give is a handle for a version of a tensor: the tensor itself, which stands for one version only.
func (i *GradInfo) give(in, t *Tensor, by *node) *Tensor {
	if t.failed() {
		return t
	}
	key := given{in, t}
	if was, is := i.given[key]; is && was != by || t.graph.changedBy(t.memory(), len(t.graph.nodes)) != by {
		return t.pin(by)
	}
	if i.given == nil {
		i.given = map[given]*node{}
	}
	i.given[key] = by
	return t
}

// checkGiven returns an error if a call of the gradient's graph would read something else than By has meant.
func (i *GradInfo) checkGiven(args []*Tensor) error {
	if i == nil {
		return nil
	}
	for k, t := range args {
		by, is := i.given[given{i.Graph.inputs[k], t}]
		if now := t.graph.changedBy(t.memory(), len(t.graph.nodes)); is && now != by {
			return fmt.Errorf("%s at %v changes %v in place after the call of graph %s that this is the gradient of: "+
				"ask GradInfo.By after the change", now.op.Name(), now.pos, t, i.forward.name)
		}
	}
	return nil
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
// through calls, of which it builds the gradient of the called graph; choices, whose gradient is a choice by the same
// condition; and loops, whose turns it computes again one by one from the last to the first, with what the loop has
// kept of every turn. It follows changes in place, whichever handle of a tensor is read after them, and what a [Storer]
// stores to where it is loaded. What the graph's caller has in its tensors and in buffers after the call has a gradient
// if it is an output. Errors, which stick: an operation without a gradient on the way, what is started beside the
// replica, more than 262,144 tensors that a gradient needs of calls. They name the operation, and where that changes a
// tensor or stores it, the one that reads it.
func Autodiff(g *Graph, options ...AutodiffOption) *GradInfo {
	d := &differ{pos: caller(""), mostKept: defaultMostKept, known: map[*Graph][]*GradInfo{}, flows: map[*Graph]*flow{},
		buffers: map[any]*buffer{}, touching: map[*Graph]*touched{}}
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
	d.findBuffers(g, map[*Graph]bool{})
	return d.graph(g, nil, nil)
}

// defaultMostKept is how many tensors the gradient of a graph with calls needs at most: each call keeps those of what
// it calls, so graphs that each call the one before twice double them. Each takes some 3 KB.
const defaultMostKept = 1 << 18

// differ builds gradients.
type differ struct {
	pos       Position
	mostKept  int
	identical bool
	outer     *Graph    // that Autodiff is called for
	wanted    []*Tensor // inputs of outer; nil: all that are floats
	known     map[*Graph][]*GradInfo
	flows     map[*Graph]*flow
	buffers   map[any]*buffer // of Storers of floats, by key
	touching  map[*Graph]*touched
}

// end is something that a graph changes, whose gradient as the graph leaves it is wanted too.
type end struct {
	cell
	reader *node // of the change
}

// graph builds the gradient of a graph, once for the same ends and starts.
func (d *differ) graph(g *Graph, ends []end, starts []cell) *GradInfo {
	if g == nil {
		return &GradInfo{}
	}
	p := g.program
	info := &GradInfo{forward: g, starts: starts}
	for _, e := range ends {
		info.ends = append(info.ends, e.cell)
	}
	for _, known := range d.known[g] {
		if slices.Equal(known.ends, info.ends) && slices.Equal(known.starts, info.starts) {
			return known
		}
	}
	d.known[g] = append(d.known[g], info)
	if !g.built {
		g.refuse("autodiff", d.pos, errors.New("the graph is not complete"))
	}
	g.differentiated = true
	info.Inputs = d.inputs(g)
	info.Graph = p.newGraph(g.name + "_gradient")
	info.Graph.gradient = info
	flow := d.flow(g)
	b := &back{
		differ: d, info: info, graph: info.Graph, of: g, flow: flow, varies: flow.varies(g, info.Inputs, starts),
		grads: map[value]*Tensor{}, readers: map[value]*node{}, stands: map[value]*Tensor{},
	}
	input := func(s Spec) *Tensor {
		in := info.Graph.tensor(s)
		in.name = "gradient"
		info.Graph.inputs = append(info.Graph.inputs, in)
		return in
	}
	for _, t := range g.outputs {
		if t.failed() || !t.sp.DType.IsFloat() {
			info.Grads = append(info.Grads, nil)
			continue
		}
		in := input(t.sp)
		info.Grads = append(info.Grads, in)
		b.add(flow.end(cell{memory: t.memory()}), in, nil)
	}
	for _, e := range ends {
		in := input(d.spec(e.cell))
		info.endGrads = append(info.endGrads, in)
		b.add(flow.end(e.cell), in, e.reader)
	}
	nodes := g.scheduled()
	for _, node := range slices.Backward(nodes) {
		if !b.node(node) {
			break
		}
	}
	for _, t := range info.Inputs {
		info.Graph.outputs = append(info.Graph.outputs, b.grad(made(t)))
	}
	for _, c := range starts {
		info.Graph.outputs = append(info.Graph.outputs, b.grad(value{cell: c}))
		info.readers = append(info.readers, b.readers[value{cell: c}])
	}
	info.Graph.built = true
	info.prune()
	return info
}

// spec is what a version of a cell is.
func (d *differ) spec(c cell) Spec {
	if c.buffer == nil {
		return c.memory.sp
	}
	b := d.buffers[c.buffer]
	s := b.spec.clone()
	if c.entry == wholeBuffer {
		s.Shape = append(tensor.Shape{b.entries}, s.Shape...)
	}
	return s
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
			g.refuse("autodiff", d.pos, err)
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
