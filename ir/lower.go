package ir

import (
	"fmt"
	"maps"
	"slices"

	"gogcl.dev/tensor"
)

// location is memory of a replica that holds one tensor of the program as it runs.
type location struct {
	spec   Spec
	of     *Tensor // which it was made for
	kind   locationKind
	offset int // in the arena, or in the memory of variables

	constant    *tensor.Tensor
	variable    *Variable
	first, last int // steps between which it is alive, both included; last is -1 while nothing has touched it
}

type locationKind uint8

const (
	inArena locationKind = iota
	ofVariable
	ofConstant
)

// step is something that a replica does: an operation, a copy, a loop, a choice, or the start or end of what runs
// beside.
type step struct {
	node    *node
	in, out []*location // of an operation
	from    *location   // of a copy
	to      *location
	turnOf  *step   // of a copy: the loop whose turn says which part of to it goes to; else nil
	body    []*step // of a loop or a start, or of a choice when true
	els     []*step
	starts  bool        // body runs beside the replica
	waits   *step       // of a wait: the start
	beside  []*location // of a start: what its body works on
	count   int
	when    *location // of a choice
	at      int       // the number of the step; of a loop, that of its first
}

// lowering puts called graphs in the place of their calls, so that a program is one list of steps with loops and
// choices in it, and says which memory each step works on.
type lowering struct {
	locations []*location
	loads     map[*Stream]int // transfers of one run
	replicas  int
	started   map[*node]*startedStep
	changes   map[*Graph]map[*Tensor]bool // by called graph: see Graph.changes
}

// transfers returns an error unless a stream can move so many tensors in one run, turns times what a turn moves: what
// it moves for all replicas is one tensor on the host's side.
func (l *lowering) transfers(s *Stream, before, inTurn, turns int) error {
	most := maxBytes / l.replicas / max(s.sp.Bytes(), 1)
	if inTurn <= 0 || before <= most && turns <= (most-before)/inTurn {
		return nil
	}
	return fmt.Errorf("%v moves more than %d tensors of %v to each of %d replicas in one run: more than %d bytes",
		s, most, s.sp, l.replicas, maxBytes)
}

// at makes a location.
func (l *lowering) at(t *Tensor) *location {
	where := &location{spec: t.sp, of: t, last: -1}
	l.locations = append(l.locations, where)
	return where
}

// expand lists the steps of a graph, of whose inputs it is given the locations, and adds its tensors to where.
func (l *lowering) expand(g *Graph, where map[*Tensor]*location) ([]*step, error) {
	var steps []*step
	for _, n := range g.scheduled() {
		more, err := l.node(n, where)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

// node lists the steps of a node.
func (l *lowering) node(n *node, where map[*Tensor]*location) ([]*step, error) {
	in := make([]*location, len(n.in))
	for i, t := range n.in {
		in[i] = where[t.memory()]
	}
	if c, is := n.op.(control); is {
		return c.lower(l, n, in, where)
	}
	s := &step{node: n, in: in}
	for i, t := range n.out {
		if t.root != nil {
			s.out = append(s.out, in[n.updates[i]])
			continue
		}
		where[t] = l.at(t)
		s.out = append(s.out, where[t])
	}
	if stream := n.moves(); stream != nil {
		if err := l.transfers(stream, l.loads[stream], 1, 1); err != nil {
			return nil, n.graph.refusal(n.op.Name(), n.pos, err)
		}
		l.loads[stream]++
	}
	return []*step{s}, nil
}

// wanted is the location of what is kept.
func (l *lowering) wanted(t *Tensor, where map[*Tensor]*location) *location {
	if where[t] == nil {
		where[t] = l.at(t)
	}
	return where[t]
}

// give has what a call gives out be kept.
func (l *lowering) give(n *node, inner map[*Tensor]*location) {
	for _, t := range n.exports {
		if t.node != nil {
			if _, is := t.node.op.(*keepOp); is {
				l.wanted(t, inner)
			}
		}
	}
}

// enter gives the inputs of a called graph their locations: those of the caller, or copies of what the graph changes in
// place and may not.
func (l *lowering) enter(n *node, called *Graph, first int, in []*location, carried int) (where map[*Tensor]*location,
	steps []*step) {
	where = map[*Tensor]*location{}
	changed := l.changes[called]
	if changed == nil {
		changed = called.changes()
		l.changes[called] = changed
	}
	for i, t := range called.inputs {
		given := in[i]
		beside := false // it is given for another input too, which is changed where it lies
		for k, other := range called.inputs {
			beside = beside || k != i && in[k] == given && changed[other] && n.changesInput(first+k)
		}
		if i < carried || (changed[t] || beside) && !n.changesInput(first+i) {
			own := l.at(t)
			steps = append(steps, &step{node: n, from: given, to: own})
			given = own
		}
		where[t] = given
	}
	return where, steps
}

// changesInput reports whether a node changes an input where it lies.
func (n *node) changesInput(i int) bool {
	return slices.Contains(n.modifies, i)
}

// changes are the inputs that a graph changes in place.
func (g *Graph) changes() map[*Tensor]bool {
	out := map[*Tensor]bool{}
	for _, n := range g.nodes {
		for _, i := range n.modifies {
			if m := n.in[i].memory(); m.node == nil {
				out[m] = true
			}
		}
	}
	return out
}

// call lists the steps of a call.
func (l *lowering) call(n *node, called *Graph, in []*location, where map[*Tensor]*location) ([]*step, error) {
	inner, steps := l.enter(n, called, 0, in, 0)
	given := map[*location]bool{}
	for _, x := range inner {
		given[x] = true
	}
	l.give(n, inner)
	body, err := l.expand(called, inner)
	if err != nil {
		return nil, err
	}
	steps = append(steps, body...)
	outputs := append(append([]*Tensor(nil), called.outputs...), n.exports...)
	for i, t := range outputs {
		x := inner[t.memory()]
		if given[x] || x.kind != inArena { // it is the caller's, or another output's, and may change later
			own := l.at(n.out[i])
			steps = append(steps, &step{node: n, from: x, to: own})
			x = own
		}
		given[x] = true
		where[n.out[i]] = x
	}
	return steps, nil
}

// repeat lists the step of a loop, and what comes before.
func (l *lowering) repeat(n *node, op *repeatOp, in []*location, where map[*Tensor]*location) ([]*step, error) {
	carried := len(op.graph.outputs)
	inner, steps := l.enter(n, op.graph, 0, in, carried)
	loop := &step{node: n, count: op.count}
	var ends []*step
	for i, t := range n.exports { // what inputs are when a turn begins, and other tensors when it ends
		history := l.at(n.out[carried+i])
		where[n.out[carried+i]] = history
		s := &step{node: n, from: inner[t], to: history, turnOf: loop}
		if t.node == nil {
			loop.body = append(loop.body, s)
		} else {
			ends = append(ends, s)
		}
	}
	stay := map[*location]bool{}
	for _, x := range inner {
		stay[x] = true
	}
	l.give(n, inner)
	kept := map[*Stream]int{}
	maps.Copy(kept, l.loads)
	body, err := l.expand(op.graph, inner)
	if err != nil {
		return nil, err
	}
	for _, s := range n.graph.program.streams {
		inTurn := l.loads[s] - kept[s]
		if err := l.transfers(s, kept[s], inTurn, op.count); err != nil {
			return nil, n.graph.refusal("repeat", n.pos, fmt.Errorf("%d turns: %w", op.count, err))
		}
		if inTurn > 0 {
			l.loads[s] = kept[s] + inTurn*op.count
		}
	}
	body = append(loop.body, body...)
	for _, s := range ends {
		t := n.exports[s.to.of.out-carried]
		s.from = inner[t.memory()]
		body = append(body, s)
	}
	// Outputs that are inputs themselves are put aside first, since another may be about to take their place.
	results := make([]*location, carried)
	for i, t := range op.graph.outputs {
		x := inner[t.memory()]
		if own := inner[op.graph.inputs[i]]; stay[x] && x != own {
			aside := l.at(t)
			body = append(body, &step{node: n, from: x, to: aside})
			x = aside
		}
		results[i] = x
	}
	for i, x := range results {
		own := inner[op.graph.inputs[i]]
		if x != own {
			body = append(body, &step{node: n, from: x, to: own})
		}
		where[n.out[i]] = own
	}
	loop.body = body
	return append(steps, loop), nil
}

// chooses reports whether there is a choice among some steps.
func chooses(steps []*step) bool {
	for _, s := range steps {
		if s.when != nil || chooses(s.body) {
			return true
		}
	}
	return false
}
