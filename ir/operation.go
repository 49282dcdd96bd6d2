package ir

// Operation is an operation in its place in a graph, for those who look at programs. Two are equal if they are the same
// one. The zero Operation is one that does nothing, in an empty graph.
type Operation struct{ node *node }

// Operations returns the operations of the graph in the order in which they run.
func (g *Graph) Operations() []Operation {
	var out []Operation
	for _, n := range g.orNone().runOrder() {
		out = append(out, Operation{n})
	}
	return out
}

// Followers returns, for each of Operations, the numbers of those that must come after it: which read what it makes, or
// come later for the sake of a change in place, an effect or [Graph.InSequence]. What follows from others need not be
// there.
func (g *Graph) Followers() [][]int {
	g = g.orNone()
	order := g.runOrder()
	place := make([]int, len(order))
	for i, n := range order {
		place[n.index] = i
	}
	out := make([][]int, len(order))
	for from, list := range g.pairs() {
		for _, to := range list {
			out[place[from]] = append(out[place[from]], place[to])
		}
	}
	return out
}

// orNone is the node, or one that stands for none.
func (o Operation) orNone() *node {
	if o.node == nil {
		return &node{op: noOp{}, graph: noProgram().main}
	}
	return o.node
}

// Name returns the name that errors have, as in "host load".
func (o Operation) Name() string { return o.orNone().op.Name() }

// Kind returns what kind it is: see [Kinded].
func (o Operation) Kind() string {
	if k, is := o.orNone().op.(Kinded); is {
		return k.Kind()
	}
	return ""
}

// String is what programs as text call it, as in `host load "x"`.
func (o Operation) String() string { return describeOp(o.orNone().op) }

// Graph returns the graph that it is in.
func (o Operation) Graph() *Graph { return o.orNone().graph }

// Position returns the place in the user's code that built it.
func (o Operation) Position() Position { return o.orNone().pos }

// Inputs returns what it reads. A [Started.Wait] has those of its start, which are read until then.
func (o Operation) Inputs() []*Tensor { return append([]*Tensor(nil), o.orNone().in...) }

// Outputs returns what it makes. A call whose gradient needs more than the called graph returns has further ones: see
// Kept.
func (o Operation) Outputs() []*Tensor { return append([]*Tensor(nil), o.orNone().out...) }

// Kept returns the tensors of the graphs that it calls which the further ones of Outputs are, in their order.
func (o Operation) Kept() []*Tensor { return append([]*Tensor(nil), o.orNone().exports...) }

// Changes reports whether it changes input i where it lies.
func (o Operation) Changes(i int) bool { return o.orNone().changesInput(i) }

// Calls returns the graphs that it calls: one, or of [Graph.If] both. Their inputs are its last ones.
func (o Operation) Calls() []*Graph { return append([]*Graph(nil), o.orNone().calls()...) }

// Turns returns how often it calls its graph: 1 unless it is a loop.
func (o Operation) Turns() int {
	if loop, is := o.orNone().op.(carrying); is {
		return loop.turns()
	}
	return 1
}

// Loads returns the graph whose code it loads, or nil: see [Graph.RemoteCodeLoad].
func (o Operation) Loads() *Graph { return o.orNone().loads() }

// Moves returns the stream by which it moves a tensor, or nil.
func (o Operation) Moves() *Stream { return o.orNone().moves() }

// IsData reports whether it is a constant or a variable, which is there from the start.
func (o Operation) IsData() bool { return o.orNone().persistent() }

// Start returns the [Graph.Start] that it waits for. It is not ok if it is no wait.
func (o Operation) Start() (start Operation, ok bool) {
	begun := o.orNone().begun()
	return Operation{begun}, begun != nil
}
