package ir

import (
	"errors"
	"fmt"
	"slices"
)

// callOp calls a graph once.
type callOp struct {
	replaced
	graph *Graph
}

func (o *callOp) Name() string                 { return "call" }
func (o *callOp) String() string               { return "call " + plainName(o.graph.name) }
func (o *callOp) Infer([]Spec) ([]Spec, error) { return specsOf(o.graph.outputs), nil }
func (o *callOp) runs() []*Graph               { return []*Graph{o.graph} }
func (o *callOp) phrase(n *node, given func(first, count int) string) string {
	return o.String() + given(0, len(n.in))
}

func (o *callOp) lower(l *lowering, n *node, in []*location, where map[*Tensor]*location) ([]*step, error) {
	return l.call(n, o.graph, in, where)
}

func (o *callOp) goBack(b *back, n *node) error {
	b.call(n, o.graph)
	return nil
}

// repeatOp calls a graph count times.
type repeatOp struct {
	replaced
	graph *Graph
	count int
}

func (o *repeatOp) Name() string                 { return "repeat" }
func (o *repeatOp) Infer([]Spec) ([]Spec, error) { return specsOf(o.graph.outputs), nil }
func (o *repeatOp) runs() []*Graph               { return []*Graph{o.graph} }
func (o *repeatOp) carried() int                 { return len(o.graph.outputs) }
func (o *repeatOp) turns() int                   { return o.count }

func (o *repeatOp) String() string {
	return fmt.Sprintf("repeat %d %s %s", o.count, pluralOf(o.count, "time"), plainName(o.graph.name))
}

func (o *repeatOp) phrase(n *node, given func(first, count int) string) string {
	return o.String() + given(0, len(n.in))
}

func (o *repeatOp) lower(l *lowering, n *node, in []*location, where map[*Tensor]*location) ([]*step, error) {
	return l.repeat(n, o, in, where)
}

func (o *repeatOp) goBack(b *back, n *node) error {
	b.repeat(n, o)
	return nil
}

var errInPlace = errors.New("it is replaced by the graphs that it calls")

func specsOf(tensors []*Tensor) []Spec {
	var out []Spec
	for _, t := range tensors {
		out = append(out, t.sp)
	}
	return out
}

// Call adds a call of a complete graph, with a tensor of g for each of its inputs in the order of their making, and
// returns its outputs. Inputs go by value: what the called graph changes in place is changed in there only, unless
// [CallInfo.SetParentInputModified] says otherwise.
func (g *Graph) Call(called *Graph, in ...*Tensor) []*Tensor {
	return g.call("call", called, 0, nil, in).Outputs()
}

// CallWithInfo is Call with the inputs that are not in the list given by a map from inputs of the called graph to
// tensors of g, and returns what there is to know about the place of the call.
func (g *Graph) CallWithInfo(called *Graph, by map[*Tensor]*Tensor, in ...*Tensor) *CallInfo {
	return g.call("call", called, 0, by, in)
}

// Repeat adds a loop that calls a complete graph count times, at least once. Its first inputs are, from the second turn
// on, the outputs of the turn before, so it must have as many inputs as outputs or more; the others stay. It returns
// the outputs of the last turn. Inputs go by value: those that stay keep from turn to turn what the graph changes in
// place.
func (g *Graph) Repeat(called *Graph, count int, in ...*Tensor) []*Tensor {
	return g.call("repeat", called, count, nil, in).Outputs()
}

// RepeatWithInfo is Repeat with inputs by a map too, as in CallWithInfo.
func (g *Graph) RepeatWithInfo(called *Graph, count int, by map[*Tensor]*Tensor, in ...*Tensor) *CallInfo {
	return g.call("repeat", called, count, by, in)
}

func (g *Graph) call(what string, called *Graph, count int, by map[*Tensor]*Tensor, in []*Tensor) *CallInfo {
	g = g.orNone()
	info := &CallInfo{graph: called, parent: g, what: what, pos: caller("")}
	failed := func(err error) *CallInfo {
		g.refuse(what, info.pos, err, in...)
		return info.broken()
	}
	if err := g.callable(called); err != nil {
		return failed(err)
	}
	args, bad, err := called.arguments(in, by)
	if err != nil {
		return failed(err)
	}
	if bad {
		g.orphans(what, info.pos, args)
		return info.broken()
	}
	if err := called.gradient.checkGiven(args); err != nil {
		return failed(err)
	}
	var op Op = &callOp{graph: called}
	if what == "repeat" {
		op = &repeatOp{graph: called, count: count}
		if err := repeatable(called, count); err != nil {
			return failed(err)
		}
	}
	outs, err := g.add(op, info.pos, args)
	if err != nil {
		return failed(err)
	}
	info.node, info.outputs = g.nodes[len(g.nodes)-1], outs
	info.inputs = slices.Clone(info.node.in)
	return info
}

// callable returns an error if g cannot call a graph.
func (g *Graph) callable(called *Graph) error {
	switch {
	case called == nil:
		return errors.New("no graph")
	case called.program != g.program:
		return fmt.Errorf("graph %s is of another program", called.name)
	case called == g.program.main:
		return errors.New("the main graph cannot be called")
	case !called.built:
		return fmt.Errorf("graph %s is not complete", called.name)
	}
	return nil
}

// repeatable returns an error if a graph cannot be the body of a loop.
func repeatable(called *Graph, count int) error {
	if count < 1 {
		return fmt.Errorf("a count of %d, want 1 or more", count)
	}
	if len(called.inputs) < len(called.outputs) {
		return fmt.Errorf("graph %s has %d inputs and %d outputs, which are to be the next turn's first inputs",
			called.name, len(called.inputs), len(called.outputs))
	}
	for i, out := range called.outputs {
		if in := called.inputs[i]; !in.failed() && !out.failed() && !in.sp.Equal(out.sp) {
			return fmt.Errorf("output %d of graph %s is %v, and input %d, which it is to be in the next turn, %v",
				i, called.name, out.sp, i, in.sp)
		}
	}
	return nil
}

// arguments finds the tensor for each input of a graph. bad says that one stands for an error.
func (g *Graph) arguments(in []*Tensor, by map[*Tensor]*Tensor) (args []*Tensor, bad bool, err error) {
	if len(in) > len(g.inputs) {
		return nil, false, fmt.Errorf("%d inputs for graph %s, which has %d", len(in), g.name, len(g.inputs))
	}
	args = make([]*Tensor, len(g.inputs))
	copy(args, in)
	for i, t := range in {
		if t == nil {
			return nil, false, fmt.Errorf("input %d, %v, of graph %s is nil", i, g.inputs[i], g.name)
		}
	}
	found := 0
	for i, own := range g.inputs {
		t, is := by[own]
		switch {
		case !is:
			continue
		case i < len(in):
			return nil, false, fmt.Errorf("input %d, %v, of graph %s is given twice", i, own, g.name)
		case t == nil:
			return nil, false, fmt.Errorf("input %d, %v, of graph %s is nil", i, own, g.name)
		}
		args[i] = t
		found++
	}
	if found < len(by) {
		var strangers []string
		for t := range by {
			if !slices.Contains(g.inputs, t) {
				strangers = append(strangers, t.String())
			}
		}
		slices.Sort(strangers)
		return nil, false, fmt.Errorf("%s is no input of graph %s", strangers[0], g.name)
	}
	for i, t := range args {
		own := g.inputs[i]
		switch {
		case t == nil:
			return nil, false, fmt.Errorf("%d %s for graph %s, which has %d: input %d, %v, is missing: %s",
				len(in)+len(by), pluralOf(len(in)+len(by), "input"), g.name, len(g.inputs), i, own, g.howGiven(own))
		case t.failed() || own.failed():
			bad = true
		case !t.sp.Equal(own.sp):
			return nil, false, fmt.Errorf("input %d, %v, of graph %s is %v, want %v", i, own, g.name, t.sp, own.sp)
		}
	}
	bad = bad || g.broke
	for _, t := range g.outputs {
		bad = bad || t.failed()
	}
	return args, bad, nil
}

// howGiven says how a caller gives an input of the graph.
func (g *Graph) howGiven(own *Tensor) string {
	if info := g.gradient; info != nil {
		forward := info.forward
		if i := slices.Index(info.Grads, own); i >= 0 {
			return fmt.Sprintf("it is the gradient of output %d of graph %s, %v; give CallWithInfo a map with "+
				"GradInfo.Grads[%d] in it",
				i, forward.name, forward.outputs[i], i)
		}
		if i := slices.Index(info.needed, own); i >= 0 {
			return fmt.Sprintf("it stands for %v of graph %s; GradInfo.By makes the map for CallWithInfo, of what "+
				"CallWithInfo of graph %s has returned",
				info.Needs[i], forward.name, forward.name)
		}
	}
	return "give a tensor for each of Graph.Inputs, in their order, or a map with that input in it, as CallWithInfo " +
		"takes one"
}

// CallInfo is what there is to know about a place where a graph is called, once or in a loop.
type CallInfo struct {
	graph   *Graph // called
	parent  *Graph
	node    *node // nil after an error
	inputs  []*Tensor
	outputs []*Tensor
	what    string
	pos     Position
}

// broken makes the outputs stand for an error.
func (c *CallInfo) broken() *CallInfo {
	c.outputs = c.parent.brokenOutputs(c.graph)
	return c
}

// CalledGraph returns the graph that is called.
func (c *CallInfo) CalledGraph() *Graph { return c.orNone().graph }

// Inputs returns the tensors of the parent that are given to the called graph, in the order of its inputs.
func (c *CallInfo) Inputs() []*Tensor { return slices.Clone(c.orNone().inputs) }

// Outputs returns the outputs of the call, tensors of the parent.
func (c *CallInfo) Outputs() []*Tensor { return slices.Clone(c.orNone().outputs) }

// ParentInput returns input i of the call. An i out of range is an error.
func (c *CallInfo) ParentInput(i int) (*Tensor, error) { return c.at("input", c.orNone().inputs, i) }

// ParentOutput returns output i of the call. An i out of range is an error.
func (c *CallInfo) ParentOutput(i int) (*Tensor, error) { return c.at("output", c.orNone().outputs, i) }

func (c *CallInfo) at(what string, list []*Tensor, i int) (*Tensor, error) {
	c = c.orNone()
	if i < 0 || i >= len(list) {
		return nil, fmt.Errorf("ir: %s %d of a %s of %s, which has %d", what, i, c.what, c.calledName(), len(list))
	}
	return list[i], nil
}

func (c *CallInfo) calledName() string {
	if c.graph == nil {
		return "no graph"
	}
	return "graph " + c.graph.name
}

// GraphToParent returns the tensor of the parent that stands at this call for an input or output of the called graph.
func (c *CallInfo) GraphToParent(t *Tensor) (*Tensor, error) {
	c = c.orNone()
	if c.node != nil {
		if i := slices.Index(c.graph.inputs, t); i >= 0 {
			return c.inputs[i], nil
		}
		if i := slices.Index(c.graph.outputs, t); i >= 0 {
			return c.outputs[i], nil
		}
		if i, is := c.node.exportAt[t]; is {
			return c.node.out[len(c.graph.outputs)+i], nil
		}
	}
	return nil, fmt.Errorf("ir: %v is neither input nor output of %s", t, c.calledName())
}

// ParentToGraph returns the input of the called graph that a tensor of the parent is given to, the first if there are
// several, or the output of the called graph that it is.
func (c *CallInfo) ParentToGraph(t *Tensor) (*Tensor, error) {
	c = c.orNone()
	if i := slices.Index(c.inputs, t); i >= 0 && t != nil {
		return c.graph.inputs[i], nil
	}
	if i := slices.Index(c.outputs, t); i >= 0 && c.node != nil {
		return c.graph.outputs[i], nil
	}
	return nil, fmt.Errorf("ir: %v is neither input nor output of this %s of %s", t, c.what, c.calledName())
}

// SetParentInputModified says that the call changes a tensor of the parent: what the called graph changes in place of
// its input t is changed in the parent's tensor. t is an input of the called graph, or the tensor of the parent that is
// given to it. It must be said before anything is built that reads the tensor after the call. An error, which sticks: t
// is neither, or is carried from turn to turn of a loop.
func (c *CallInfo) SetParentInputModified(t *Tensor) {
	if c == nil || c.node == nil {
		return
	}
	failed := func(err error) {
		c.parent.refuse(c.what, caller(""), err)
	}
	i := slices.Index(c.graph.inputs, t)
	if i < 0 {
		i = slices.Index(c.inputs, t)
	}
	if i < 0 {
		failed(fmt.Errorf("%v is no input of this %s of %s", t, c.what, c.calledName()))
		return
	}
	if i < c.node.carried() {
		failed(fmt.Errorf("%v is carried from turn to turn, and its last value is an output", t))
		return
	}
	if err := c.inputs[i].changeable(); err != nil {
		failed(err)
		return
	}
	if c.parent.program.sessions {
		failed(errSession)
		return
	}
	for _, k := range c.node.modifies {
		if k != i && c.inputs[k].memory() == c.inputs[i].memory() {
			failed(fmt.Errorf("%v and %v are one tensor of the parent, which only one of them can change",
				c.graph.inputs[i], c.graph.inputs[k]))
			return
		}
	}
	if slices.Contains(c.node.modifies, i) {
		return
	}
	if err := c.tooLate(c.inputs[i]); err != nil {
		failed(err)
		return
	}
	c.parent.write(c.node, i)
	c.parent.order = nil // it is scheduled anew
}

// tooLate returns an error if there is a gradient that was built as if the call did not change a tensor.
func (c *CallInfo) tooLate(t *Tensor) error {
	if c.parent.differentiated {
		return errDifferentiated
	}
	for _, n := range c.parent.nodes[c.node.index+1:] {
		for _, called := range n.calls() {
			if called.gradient != nil && slices.Contains(unique(n.in), t.memory()) {
				return fmt.Errorf("%s at %v reads %v as it is without this: say it before", n.op.Name(), n.pos, t)
			}
		}
	}
	return nil
}
