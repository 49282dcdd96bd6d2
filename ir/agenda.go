package ir

import (
	"cmp"
	"container/heap"
)

// agenda is the nodes of a graph that may come next, the one that costs least first, or of equal ones the first built.
// A node whose cost falls is put on it again; the entry with the old cost is passed over when it comes up.
type agenda struct {
	entries []agendaEntry
	costs   []int // by node: the current one
	done    []bool
	worked  int // pairs of entries compared, and entries added; for tests
}

type agendaEntry struct{ cost, node int }

func (a *agenda) Len() int      { return len(a.entries) }
func (a *agenda) Swap(i, k int) { a.entries[i], a.entries[k] = a.entries[k], a.entries[i] }
func (a *agenda) Push(x any) {
	a.worked++
	a.entries = append(a.entries, x.(agendaEntry))
}

func (a *agenda) Less(i, k int) bool {
	a.worked++
	x, y := a.entries[i], a.entries[k]
	return cmp.Or(cmp.Compare(x.cost, y.cost), cmp.Compare(x.node, y.node)) < 0
}

func (a *agenda) Pop() any {
	last := len(a.entries) - 1
	x := a.entries[last]
	a.entries = a.entries[:last]
	return x
}

// add puts a node on the agenda at its current cost.
func (a *agenda) add(node int) { heap.Push(a, agendaEntry{a.costs[node], node}) }

// next takes the node that comes next, or returns false.
func (a *agenda) next() (node int, more bool) {
	for len(a.entries) > 0 {
		x := heap.Pop(a).(agendaEntry)
		if !a.done[x.node] && a.costs[x.node] == x.cost {
			a.done[x.node] = true
			return x.node, true
		}
	}
	return 0, false
}
