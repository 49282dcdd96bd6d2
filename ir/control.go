package ir

import "gogcl.dev/tensor"

// control is an operation without a computation of its own: when a program is planned, steps are put in its place. What
// is true of one kind alone that kind says, and everything else asks it. So a new kind is a file, and what it may do
// beside, as the interfaces below have it.
type control interface {
	Op

	// runs are the graphs that it calls.
	runs() []*Graph

	// lower lists the steps in its place, given where its inputs lie, and says where its outputs do.
	lower(l *lowering, n *node, in []*location, where map[*Tensor]*location) ([]*step, error)

	// goBack builds the gradient, or says why there is none.
	goBack(b *back, n *node) error
}

// replaced is the part of a control that is no operation.
type replaced struct{}

func (replaced) Bind(*Memory) (func() error, error) { return nil, errInPlace }

// persistent is an operation whose output has memory that is its own for ever.
type persistent interface {
	control

	// begins is what the output begins with, and what is wrong where it has other data in another process.
	begins(n *node) (data *tensor.Tensor, wrong string)
}

// carrying is a call whose first outputs are its first inputs in their last state: a loop.
type carrying interface {
	carried() int // how many
	turns() int
}

// ending is an operation that ends what another one has begun.
type ending interface{ begun() *node }

// beside is an operation that begins or ends what runs beside the replica.
type beside interface {
	needs() int // bytes of memory of its own
}

// phrased is an operation that programs as text have in words of its own. given lists some of its inputs.
type phrased interface {
	phrase(n *node, given func(first, count int) string) string
}

// moving is an operation that moves a tensor by a stream.
type moving interface{ moves() *Stream }

// loading is an operation that loads the code of a graph.
type loading interface{ loads() *Graph }

// calls are the graphs that a node calls.
func (n *node) calls() []*Graph {
	if c, is := n.op.(control); is {
		return c.runs()
	}
	return nil
}

// persistent reports whether a node's outputs have memory that is theirs for ever.
func (n *node) persistent() bool {
	_, is := n.op.(persistent)
	return is
}

// carried is how many first outputs of a node are its first inputs in their last state.
func (n *node) carried() int {
	if c, is := n.op.(carrying); is {
		return c.carried()
	}
	return 0
}

// begun is the node that a node ends, or nil.
func (n *node) begun() *node {
	if e, is := n.op.(ending); is {
		return e.begun()
	}
	return nil
}

// beside reports whether a node begins or ends what runs beside the replica.
func (n *node) beside() bool {
	_, is := n.op.(beside)
	return is
}

// loads is the graph whose code a node loads, or nil.
func (n *node) loads() *Graph {
	if c, is := n.op.(loading); is {
		return c.loads()
	}
	return nil
}

// moves is the stream by which a node moves a tensor, or nil.
func (n *node) moves() *Stream {
	if m, is := n.op.(moving); is {
		return m.moves()
	}
	return nil
}
