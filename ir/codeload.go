package ir

import "fmt"

// executable is where code is run from.
const executable = "executable"

// codeLoadOp says that the code of a graph is loaded here. It has no effect but on what show.Code accounts for.
type codeLoadOp struct{ graph *Graph }

func (o *codeLoadOp) Name() string                 { return "remote code load" }
func (o *codeLoadOp) Kind() string                 { return "code load" }
func (o *codeLoadOp) loads() *Graph                { return o.graph }
func (o *codeLoadOp) tied()                        {}
func (o *codeLoadOp) Infer([]Spec) ([]Spec, error) { return nil, nil }
func (o *codeLoadOp) Bind(*Memory) (func() error, error) {
	return func() error { return nil }, nil
}

func (o *codeLoadOp) String() string {
	return fmt.Sprintf("remote code load of %s to %q", plainName(o.graph.name), executable)
}

// RemoteCodeLoad adds an operation that loads the code of a graph from remote memory to a destination, of which there
// is one, "executable": where it is called from. It changes no result. It says that the code needs no memory from the
// graph's last call before, or from the start, until here; Code of package ir/show shows what follows. A graph whose
// code is never loaded has it in memory always.
//
// No data flows from the load to the calls that it is meant for: only in a block of [Graph.InSequence] does it run
// before them.
//
// Errors, which stick: another destination; no graph, one of another program, the main graph, one that is still being
// built, and so g itself.
func (g *Graph) RemoteCodeLoad(called *Graph, destination string) {
	g = g.orNone()
	pos := caller("")
	op := &codeLoadOp{called}
	err := g.loadable(called, destination)
	if err == nil {
		_, err = g.add(op, pos, nil)
	}
	if err != nil {
		g.refuse(op.Name(), pos, err)
	}
}

// loadable returns an error if g cannot load the code of a graph.
func (g *Graph) loadable(called *Graph, destination string) error {
	switch {
	case destination != executable:
		return fmt.Errorf("destination %q does not exist, want %q", destination, executable)
	case called == g:
		return fmt.Errorf("graph %s cannot load its own code: it is loaded while it runs", g.name)
	case called != nil && called == g.program.main:
		return fmt.Errorf("the main graph is always loaded")
	}
	return g.callable(called)
}
