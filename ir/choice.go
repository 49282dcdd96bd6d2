package ir

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ifOp calls one of two graphs.
type ifOp struct {
	replaced
	then, els *Graph
}

func (o *ifOp) Name() string                 { return "if" }
func (o *ifOp) Infer([]Spec) ([]Spec, error) { return specsOf(o.then.outputs), nil }
func (o *ifOp) runs() []*Graph               { return []*Graph{o.then, o.els} }

func (o *ifOp) phrase(n *node, given func(first, count int) string) string {
	then := len(o.then.inputs)
	return fmt.Sprintf("if %s then %s%s else %s%s", reference(n.in[0]), plainName(o.then.name), given(1, then),
		plainName(o.els.name), given(1+then, len(o.els.inputs)))
}

// lower lists the step of a choice, and what comes before. What a branch gives out for a gradient is not there where
// the other one was taken.
func (o *ifOp) lower(l *lowering, n *node, in []*location, where map[*Tensor]*location) ([]*step, error) {
	s := &step{node: n, when: in[0]}
	for _, t := range n.out {
		where[t] = l.at(t)
	}
	kept := map[*Stream]int{}
	maps.Copy(kept, l.loads)
	branch := func(g *Graph, first int) ([]*step, map[*Stream]int, error) {
		l.loads = map[*Stream]int{}
		maps.Copy(l.loads, kept)
		inner, steps := l.enter(n, g, first, in[first:], 0)
		l.give(n, inner)
		body, err := l.expand(g, inner)
		if err != nil {
			return nil, nil, err
		}
		steps = append(steps, body...)
		for i, t := range g.outputs {
			steps = append(steps, &step{node: n, from: inner[t.memory()], to: where[n.out[i]]})
		}
		for i, t := range n.exports {
			if t.graph == g {
				steps = append(steps, &step{node: n, from: inner[t.memory()], to: where[n.out[len(g.outputs)+i]]})
			}
		}
		return steps, l.loads, nil
	}
	var err error
	var a, b map[*Stream]int
	if s.body, a, err = branch(o.then, 1); err != nil {
		return nil, err
	}
	if s.els, b, err = branch(o.els, 1+len(o.then.inputs)); err != nil {
		return nil, err
	}
	for stream := range union(a, b) {
		if a[stream] != b[stream] {
			return nil, n.graph.refusal("if", n.pos, fmt.Errorf(
				"the branches move %d and %d tensors by the stream %v; it must be known how many",
				a[stream]-kept[stream], b[stream]-kept[stream], stream))
		}
	}
	return []*step{s}, nil
}

func union(a, b map[*Stream]int) map[*Stream]bool {
	out := map[*Stream]bool{}
	for s := range a {
		out[s] = true
	}
	for s := range b {
		out[s] = true
	}
	return out
}

// goBack builds the gradient of a choice: a choice by the same condition of the gradients of the branches. Each of them
// returns what goes back to all that either branch reads, zeros where it does not read it.
func (o *ifOp) goBack(b *back, n *node) error {
	var ends []end
	var endGrads []*Tensor
	for _, v := range b.flow.changes[n] { // entries of buffers: inputs go by value
		if b.grads[v] != nil {
			ends, endGrads = append(ends, end{v.cell, b.readers[v]}), append(endGrads, b.grads[v])
		}
	}
	var starts []cell
	var to []value // what the outputs of both gradients are gradients of
	for i, v := range b.flow.in[n] {
		if i > 0 && b.varies[v] && n.in[i].sp.DType.IsFloat() && !slices.Contains(to, v) {
			to = append(to, v)
		}
	}
	for _, v := range b.flow.entries[n] {
		if b.varies[v] {
			starts, to = append(starts, v.cell), append(to, v)
		}
	}
	var branches []Branch
	first := 1
	for _, g := range o.runs() {
		inner := b.differ.graph(g, ends, starts)
		if !b.mayKeep(n, g, inner) {
			return nil
		}
		branches = append(branches, b.branch(n, inner, first, to, endGrads))
		first += len(g.inputs)
	}
	for k, grad := range b.graph.If(b.need(b.flow.in[n][0]), branches[0], branches[1]) {
		if k < len(to) {
			b.add(to[k], grad, n)
		}
	}
	return nil
}

// branch is the gradient of a branch whose inputs are those of the choice from first on, as a branch of the gradient.
func (b *back) branch(n *node, inner *GradInfo, first int, to []value, endGrads []*Tensor) Branch {
	g := inner.forward
	body := b.graph.program.newGraph(g.name + "_branch_back")
	var args []*Tensor
	by := map[*Tensor]*Tensor{}
	give := func(in, arg *Tensor) {
		t := body.tensor(arg.spec())
		t.name, t.bad = in.name, arg.failed()
		body.inputs, args, by[in] = append(body.inputs, t), append(args, arg), t
	}
	for i, t := range inner.Needs {
		if k := slices.Index(g.inputs, t); k >= 0 {
			give(inner.needed[i], b.need(b.flow.in[n][first+k]))
			continue
		}
		give(inner.needed[i], b.need(made(n.exported(t, t.sp.clone()))))
	}
	for i, in := range inner.Grads {
		if in != nil {
			give(in, b.grad(made(n.out[i])))
		}
	}
	for i, in := range inner.endGrads {
		give(in, endGrads[i])
	}
	grads := body.CallWithInfo(inner.Graph, by).Outputs()
	sums := make([]*Tensor, len(to))
	add := func(v value, grad *Tensor) {
		k := slices.Index(to, v)
		switch {
		case k < 0:
		case sums[k] == nil:
			sums[k] = grad
		default:
			sums[k] = apply(sumOp{}, body, b.pos, []*Tensor{sums[k], grad})[0]
		}
	}
	for i, c := range inner.outputs() {
		if i >= len(grads) { // after an error
			break
		}
		if c.buffer != nil {
			add(to[slices.IndexFunc(to, func(v value) bool { return v.cell == c })], grads[i])
		} else {
			add(b.flow.in[n][first+slices.Index(g.inputs, c.memory)], grads[i])
		}
	}
	for k, v := range to {
		if sums[k] == nil {
			sums[k] = b.zerosIn(body, b.spec(v.cell))
		}
	}
	body.outputs, body.built = sums, true
	return Branch{Graph: body, In: args}
}

// Branch is a graph with its inputs, as If takes them.
type Branch struct {
	Graph *Graph
	In    []*Tensor
	By    map[*Tensor]*Tensor // further inputs, by those of the graph; may be nil
}

// If adds a choice: it calls the first branch when condition, a scalar of bool, is true, and else the second. Both have
// outputs of the same specs, and return as many tensors of them. Each replica chooses for itself. Inputs go by value.
// Errors, which stick: another condition, outputs that differ, and those of a call.
func (g *Graph) If(condition *Tensor, then, els Branch) []*Tensor {
	g = g.orNone()
	pos := caller("")
	failed := func(err error) []*Tensor {
		g.refuse("if", pos, err, condition)
		return g.brokenOutputs(then.Graph)
	}
	if condition == nil {
		return failed(errors.New("no condition"))
	}
	in, bad := []*Tensor{condition}, condition.failed()
	for i, b := range []Branch{then, els} {
		if err := g.callable(b.Graph); err != nil {
			return failed(fmt.Errorf("branch %d: %w", i, err))
		}
		args, badArgs, err := b.Graph.arguments(b.In, b.By)
		if err != nil {
			return failed(fmt.Errorf("branch %d: %w", i, err))
		}
		in, bad = append(in, args...), bad || badArgs
	}
	if bad {
		g.orphans("if", pos, in)
		return g.brokenOutputs(then.Graph)
	}
	if s := condition.sp; s.DType != boolType || len(s.Shape) > 0 {
		return failed(errors.New("the condition must be a scalar of bool"))
	}
	a, b := specsOf(then.Graph.outputs), specsOf(els.Graph.outputs)
	if !slices.EqualFunc(a, b, Spec.Equal) {
		return failed(fmt.Errorf("graph %s returns %v, and graph %s %v", then.Graph.name, a, els.Graph.name, b))
	}
	out, err := g.add(&ifOp{then: then.Graph, els: els.Graph}, pos, in)
	if err != nil {
		return failed(err)
	}
	return out
}
