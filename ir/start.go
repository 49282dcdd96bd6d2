package ir

import (
	"errors"
	"fmt"
	"slices"
)

// startOp begins a call that runs beside the replica, and waitOp ends it. The wait has the inputs of the start too:
// they are read until then.
type startOp struct {
	replaced
	graph *Graph
}

type waitOp struct {
	replaced
	graph *Graph
	start *node
}

func (o *startOp) Name() string   { return "start" }
func (o *waitOp) Name() string    { return "wait" }
func (o *startOp) String() string { return "start " + plainName(o.graph.name) }
func (o *waitOp) String() string  { return "wait for " + plainName(o.graph.name) }

func (o *startOp) Infer([]Spec) ([]Spec, error) { return nil, nil }
func (o *waitOp) Infer([]Spec) ([]Spec, error)  { return specsOf(o.graph.outputs), nil }

func (o *startOp) runs() []*Graph { return []*Graph{o.graph} }
func (o *waitOp) runs() []*Graph  { return nil }
func (o *waitOp) begun() *node    { return o.start }
func (o *waitOp) needs() int      { return 0 } // the start has it
func (o *startOp) tied()          {}
func (o *waitOp) tied()           {}

func (o *startOp) needs() (bytes int) { // what the wait returns
	for _, t := range o.graph.outputs {
		bytes += t.sp.Bytes()
	}
	return bytes
}

func (o *startOp) goBack(*back, *node) error { return errBesideGradient }
func (o *waitOp) goBack(*back, *node) error  { return errBesideGradient }

// Started is a call that runs beside the replica.
type Started struct {
	parent *Graph
	graph  *Graph // called
	node   *node  // nil after an error
	wait   *node  // nil: not yet
}

// Start adds a call of a complete graph that runs beside what comes between here and [Started.Wait], which must be
// called once: on a goroutine of its own, of which each replica has one, the calls one after the other in the order
// of their starts. Inputs go by value. All that the called graph works on is alive from the start to the wait, and
// its scratch memory is its own.
//
// Effects of the called graph that others have too (see [Ordered]) come after what was built before the start, and
// before what is built after the wait; with what is between they come as they may. Within [Graph.InSequence] the
// start comes where it is written; elsewhere where least memory is alive.
//
// Errors, which stick: those of Call; a called graph that moves tensors by streams, loads code or starts calls
// itself; an input that is changed in place before the wait; no wait when a session is made. There is no gradient.
func (g *Graph) Start(called *Graph, in ...*Tensor) *Started {
	g = g.orNone()
	s, op := &Started{parent: g, graph: called}, &startOp{graph: called}
	pos := caller("")
	failed := func(err error) *Started {
		g.refuse(op.Name(), pos, err, in...)
		return s
	}
	if err := g.callable(called); err != nil {
		return failed(err)
	}
	args, bad, err := called.arguments(in, nil)
	if err != nil {
		return failed(err)
	}
	if bad {
		g.orphans(op.Name(), pos, args)
		return s
	}
	if n := called.tied(); n != nil {
		return failed(fmt.Errorf("%s of graph %s, built at %v, cannot run beside a replica",
			describeOp(n.op), n.graph.name, n.pos))
	}
	if _, err := g.add(op, pos, args); err != nil {
		return failed(err)
	}
	s.node = g.nodes[len(g.nodes)-1]
	g.started = append(g.started, s)
	return s
}

// tied is an operation of a graph, or of one that it calls, that only the replica itself can run; or nil.
func (g *Graph) tied() *node {
	return g.find(func(n *node) bool {
		_, is := n.op.(tied)
		return is
	})
}

// tied is an operation that only the replica itself can run.
type tied interface{ tied() }

// Wait adds the end of the call to the graph that has its start, and returns its outputs. An error of the call is one
// of the run, here or before.
func (s *Started) Wait() []*Tensor {
	if s == nil || s.parent == nil {
		return noProgram().main.brokenOutputs(nil)
	}
	g := s.parent
	if s.node == nil {
		return g.brokenOutputs(s.graph)
	}
	op, pos := &waitOp{graph: s.graph, start: s.node}, caller("")
	var out []*Tensor
	err := s.waited()
	if err == nil {
		out, err = g.add(op, pos, s.node.in)
	}
	if err == nil {
		s.wait = g.nodes[len(g.nodes)-1]
		err = s.changed()
	}
	if err != nil {
		g.refuse(op.Name(), pos, err)
		return g.brokenOutputs(s.graph)
	}
	return out
}

// waited returns an error if there is a wait.
func (s *Started) waited() error {
	if s.wait != nil {
		return fmt.Errorf("graph %s, started at %v, is waited for at %v already", s.graph.name, s.node.pos, s.wait.pos)
	}
	return nil
}

// changed returns an error if an input is changed between the start and the wait.
func (s *Started) changed() error {
	inputs := unique(s.node.in)
	for _, n := range s.parent.nodes[s.node.index+1 : s.wait.index] {
		for _, k := range n.modifies {
			if slices.Contains(inputs, n.in[k].memory()) {
				return fmt.Errorf("%s at %v changes in place %v, which graph %s reads from its start at %v until here",
					n.op.Name(), n.pos, n.in[k], s.graph.name, s.node.pos)
			}
		}
	}
	return nil
}

// checkStarted returns an error if a started call has no wait, or if an input is changed before, as may have been
// said after the wait was built.
func (p *Program) checkStarted() error {
	for _, g := range p.graphs {
		for _, s := range g.started {
			if s.wait == nil {
				return g.refusal("start", s.node.pos,
					fmt.Errorf("graph %s is never waited for: Wait must be called", s.graph.name), s.node.in...)
			}
			if err := s.changed(); err != nil {
				return g.refusal("wait", s.wait.pos, err)
			}
		}
	}
	return nil
}

var errBesideGradient = errors.New("what is started beside the replica has no gradient; call it where one is needed")

// lower lists the step of a start, with those of the called graph, and what comes before.
func (o *startOp) lower(l *lowering, n *node, in []*location, _ map[*Tensor]*location) ([]*step, error) {
	inner, steps := l.enter(n, o.graph, 0, in, 0)
	body, err := l.expand(o.graph, inner)
	if err != nil {
		return nil, err
	}
	s := &step{node: n, body: body, starts: true}
	l.started[n] = &startedStep{s, inner}
	return append(steps, s), nil
}

// startedStep is a start whose wait is still to come.
type startedStep struct {
	step  *step
	inner map[*Tensor]*location
}

// lower lists the step of a wait. Copies of outputs that may change later are made beside.
func (o *waitOp) lower(l *lowering, n *node, _ []*location, where map[*Tensor]*location) ([]*step, error) {
	s := l.started[o.start]
	given := map[*location]bool{}
	for _, t := range o.graph.inputs {
		given[s.inner[t]] = true
	}
	for i, t := range o.graph.outputs {
		x := s.inner[t.memory()]
		if given[x] || x.kind != inArena {
			own := l.at(n.out[i])
			s.step.body = append(s.step.body, &step{node: n, from: x, to: own})
			x = own
		}
		given[x] = true
		where[n.out[i]] = x
	}
	return []*step{{node: n, waits: s.step}}, nil
}
