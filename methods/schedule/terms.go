package schedule

import "fmt"

// value is a symbolic value: an index into terms, or none.
type value int32

// none is the value of what was never written.
const none value = 0

// term is an expression over contributions to one chunk. The contribution of rank r to chunk f is a leaf; everything
// else is the combination of two terms for one chunk. The two sides of a combination stand in a fixed order, since
// operators are commutative to the bit.
type term struct {
	chunk int
	ranks []uint64 // bit set of the ranks whose contributions it holds
}

// terms makes each distinct expression once, so that equal expressions are equal values.
type terms struct {
	size  int
	again bool    // a contribution may be combined more than once
	list  []term  // list[0] stands for none
	leafs []value // by chunk*size + rank; none where nobody asked yet
	nodes map[[2]value]value
	folds []value  // by chunk; none where nobody asked yet
	words []uint64 // room for sets of ranks; handed out from the front
}

func newTerms(size, chunks int, again bool) *terms {
	return &terms{size: size, again: again, list: make([]term, 1, 2*chunks), leafs: make([]value, size*chunks),
		nodes: map[[2]value]value{}, folds: make([]value, chunks)}
}

// set returns an empty set of ranks.
func (t *terms) set() []uint64 {
	n := (t.size + 63) / 64
	if len(t.words) < n {
		t.words = make([]uint64, 64*n)
	}
	out := t.words[:n:n]
	t.words = t.words[n:]
	return out
}

// leaf is the contribution of a rank to a chunk.
func (t *terms) leaf(rank, chunk int) value {
	v := &t.leafs[chunk*t.size+rank]
	if *v == none {
		ranks := t.set()
		ranks[rank/64] |= 1 << (rank % 64)
		*v = t.add(term{chunk, ranks})
	}
	return *v
}

// combine is a op b. Both must be for one chunk, and share no contribution unless one may count again.
func (t *terms) combine(a, b value) (value, error) {
	if a > b {
		a, b = b, a
	}
	key := [2]value{a, b}
	if v, ok := t.nodes[key]; ok {
		return v, nil
	}
	ta, tb := t.list[a], t.list[b]
	if ta.chunk != tb.chunk {
		return none, fmt.Errorf("combines chunk %d with chunk %d", ta.chunk, tb.chunk)
	}
	ranks := t.set()
	for i := range ranks {
		if twice := ta.ranks[i] & tb.ranks[i]; twice != 0 && !t.again {
			return none, fmt.Errorf("takes a contribution twice: %v and %v", t.show(a), t.show(b))
		}
		ranks[i] = ta.ranks[i] | tb.ranks[i]
	}
	v := t.add(term{ta.chunk, ranks})
	t.nodes[key] = v
	return v, nil
}

func (t *terms) add(x term) value {
	t.list = append(t.list, x)
	return value(len(t.list) - 1)
}

// contributors lists the ranks whose contributions v holds.
func (t *terms) contributors(v value) []int {
	var out []int
	for r := range t.size {
		if v != none && t.list[v].ranks[r/64]>>(r%64)&1 == 1 {
			out = append(out, r)
		}
	}
	return out
}

// show describes a value for an error.
func (t *terms) show(v value) string {
	if v == none {
		return "nothing"
	}
	return fmt.Sprintf("chunk %d of ranks %v", t.list[v].chunk, t.contributors(v))
}

// fold is the left fold of the contributions to a chunk in rank order.
func (t *terms) fold(chunk int) value {
	if v := t.folds[chunk]; v != none {
		return v
	}
	v := t.leaf(0, chunk)
	for r := 1; r < t.size; r++ {
		v, _ = t.combine(v, t.leaf(r, chunk)) // one chunk, distinct ranks: no error
	}
	t.folds[chunk] = v
	return v
}
