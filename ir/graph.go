package ir

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// Graph is a list of operations on tensors, with inputs and outputs. The main graph has neither: it has streams and
// variables.
type Graph struct {
	program *Program
	name    string
	pos     Position // of what has built it
	inputs  []*Tensor
	outputs []*Tensor
	nodes   []*node
	blocks  []*block // that are open, innermost last
	built   bool     // its function has returned
	order   []*node  // as scheduled; nil: not yet
	worked  int      // what it took to schedule them: see agenda
	started []*Started
	keys    []any // see orderKeys
	keyed   int   // how many nodes the graph had when keys were found, and 1; 0: not yet
	broke   bool  // no function has built it to its end

	gradient       *GradInfo // of which it is the graph; nil: it is no gradient
	differentiated bool      // there is a gradient of it

	written map[*Tensor][]*node // by memory: what changes it
	kept    map[value]*Tensor   // see keep
}

func (p *Program) newGraph(name string) *Graph {
	g := &Graph{program: p, name: p.unique(name)}
	g.blocks = []*block{{}}
	p.graphs = append(p.graphs, g)
	return g
}

// Program returns the program that the graph is part of.
func (g *Graph) Program() *Program {
	if g == nil {
		return nil
	}
	return g.program
}

// Name returns the graph's name: "main", or the one that Named has given it, or that of the function that built it,
// with a number if there are several.
func (g *Graph) Name() string {
	if g == nil {
		return ""
	}
	return g.name
}

// Named gives the graph a name, for errors, programs as text and drawings, and returns it. If another graph has the
// name, a number comes after it. A function that builds a graph may name it first, so that errors in the rest of the
// function have the name. The main graph keeps its name, as does every graph once a session exists, or if the name is
// "".
func (g *Graph) Named(name string) *Graph {
	g = g.orNone()
	if name != "" && name != g.name && g != g.program.main && !g.program.sessions {
		g.name = g.program.unique(name)
	}
	return g
}

// Inputs returns the inputs, in the order of their making.
func (g *Graph) Inputs() []*Tensor { return slices.Clone(g.orNone().inputs) }

// Outputs returns the outputs.
func (g *Graph) Outputs() []*Tensor { return slices.Clone(g.orNone().outputs) }

// CreateGraph makes a graph of what build adds to it. Each of the inputs, tensors of another graph or specs, gives the
// spec of an input of the new graph, which build gets as a tensor; it makes further ones by [Graph.Input]. What build
// returns are the graph's outputs. It is build's closure that holds any other arguments; a module is a value with a
// method for build that keeps in its fields the inputs it makes.
//
// A graph must be complete before it is called. Errors, which stick: an input that is no tensor and no valid spec, a
// build that is nil, outputs of another graph. A build that panics after an error has stuck is given up: the error is
// what there is to report.
func (p *Program) CreateGraph(build func(g *Graph, in []*Tensor) []*Tensor, inputs ...Input) *Graph {
	p = p.orNone()
	pos := caller("")
	name := "graph"
	if build != nil {
		name = functionName(build)
	}
	g := p.newGraph(name)
	g.pos = pos
	if p.sessions {
		g.refuse("create graph", pos, errSession)
	}
	var in []*Tensor
	for i, input := range inputs {
		t := g.tensor(Spec{})
		if v, is := input.(*Tensor); input == nil || is && v == nil {
			t.bad = true
			g.refuse("create graph", pos, fmt.Errorf("input %d is nil, want a tensor or a spec", i))
		} else if v != nil && v.failed() {
			t.bad = true
		} else if err := input.spec().check(); err != nil {
			t.bad = true
			g.refuse("create graph", pos, fmt.Errorf("input %d: %w", i, err))
		} else {
			t.sp = input.spec().clone()
			if v != nil {
				t.name = v.name
			}
		}
		g.inputs, in = append(g.inputs, t), append(in, t)
	}
	if build == nil {
		g.refuse("create graph", pos, fmt.Errorf("no function to build it"))
		g.built, g.broke = true, true
		return g
	}
	var outputs []*Tensor
	if !p.whole(func() { outputs = build(g, in) }) {
		g.built, g.broke = true, true
		return g
	}
	for i, t := range outputs {
		switch {
		case t == nil:
			g.refuse("create graph", pos, fmt.Errorf("output %d is nil", i))
			t = g.broken()
		case t.failed():
			g.orphans("create graph", pos, outputs[i:i+1])
		case t.graph != g:
			g.refuse("create graph", pos, fmt.Errorf("output %d, %v, is a tensor of graph %s", i, t, t.graph.name))
			t = g.broken()
		}
		g.outputs = append(g.outputs, g.unpinned(t))
	}
	g.built = true
	return g
}

// Input makes another input of a graph that is being built, after those that CreateGraph was given.
func (g *Graph) Input(name string, s Spec) *Tensor {
	g = g.orNone()
	t := g.tensor(s.clone())
	t.name = name
	var err error
	switch {
	case g == g.program.main:
		err = fmt.Errorf("the main graph has no inputs: load from a stream, or make a variable")
	case g.built:
		err = fmt.Errorf("the graph is complete")
	default:
		err = s.check()
	}
	if err != nil {
		g.refuse("input", caller(""), fmt.Errorf("%s: %w", name, err))
		t.bad = true
		return t
	}
	g.inputs = append(g.inputs, t)
	return t
}

// tensor makes a tensor of the graph.
func (g *Graph) tensor(s Spec) *Tensor {
	t := &Tensor{graph: g, id: g.program.tensors, sp: s}
	g.program.tensors++
	return t
}

// broken is a tensor that stands for an error.
func (g *Graph) broken() *Tensor { return &Tensor{graph: g, bad: true} }

// block is what InSequence and OutOfSequence make.
type block struct {
	parent  *block
	ordered bool
	number  int // among the parent's parts
	parts   int // nodes and blocks in it so far
}

// InSequence has what build adds to the graph run in the order in which it was built. Blocks within it that are
// OutOfSequence stand in that order as a whole.
func (g *Graph) InSequence(build func()) { g.inBlock(true, build) }

// OutOfSequence has what build adds to the graph run in any order that respects the data, also within InSequence.
func (g *Graph) OutOfSequence(build func()) { g.inBlock(false, build) }

func (g *Graph) inBlock(ordered bool, build func()) {
	g = g.orNone()
	if build == nil {
		g.refuse("sequence", caller(""), errors.New("no function to build it"))
		return
	}
	outer := g.blocks[len(g.blocks)-1]
	b := &block{parent: outer, ordered: ordered, number: outer.parts}
	outer.parts++
	g.blocks = append(g.blocks, b)
	depth := len(g.blocks)
	defer func() { g.blocks = g.blocks[:depth-1] }()
	g.program.whole(build)
}

// functionName is a name for a graph, of the function that builds it: "linear", or "Linear.Build" of a method.
func functionName(build any) string {
	f := runtime.FuncForPC(reflect.ValueOf(build).Pointer())
	if f == nil {
		return "graph"
	}
	name := strings.TrimSuffix(f.Name(), "-fm") // of a method value
	name = name[strings.LastIndexByte(name, '/')+1:]
	_, name, _ = strings.Cut(name, ".")
	name = strings.NewReplacer("(", "", ")", "", "*", "").Replace(name)
	for _, anonymous := range []string{".func", ".gowrap"} {
		name, _, _ = strings.Cut(name, anonymous)
	}
	return name
}
