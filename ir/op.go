package ir

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gogcl.dev/tensor"
)

// Op is an operation: one small type with its rule of shapes and its computation. It implements further interfaces as
// it needs them: Differentiable, Updater, Scratcher, Ordered. An Op holds what it is (an axis, a number) and nothing of
// where it is used; it never changes.
type Op interface {
	// Name is what programs as text and errors call it, as in "matmul".
	Name() string

	// Infer returns the specs of the outputs, given those of the inputs. The error says what is wrong with them and
	// what would be right; it need not say what they are.
	Infer(in []Spec) ([]Spec, error)

	// Bind returns what computes the outputs, given the memory of inputs and outputs, which stays where it is. It is
	// called for each place of the operation in the program and each replica, when a session is made. What it returns
	// must not allocate. Inputs do not overlap outputs but for those of an Updater.
	Bind(m *Memory) (func() error, error)
}

// Memory is what an operation has to compute with. All of it is the session's, and stays where it is.
type Memory struct {
	In, Out []*tensor.Tensor
	Scratch []byte // as much as Scratcher asks for, with anything in it; begins a cache line
	Name    string // of the first output, or ""

	Replica  int
	Replicas int

	// Beside says that the operation is in a graph that is started: it runs at the same time as others of the replica.
	// What it has to itself otherwise, as a connection, it must have twice.
	Beside bool

	session *Session
}

// Context returns the context of the run in progress. It is done when the one given to Run is, or when another replica
// has failed.
func (m *Memory) Context() context.Context {
	if m == nil || m.session == nil { // no session has made it
		return context.Background()
	}
	return m.session.running()
}

// Share returns what operations of a package share in a session, for all replicas: connections between them, say. It is
// found by key, or made by open. The session closes it.
func (m *Memory) Share(key any, open func(replicas int) (Shared, error)) (Shared, error) {
	if m == nil {
		return nil, errNotMade
	}
	return m.session.Share(key, open)
}

// Shared is what operations share in a session.
type Shared interface{ Close() error }

// Hosted is what a package keeps with a program ([Program.Attached]) if it takes memory on the host: Report counts it.
type Hosted interface {
	HostBytes() int
}

// Kinded is an operation that says what kind it is: "collective", say. Drawings colour kinds, and [Session.Profile] has
// the time of each. The empty kind is that of plain computation.
type Kinded interface {
	Op
	Kind() string
}

// Finisher is something shared that is told when a replica has come to the end of a run, on that replica's goroutine,
// if the program has a choice: replicas may then have run different operations. An error is one of the run.
type Finisher interface {
	Shared
	Finish(ctx context.Context, replica int) error
}

// Updater is an operation that changes inputs where they lie. If it is Differentiable too, an input that it changes has
// the gradient of what was there before, and [Backward.In] is that.
type Updater interface {
	Op

	// Updates has, for each output, which input it is the new value of, or -1 if it has memory of its own.
	Updates() []int
}

// Apart is an Updater whose other inputs may not share memory with what it changes: it reads them after it has begun to
// change. Apply refuses those that do, and of any Updater two inputs that it changes and that share memory.
type Apart interface {
	Updater
	Apart()
}

// Scratcher is an operation that needs memory beside its inputs and outputs.
type Scratcher interface {
	Op
	ScratchBytes(in []Spec) int
}

// Ordered is an operation with effects other than on tensors: those with equal keys run in the order in which they were
// built.
type Ordered interface {
	Op
	OrderKey() any
}

// Repeatable is an ordered operation that may be done again with the same outcome, as a collective and no store: the
// gradient of a loop computes its turns again if all in them is. Otherwise it keeps what it needs of every turn.
type Repeatable interface {
	Ordered
	Repeatable()
}

// Storer is an ordered operation that stores its first input outside the memory of the replicas, or loads what was
// stored there as its first output. Those with equal keys have the same entries, all of one spec. Autodiff follows what
// is stored to where it is loaded.
type Storer interface {
	Ordered

	// Entry says which entry, or a number below 0 if the last input has it, a scalar of int32, int64 or uint32; of how
	// many; and whether it is stored.
	Entry() (at, of int, stores bool)
}

// Differentiable is an operation with a gradient.
type Differentiable interface {
	Op

	// Gradient builds, in the gradient's graph, the gradients of the inputs, and returns one for each; nil where there
	// is none, as of an index.
	Gradient(b *Backward) []*Tensor
}

// node is an operation in its place in a graph.
type node struct {
	op       Op
	graph    *Graph
	index    int // in the graph, as it was built
	in, out  []*Tensor
	updates  []int // as Updater has it
	modifies []int // inputs whose memory it changes
	pos      Position
	block    *block
	number   int             // among the parts of its block
	exports  []*Tensor       // of a call: tensors of the called graph that further outputs are
	exportAt map[*Tensor]int // where in exports
}

// Apply adds an operation to the graph of its inputs, or to g where that is not nil, and returns its outputs. Packages
// of operations call it from their functions, and an error names the line that has called those. After an error the
// outputs stand for it; where it is not known how many there are, there is one.
func Apply(op Op, g *Graph, in ...*Tensor) []*Tensor {
	return apply(op, g, caller(packageOfOp(op)), in)
}

// Apply1 is Apply for an operation with one output.
func Apply1(op Op, g *Graph, in ...*Tensor) *Tensor {
	out := apply(op, g, caller(packageOfOp(op)), in)
	if len(out) == 0 {
		return noTensor()
	}
	return out[0]
}

// packageOfOp is the path of the package that an operation is of.
func packageOfOp(op Op) string {
	switch t := reflect.TypeOf(op); {
	case t == nil:
		return ""
	case t.Kind() == reflect.Pointer:
		return t.Elem().PkgPath()
	default:
		return t.PkgPath()
	}
}

// noOp stands for an operation that is nil.
type noOp struct{}

func (noOp) Name() string                       { return "operation" }
func (noOp) Infer([]Spec) ([]Spec, error)       { return nil, errNoOp }
func (noOp) Bind(*Memory) (func() error, error) { return nil, errNoOp }

var errNoOp = errors.New("the operation is nil")

func apply(op Op, g *Graph, pos Position, in []*Tensor) []*Tensor {
	if v := reflect.ValueOf(op); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		op = noOp{}
	}
	if g != nil {
		g = g.orNone()
	}
	bad := false
	for _, t := range in {
		if t == nil {
			continue
		}
		bad = bad || t.failed()
		if g == nil {
			g = t.graph
		}
	}
	if g == nil || g.program == nil { // nobody to tell
		return []*Tensor{noTensor()}
	}
	if bad {
		g.orphans(op.Name(), pos, in)
		return []*Tensor{g.broken()}
	}
	out, err := g.add(op, pos, in)
	if err != nil {
		g.refuse(op.Name(), pos, err, in...)
		return []*Tensor{g.broken()}
	}
	return out
}

// orphans makes it an error that sticks if a tensor stands for one that no program knows of: it was made of no tensor.
func (g *Graph) orphans(op string, pos Position, in []*Tensor) {
	for i, t := range in {
		if t != nil && t.graph == nil {
			g.refuse(op, pos, fmt.Errorf("input %d is what an operation on no tensor has returned", i))
		}
	}
}

// add adds an operation whose inputs stand for no errors.
func (g *Graph) add(op Op, pos Position, in []*Tensor) ([]*Tensor, error) {
	var specs []Spec
	for i, t := range in {
		switch {
		case t == nil:
			return nil, fmt.Errorf("input %d is nil", i)
		case t.graph.program != g.program:
			return nil, fmt.Errorf("input %d, %v, is of another program", i, t)
		case t.graph != g:
			return nil, fmt.Errorf("input %d, %v, is a tensor of graph %s; give it to graph %s as an input",
				i, t, t.graph.name, g.name)
		}
		specs = append(specs, t.sp)
	}
	switch {
	case g.program.sessions:
		return nil, errSession
	case g.built:
		return nil, errors.New("the graph is complete")
	}
	outs, err := op.Infer(specs)
	if err != nil {
		return nil, err
	}
	for i, s := range outs {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("output %d: %w", i, err)
		}
	}
	if u, is := op.(Updater); is {
		read := make([]*Tensor, len(in))
		for i, t := range in {
			read[i] = g.unpinned(t)
		}
		if err := checkUpdates(u, read); err != nil {
			return nil, err
		}
	}
	return g.place(op, pos, in, outs), nil
}

// checkUpdates returns an error unless an operation may change what it does of its inputs: none is a constant, no two
// share memory, and those that it only reads share none with them if they must not.
func checkUpdates(u Updater, in []*Tensor) error {
	changed := map[*Tensor]*Tensor{} // by memory
	updates := u.Updates()
	for _, i := range updates {
		if i < 0 {
			continue
		}
		t := in[i]
		if err := t.changeable(); err != nil {
			return err
		}
		if other := changed[t.memory()]; other != nil {
			return fmt.Errorf("%v and %v share memory, want what it changes each in its own", other, t)
		}
		changed[t.memory()] = t
	}
	if _, apart := u.(Apart); !apart {
		return nil
	}
	for i, t := range in {
		if other := changed[t.memory()]; other != nil && !slices.Contains(updates, i) {
			return fmt.Errorf("%v, which is changed, shares memory with %v, which is read, want them apart", other, t)
		}
	}
	return nil
}

// place adds an operation that has been checked.
func (g *Graph) place(op Op, pos Position, in []*Tensor, outs []Spec) []*Tensor {
	b := g.blocks[len(g.blocks)-1]
	n := &node{op: op, graph: g, in: slices.Clone(in), pos: pos, block: b, number: b.parts}
	b.parts++
	for i, t := range in {
		n.in[i] = g.unpinned(t)
	}
	n.index = len(g.nodes)
	if u, is := op.(Updater); is {
		n.updates = u.Updates()
		for _, i := range n.updates {
			if i >= 0 {
				g.write(n, i)
			}
		}
	}
	for i, s := range outs {
		t := g.tensor(s.clone())
		t.node, t.out = n, i
		if i < len(n.updates) && n.updates[i] >= 0 {
			t.root = n.in[n.updates[i]].memory()
		}
		n.out = append(n.out, t)
	}
	g.nodes = append(g.nodes, n)
	return slices.Clone(n.out)
}
