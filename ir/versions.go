package ir

import (
	"cmp"
	"errors"
	"slices"
)

// What is changed in place has versions: every change makes a new one, and what reads a tensor, by whichever of its
// handles, reads the version that the last change before has made. Gradients are of versions. Entries of buffers, which
// a Storer stores and loads, have versions too: every store makes one.

// cell is what versions are of: the memory of a tensor, or an entry of a buffer.
type cell struct {
	memory *Tensor
	buffer any // the key of Storers; nil: it is a tensor's memory
	entry  int // wholeBuffer: all of them, as one tensor
}

// wholeBuffer stands for all entries of a buffer, where the number of one of them is computed.
const wholeBuffer = -1

// value is a version of a cell.
type value struct {
	cell
	by *node // that has made it by a change; nil: it was made with the tensor, or the graph finds it
}

// made is the version that a tensor begins with.
func made(t *Tensor) value { return value{cell: cell{memory: t.memory()}} }

// flow says which versions the operations of a graph read and make.
type flow struct {
	in      map[*node][]value // by input
	entries map[*node][]value // of buffers: those that a node may read, as it finds them
	changes map[*node][]value // as a node leaves what it changes
	last    map[cell]*node    // what has made the last version; nil: there is no change
}

// end is the last version of a cell.
func (f *flow) end(c cell) value { return value{c, f.last[c]} }

// out are the versions that a node makes: of its outputs, and of what it changes.
func (f *flow) out(n *node) []value {
	out := slices.Clone(f.changes[n])
	for _, t := range n.out {
		if t.root == nil {
			out = append(out, made(t))
		}
	}
	return out
}

// output is the version that an output of a node is.
func (f *flow) output(n *node, i int) value {
	v := made(n.out[i])
	if n.out[i].root != nil {
		v.by = n
	}
	return v
}

// flow finds the versions of a graph, once.
func (d *differ) flow(g *Graph) *flow {
	if f := d.flows[g]; f != nil {
		return f
	}
	f := &flow{in: map[*node][]value{}, entries: map[*node][]value{}, changes: map[*node][]value{},
		last: map[cell]*node{}}
	d.flows[g] = f
	for _, n := range g.nodes { // as they were built, which is an order in which they may run
		var in []value
		for _, t := range n.in {
			in = append(in, f.end(cell{memory: t.memory()}))
		}
		f.in[n] = in
		reads, writes := d.entriesOf(n)
		for _, c := range reads {
			f.entries[n] = append(f.entries[n], f.end(c))
		}
		var changed []cell
		for _, i := range n.modifies {
			changed = append(changed, cell{memory: n.in[i].memory()})
		}
		for _, c := range append(changed, writes...) {
			f.last[c] = n
			f.changes[n] = append(f.changes[n], value{c, n})
		}
	}
	return f
}

// varies are the versions that depend on some inputs of the graph, or on what it finds in some entries of buffers.
func (f *flow) varies(g *Graph, inputs []*Tensor, entries []cell) map[value]bool {
	out := map[value]bool{}
	for _, t := range inputs {
		out[made(t)] = true
	}
	for _, c := range entries {
		out[value{cell: c}] = true
	}
	is := func(v value) bool { return out[v] }
	for _, n := range g.nodes {
		if slices.ContainsFunc(f.in[n], is) || slices.ContainsFunc(f.entries[n], is) {
			for _, v := range f.out(n) {
				out[v] = true
			}
		}
	}
	return out
}

// leads are the versions that lead to some others.
func (f *flow) leads(g *Graph, to []value) map[value]bool {
	out := map[value]bool{}
	for _, v := range to {
		out[v] = true
	}
	for _, n := range slices.Backward(g.nodes) {
		if slices.ContainsFunc(f.out(n), func(v value) bool { return out[v] }) {
			for _, v := range append(slices.Clone(f.in[n]), f.entries[n]...) {
				out[v] = true
			}
		}
	}
	return out
}

// buffer is what a differ knows of a buffer of Storers.
type buffer struct {
	spec    Spec // of an entry
	entries int
	whole   bool // the number of an entry is computed somewhere
}

// touched are the entries of buffers of floats that a graph reads or writes, with those that it calls.
type touched struct{ reads, writes []cell }

// findBuffers looks at all Storers of a graph and of those that it calls.
func (d *differ) findBuffers(g *Graph, seen map[*Graph]bool) {
	if seen[g] {
		return
	}
	seen[g] = true
	for _, n := range g.nodes {
		if s, is := n.op.(Storer); is {
			at, of, spec, floats := n.stores(s)
			if !floats {
				continue
			}
			if d.buffers[s.OrderKey()] == nil {
				d.buffers[s.OrderKey()] = &buffer{spec: spec}
			}
			b := d.buffers[s.OrderKey()]
			b.entries, b.whole = max(b.entries, of), b.whole || at < 0
		}
		for _, called := range n.calls() {
			d.findBuffers(called, seen)
		}
	}
}

// stores says which entry a Storer stores or loads, of how many, of which spec, and whether that is of floats.
func (n *node) stores(s Storer) (at, of int, spec Spec, floats bool) {
	at, of, stores := s.Entry()
	list := n.out
	if stores {
		list = n.in
	}
	if len(list) == 0 {
		return at, of, Spec{}, false
	}
	return at, of, list[0].sp, list[0].sp.DType.IsFloat()
}

// cell is the entry that a Storer of floats stores or loads.
func (d *differ) cell(s Storer) cell {
	at, _, _ := s.Entry()
	if d.buffers[s.OrderKey()].whole {
		at = wholeBuffer
	}
	return cell{buffer: s.OrderKey(), entry: at}
}

// entriesOf are the entries of buffers that a node may read, and those that it may write. What may not be written after
// all is read too.
func (d *differ) entriesOf(n *node) (reads, writes []cell) {
	if s, is := n.op.(Storer); is {
		if _, _, _, floats := n.stores(s); !floats {
			return nil, nil
		}
		c := d.cell(s)
		if _, _, stores := s.Entry(); !stores {
			return []cell{c}, nil
		}
		if c.entry == wholeBuffer {
			reads = []cell{c}
		}
		return reads, []cell{c}
	}
	if start := n.begun(); start != nil { // what runs beside reads and writes at any time from the start to here
		return d.entriesOf(start)
	}
	for _, called := range n.calls() {
		t := d.touches(called)
		reads, writes = joined(reads, t.reads), joined(writes, t.writes)
	}
	if _, is := n.op.(*callOp); !is {
		reads = joined(reads, writes)
	}
	return reads, writes
}

// touches is what a graph touches, found once.
func (d *differ) touches(g *Graph) *touched {
	if t := d.touching[g]; t != nil {
		return t
	}
	t := &touched{}
	d.touching[g] = t
	for _, n := range g.nodes {
		reads, writes := d.entriesOf(n)
		t.reads, t.writes = joined(t.reads, reads), joined(t.writes, writes)
	}
	return t
}

// joined is the cells of two lists, each once.
func joined(a, b []cell) []cell {
	for _, c := range b {
		if !slices.Contains(a, c) {
			a = append(slices.Clone(a), c)
		}
	}
	return a
}

// keepOp is a copy of a version of a tensor that is changed later, for a gradient.
type keepOp struct {
	replaced
	here bool // an operation of the same graph reads it; else it is made only where a call gives it out
}

func (*keepOp) Name() string                    { return "keep" }
func (*keepOp) Infer(in []Spec) ([]Spec, error) { return in, nil }
func (*keepOp) runs() []*Graph                  { return nil }

func (o *keepOp) lower(l *lowering, n *node, in []*location, where map[*Tensor]*location) ([]*step, error) {
	if where[n.out[0]] == nil && !o.here { // this call does not give it out
		return nil, nil
	}
	return []*step{{node: n, from: in[0], to: l.wanted(n.out[0], where)}}, nil
}

func (o *keepOp) goBack(b *back, n *node) error {
	b.add(b.flow.in[n][0], b.grad(b.flow.output(n, 0)), n)
	return nil
}

// keep is a tensor of the graph that holds a version of another for good. The operation that makes it is put behind
// the one that makes the version.
func (g *Graph) keep(v value, here bool) *Tensor {
	t := g.kept[v]
	if t == nil {
		if g.program.sessions {
			g.refuse("keep", caller(""), errSession)
			return g.broken()
		}
		n := &node{op: &keepOp{}, graph: g, in: []*Tensor{v.memory}, block: g.blocks[0]}
		at := 0
		if maker := cmp.Or(v.by, v.memory.node); maker != nil {
			n.pos, n.block, n.number, at = maker.pos, maker.block, maker.number, maker.index+1
		}
		t = g.tensor(v.memory.sp.clone())
		t.name, t.node = v.memory.name, n
		n.out = []*Tensor{t}
		g.nodes = slices.Insert(g.nodes, at, n)
		for i, n := range g.nodes[at:] {
			n.index = at + i
		}
		g.order = nil
		if g.kept == nil {
			g.kept = map[value]*Tensor{}
		}
		g.kept[v] = t
	}
	if len(g.written[t]) > 0 { // somebody has changed what By had given
		return g.keep(made(t), here)
	}
	if op, is := t.node.op.(*keepOp); is && here {
		op.here = true
	}
	return t
}

// pinned is what a handle that stands for one version for good knows of it.
type pinned struct {
	of *Tensor
	by *node // as value has it
}

// pin returns a handle of a tensor that stands for one version of it, whatever changes it later.
func (t *Tensor) pin(by *node) *Tensor {
	p := *t
	p.root, p.pinned = t.memory(), &pinned{t, by}
	return &p
}

// unpinned is the tensor that an operation reads which is built now and is given a handle: of a pinned one that has
// changed since, what was kept.
func (g *Graph) unpinned(t *Tensor) *Tensor {
	if t == nil || t.pinned == nil {
		return t
	}
	v := value{cell{memory: t.memory()}, t.pinned.by}
	if g.changedBy(v.memory, len(g.nodes)) == v.by {
		return t.pinned.of
	}
	return g.keep(v, true)
}

// changedBy is the last node before one of an index that changes a memory, or nil.
func (g *Graph) changedBy(memory *Tensor, before int) *node {
	var last *node
	for _, n := range g.written[memory] {
		if n.index < before && (last == nil || n.index > last.index) {
			last = n
		}
	}
	return last
}

// write notes that a node changes an input.
func (g *Graph) write(n *node, i int) {
	if g.written == nil {
		g.written = map[*Tensor][]*node{}
	}
	n.modifies = append(n.modifies, i)
	m := n.in[i].memory()
	g.written[m] = append(g.written[m], n)
}

var errDifferentiated = errors.New("the gradient of the graph has been built, of tensors as they are without this")
