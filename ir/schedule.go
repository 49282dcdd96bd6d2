package ir

import "slices"

// scheduled returns the nodes of a graph in the order in which they run. Within what data, effects and blocks demand,
// that is the one in which, step by step, least memory is alive: of the nodes that may come next, the one that frees
// most beyond what it needs, or of equal ones the first built. It depends on nothing but the graph.
func (g *Graph) scheduled() []*node {
	if g.order != nil && len(g.order) == len(g.nodes) {
		return g.order
	}
	after := g.constraints()
	waits := make([]int, len(after)) // how many must come before; beyond the nodes, of gates
	for _, list := range after {
		for _, next := range list {
			waits[next]++
		}
	}
	readers := g.readers()
	readBy := map[*Tensor][]int{}
	reads := make([][]*Tensor, len(g.nodes))
	next := &agenda{costs: make([]int, len(g.nodes)), done: make([]bool, len(g.nodes))}
	for i, n := range g.nodes {
		w := n.weight()
		next.costs[i], reads[i] = w.cost(readers), w.reads
		for _, t := range w.reads {
			readBy[t] = append(readBy[t], i)
		}
	}
	var open func(i int)
	open = func(i int) {
		if i < len(g.nodes) {
			next.add(i)
			return
		}
		for _, later := range after[i] {
			if waits[later]--; waits[later] == 0 {
				open(later)
			}
		}
	}
	for i, n := range slices.Clone(waits) {
		if n == 0 {
			open(i)
		}
	}
	g.order = g.order[:0]
	for i, more := next.next(); more; i, more = next.next() {
		for _, t := range reads[i] {
			if readers[t]--; readers[t] != 1 {
				continue
			}
			for _, r := range readBy[t] { // the one that is left now frees the tensor
				if !next.done[r] {
					next.costs[r] -= t.sp.Bytes()
					if waits[r] == 0 {
						next.add(r)
					}
				}
			}
		}
		g.order = append(g.order, g.nodes[i])
		for _, later := range after[i] {
			if waits[later]--; waits[later] == 0 {
				open(later)
			}
		}
	}
	g.worked = next.worked
	return g.order
}

// weight is what a node needs and what it reads.
type weight struct {
	needs int // bytes of outputs with memory of their own
	reads []*Tensor
}

func (n *node) weight() weight {
	w := weight{reads: unique(n.in)}
	if b, is := n.op.(beside); is {
		w.needs = b.needs()
		return w
	}
	for _, t := range n.out {
		if t.root == nil && !n.persistent() {
			w.needs += t.sp.Bytes()
		}
	}
	return w
}

// cost is by how many bytes a node makes more memory be alive.
func (w *weight) cost(readers map[*Tensor]int) int {
	cost := w.needs
	for _, t := range w.reads {
		if readers[t] == 1 {
			cost -= t.sp.Bytes()
		}
	}
	return cost
}

// readers counts, for each memory that can be freed, the nodes that read it.
func (g *Graph) readers() map[*Tensor]int {
	count := map[*Tensor]int{}
	for _, n := range g.nodes {
		for _, t := range unique(n.in) {
			if t.node != nil && !t.node.persistent() {
				count[t]++
			}
		}
	}
	for _, t := range g.outputs {
		delete(count, t.memory())
	}
	return count
}

// unique is the memories of some tensors.
func unique(in []*Tensor) []*Tensor {
	var out []*Tensor
	for _, t := range in {
		if m := t.memory(); !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// constraints has, for each node, those that must come after it. Beyond the nodes are gates, which stand between the
// nodes that come before and those that come after, however many there are.
func (g *Graph) constraints() [][]int {
	after := make([][]int, len(g.nodes))
	edge := func(from, to int) { // which may be there already
		if from != to {
			after[from] = append(after[from], to)
		}
	}
	written := map[*Tensor]int{}  // by memory: the last node that changed it
	readBy := map[*Tensor][]int{} // and those that have read it since
	ordered := map[any]int{}      // by key: the last node
	for i, n := range g.nodes {
		if start := n.begun(); start != nil {
			edge(start.index, i)
		}
		for _, t := range n.in {
			m := t.memory()
			if t.node != nil {
				edge(t.node.index, i)
			}
			if w, is := written[m]; is {
				edge(w, i)
			}
		}
		for _, t := range unique(n.in) {
			readBy[t] = append(readBy[t], i)
		}
		for _, k := range n.modifies {
			m := n.in[k].memory()
			for _, r := range readBy[m] {
				edge(r, i)
			}
			written[m], readBy[m] = i, nil
		}
		for _, key := range n.orderKeys() {
			if last, is := ordered[key]; is {
				edge(last, i)
			}
			ordered[key] = i
		}
	}
	g.sequences(func(before, later []int) {
		gate := len(after)
		after = append(after, later)
		for _, i := range before {
			after[i] = append(after[i], gate)
		}
	})
	return after
}

// pairs is constraints without gates, each node once.
func (g *Graph) pairs() [][]int {
	all := g.constraints()
	out := make([][]int, len(g.nodes))
	for i := range out {
		for _, next := range all[i] {
			if next < len(g.nodes) {
				out[i] = append(out[i], next)
			} else {
				out[i] = append(out[i], all[next]...)
			}
		}
		slices.Sort(out[i])
		out[i] = slices.Compact(out[i])
	}
	return out
}

// orderKeys are the keys of a node's effects: also those of the graphs that it calls.
func (n *node) orderKeys() []any {
	var keys []any
	add := func(more ...any) {
		for _, k := range more {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	if o, is := n.op.(Ordered); is {
		add(o.OrderKey())
	}
	if start := n.begun(); start != nil { // what comes after it comes after the call
		add(start.orderKeys()...)
	}
	for _, called := range n.calls() {
		add(called.orderKeys()...)
	}
	return keys
}

// sequences adds what InSequence demands: of each such block, all nodes of a part come before all of the next.
func (g *Graph) sequences(apart func(before, later []int)) {
	type part struct {
		number int
		nodes  []int
	}
	parts := map[*block][]part{}
	for i, n := range g.nodes {
		number := n.number
		for b := n.block; b != nil; number, b = b.number, b.parent {
			if !b.ordered {
				continue
			}
			list := parts[b]
			if last := len(list) - 1; last < 0 || list[last].number != number {
				list = append(list, part{number: number})
			}
			last := &list[len(list)-1]
			last.nodes = append(last.nodes, i)
			parts[b] = list
		}
	}
	for _, list := range parts {
		for k := 1; k < len(list); k++ {
			apart(list[k-1].nodes, list[k].nodes)
		}
	}
}
