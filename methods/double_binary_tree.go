package methods

import (
	"fmt"

	"gogcl.dev/methods/schedule"
)

// DoubleBinaryTree returns the Generator of broadcasts, reduces and all-reduces along two binary trees at once, each of
// which carries half of the data in a pipeline of pieces. Ranks that are inner nodes of one tree are leaves of the
// other. So all ranks send, where the leaves of one tree alone would not. A rank sends to its one child in even rounds
// and to the other in odd ones. It hears from its parent in one tree in even rounds, and from that in the other tree in
// odd ones. So in no round does it send to two ranks or hear from two.
//
//	N ranks, n bytes, P pieces a tree,     rounds, at most   sent by a rank, at most   sent by all ranks
//	L = 1 + floor(log2 (N-1))
//	broadcast                              2 (L+P-1)         n                         n (N-1)
//	reduce, a broadcast backwards          2 (L+P-1)         n                         n (N-1)
//	all-reduce, a reduce to rank 0         4 (L+P-1)         2n                        2n (N-1)
//	            and a broadcast from there
//
// A message is n/2P bytes. More pieces make rounds shorter and more numerous: few for short data, many for long data.
//
// The places 1 to m = N-1 behind the root are numbered from left to right through the first tree, so that the odd ones
// are its leaves. The second tree is the first one with the places mirrored if m is even, and else shifted by one. Both
// tops are children of the root.
//
//	   4              3
//	 ┌─┴─┐          ┌─┴─┐
//	 2   6          1   5           N = 7: the trees of the places 1 to 6
//	┌┴┐ ┌┘          └┐ ┌┴┐
//	1 3 5            2 4 6
//
// An inner node folds what its children send in the order of their rounds. That is not the order of the ranks, so the
// Generator does no request with RankOrder. Its schedules fail with an error if there are fewer than 1 or more than
// 65536 pieces.
//
// Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
// Computing 35, 2009.
//
//	broadcast, 4 ranks, 2 chunks, 4 rounds
//	round | rank 0    | rank 1 | rank 2 | rank 3
//	------+-----------+--------+--------+-------
//	    0 | I1>3      |        |        | O1<0
//	      | then      |        |        |
//	      | O0-1=I0-1 |        |        |
//	    1 | I0>2      | O1<3   | O0<0   | O1>1
//	    2 |           | O0<2   | O0>1   | O1>2
//	      |           |        | O1<3   |
//	    3 | -         | -      | O0>3   | O0<2
//
//	broadcast, 7 ranks, 4 chunks, 8 rounds
//	round   0   1     2     3       4       5     6   7
//	rank 0 ─●─ ───●─ ───●─ ─────●─ ─────── ───── ─── ───
//	        │     │     │       │
//	rank 1 ─│─ ─▲─│─ ─●─│─ ─▲───│─ ─▲───── ───── ─▲─ ───
//	        │   │ │   │ │   │   │   │             │
//	rank 2 ─│─ ─│─│─ ─▼─│─ ─│─▲─│─ ─▼───── ─●─▲─ ─●─ ─●─
//	        │   │ │     │   │ │ │           │ │       │
//	rank 3 ─▼─ ─●─│─ ─●─▼─ ─●─│─│─ ───●─── ─▼─│─ ─── ─▼─
//	              │   │       │ │     │       │
//	rank 4 ─── ───▼─ ─│─●─ ───●─▼─ ─▲─│─●─ ───●─ ─▲─ ───
//	                  │ │           │ │ │         │
//	rank 5 ─── ───── ─▼─│─ ─▲───── ─●─▼─│─ ─▲─── ─●─ ───
//	                    │   │           │   │
//	rank 6 ─── ───── ───▼─ ─▼───── ─────▼─ ─▼─── ─── ───
//
//	reduce, 7 ranks, 2 chunks, 6 rounds
//	round   0   1   2   3     4     5
//	rank 0 ─── ─── ─── ───── ───⊕─ ─⊕─
//	                            │   │
//	rank 1 ─── ─●─ ─── ─⊕─── ─●─│─ ─│─
//	            │       │     │ │   │
//	rank 2 ─⊕─ ─⊕─ ─●─ ─●─── ─│─│─ ─│─
//	        │       │         │ │   │
//	rank 3 ─●─ ─── ─│─ ─⊕─── ─⊕─│─ ─●─
//	                │   │       │
//	rank 4 ─── ─●─ ─⊕─ ─│─⊕─ ───●─ ───
//	            │       │ │
//	rank 5 ─── ─⊕─ ─⊕─ ─●─│─ ───── ───
//	                │     │
//	rank 6 ─── ─── ─⊕─ ───●─ ───── ───
//
//draw:double_binary_tree broadcast 4 pieces=1
//shape:double_binary_tree broadcast 7 pieces=2
//shape:double_binary_tree reduce 7 pieces=1
func DoubleBinaryTree(pieces int) Generator {
	check := func() error {
		if pieces < 1 || pieces > specPieces {
			return fmt.Errorf("a double binary tree of %d pieces a tree, want 1 to %d", pieces, specPieces)
		}
		return nil
	}
	return listed{func(r Request) (*schedule.Builder, error) {
		if err := check(); err != nil {
			return nil, err
		}
		return doubleBinaryTree(r, pieces)
	}, func(r Request) error {
		if err := check(); err != nil {
			return err
		}
		return onlyOf(func(*Request) int { return 2 * pieces }, schedule.AllReduce, schedule.Broadcast,
			schedule.Reduce)(r)
	}}
}

func doubleBinaryTree(r Request, pieces int) (*schedule.Builder, error) {
	if err := r.only(schedule.AllReduce, schedule.Broadcast, schedule.Reduce); err != nil {
		return nil, err
	}
	b, err := r.builder(2 * pieces)
	if err != nil {
		return nil, err
	}
	edges := twoTrees(r.Size)
	rounds := 0
	for _, e := range edges {
		rounds = max(rounds, e.start+2*(pieces-1)+1)
	}
	begin := 0 // of the broadcast
	if r.Collective.Contract().Combines {
		begin = rounds
		for _, e := range edges {
			for i := range pieces {
				b.Fold(rounds-1-e.start-2*i, r.actual(e.child), r.actual(e.parent), e.tree*pieces+i, 1)
			}
		}
	}
	if r.Collective != schedule.Reduce {
		for _, e := range edges {
			for i := range pieces {
				b.Copy(begin+e.start+2*i, r.actual(e.parent), r.actual(e.child), e.tree*pieces+i, 1)
			}
		}
	}
	return b, nil
}

// treeEdge is an edge of one of two trees, from a place to one below. Piece i of a broadcast goes down it in round
// start+2i.
type treeEdge struct {
	tree          int // 0 or 1
	parent, child int
	start         int
}

// twoTrees are the edges of the two trees below place 0, of size places. Edges that begin, or that end, at one place
// start in rounds of which one is even and one odd.
func twoTrees(size int) []treeEdge {
	m := size - 1
	edges := make([]treeEdge, 0, 2*m)
	for place := 1; place <= m; place++ {
		edges = append(edges, treeEdge{tree: 0, parent: inOrderParent(place, m), child: place})
	}
	for place := 1; place <= m; place++ {
		edges = append(edges, treeEdge{tree: 1, parent: second(edges[place-1].parent, m), child: second(place, m)})
	}
	odd := parities(edges, size)
	into := [2][]int{make([]int, size), make([]int, size)} // by tree and place: the edge that ends there
	for i, e := range edges {
		into[e.tree][e.child] = i
	}
	for i := range edges {
		edges[i].start = -1
	}
	var start func(i int) int
	start = func(i int) int {
		e := &edges[i]
		if e.start < 0 {
			first := 0
			if e.parent > 0 {
				first = start(into[e.tree][e.parent]) + 1
			}
			e.start = first + (first+odd[i])%2
		}
		return e.start
	}
	for i := range edges {
		start(i)
	}
	return edges
}

// inOrderParent is the parent of a place of the first tree, whose places are numbered from left to right: a place that
// ends with more binary zeros is further up. 0: it is the top.
func inOrderParent(place, m int) int {
	bit := place & -place
	if up := place ^ bit | bit<<1; up <= m {
		return up
	}
	return place ^ bit
}

// second is the place of the second tree that stands where place does in the first. That of the root is 0.
func second(place, m int) int {
	switch {
	case place == 0:
		return 0
	case m%2 == 0:
		return m + 1 - place
	}
	return place%m + 1
}

// parities says for each edge whether it is for odd rounds, 1, or for even ones, 0. No place has two edges of a kind to
// children, or two to parents. There are at most two of either, so edges that share an end make paths and circles, of
// which those beside each other differ. A circle is even: along it edges share a parent and a child by turns.
func parities(edges []treeEdge, size int) []int {
	down, up := make([][]int, size), make([][]int, size) // by place: its edges to children, and to parents
	for i, e := range edges {
		down[e.parent] = append(down[e.parent], i)
		up[e.child] = append(up[e.child], i)
	}
	odd := make([]int, len(edges))
	for i := range odd {
		odd[i] = -1
	}
	for i := range edges {
		if odd[i] >= 0 {
			continue
		}
		odd[i] = 0
		for todo := []int{i}; len(todo) > 0; {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, beside := range [][]int{down[edges[at].parent], up[edges[at].child]} {
				for _, j := range beside {
					if odd[j] < 0 {
						odd[j] = 1 - odd[at]
						todo = append(todo, j)
					}
				}
			}
		}
	}
	return odd
}
