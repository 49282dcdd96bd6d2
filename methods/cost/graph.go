package cost

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// graph is a network in which messages take a shortest way: the fewest links, and of several such ways the one that a
// breadth-first search finds first that looks at nodes with low numbers first.
type graph struct {
	replicas int // the first nodes; the others are switches
	links    []Link
	edges    [][]edge // by node: where its links lead, ascending
	begins   []int32  // by link: the node that it leads from
	lines    []line   // of a Graph
	trees    []atomic.Pointer[tree]
	searches sync.Pool // of *breadth
}

// edge is a link as seen from its beginning.
type edge struct{ to, link int32 }

// tree holds the shortest ways from a node: for each node the link by which they come there, -1 where no way leads.
type tree struct {
	root int
	by   []int32
}

// treeNodes bounds the nodes of the trees that a graph remembers: 64 MiB.
const treeNodes = 1 << 24

// newGraph makes a graph without links of so many replicas and switches.
func newGraph(replicas, switches int) *graph {
	nodes := replicas + switches
	return &graph{
		replicas: replicas,
		edges:    make([][]edge, nodes),
		trees:    make([]atomic.Pointer[tree], min(nodes, max(treeNodes/max(nodes, 1), 1))),
	}
}

// add adds a link, after which sorted has to be called.
func (g *graph) add(from, to int, l Link) {
	g.edges[from] = append(g.edges[from], edge{int32(to), int32(len(g.links))})
	g.links = append(g.links, l)
	g.begins = append(g.begins, int32(from))
}

// sorted brings the links of each node in order.
func (g *graph) sorted() *graph {
	for _, e := range g.edges {
		slices.SortFunc(e, func(a, b edge) int { return cmp.Compare(a.to, b.to) })
	}
	return g
}

// Replicas is how many there are, without the switches.
func (g *graph) Replicas() int {
	if g == nil {
		return 0
	}
	return g.replicas
}

// Links is how many there are: a line "link" of a file makes two.
func (g *graph) Links() int {
	if g == nil {
		return 0
	}
	return len(g.links)
}

// Link returns the link of a number, the zero Link where there is none.
func (g *graph) Link(number int) Link {
	if number < 0 || number >= g.Links() {
		return Link{}
	}
	return g.links[number]
}

// Route appends the links of a shortest way. An error is that of ends that do not exist or are the same, and of two
// replicas between which no way leads.
func (g *graph) Route(links []int, from, to int) ([]int, error) {
	if err := checkEnds(from, to, g.Replicas()); err != nil {
		return links, err
	}
	if i, ok := slices.BinarySearchFunc(g.edges[from], to, func(e edge, to int) int {
		return cmp.Compare(int(e.to), to)
	}); ok {
		return append(links, int(g.edges[from][i].link)), nil
	}
	t, first := g.tree(from), len(links)
	for at := to; at != from; at = int(g.begins[t.by[at]]) {
		if t.by[at] < 0 {
			return links[:first], fmt.Errorf("cost: no way leads from replica %d to replica %d", from, to)
		}
		links = append(links, int(t.by[at]))
	}
	slices.Reverse(links[first:])
	return links, nil
}

// tree returns the tree of a node. Several callers at once find the same one: the last to have made it stays.
func (g *graph) tree(root int) *tree {
	if t := g.trees[root%len(g.trees)].Load(); t != nil && t.root == root {
		return t
	}
	s, _ := g.searches.Get().(*breadth)
	if s == nil {
		s = &breadth{}
	}
	defer g.searches.Put(s)
	return g.search(root, s)
}

// breadth is the memory of a search in a graph.
type breadth struct {
	found []int32 // nodes, in the order in which they are found
	by    []int32 // as in a tree
}

// search finds the shortest ways from a node, and keeps its tree.
func (g *graph) search(root int, s *breadth) *tree {
	if s.by == nil {
		s.by, s.found = make([]int32, len(g.edges)), make([]int32, 0, len(g.edges))
	}
	by := s.by
	for i := range by {
		by[i] = -1
	}
	by[root] = 0 // so that no way leads back
	found := append(s.found[:0], int32(root))
	for i := 0; i < len(found); i++ {
		for _, e := range g.edges[found[i]] {
			if by[e.to] < 0 {
				by[e.to] = e.link
				found = append(found, e.to)
			}
		}
	}
	by[root] = -1
	s.found = found
	kept := &g.trees[root%len(g.trees)]
	t := kept.Load()
	if t == nil || t.root != root {
		t = &tree{root, slices.Clone(by)}
		kept.Store(t)
	}
	return t
}

// checkEnds refuses the ends of a message that a network of so many replicas does not have, and a message from a
// replica to itself.
func checkEnds(from, to, replicas int) error {
	if from < 0 || to < 0 || from >= replicas || to >= replicas || from == to {
		return fmt.Errorf("cost: a message from replica %d to replica %d of %d", from, to, replicas)
	}
	return nil
}
