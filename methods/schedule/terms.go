package schedule

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"
)

// value is a symbolic value: an index into terms, or none.
type value int32

const (
	none   value = 0  // of what was never written
	absent value = -1 // of an expression that nobody has made
)

// term is an expression over contributions to one chunk. The contribution of rank r to chunk f is a leaf; everything
// else is the combination of two terms for one chunk. The two sides of a combination stand in a fixed order, since
// operators are commutative to the bit.
type term struct {
	sum          sum // of the contributors, each as often as it counts; only without sets
	chunk, count int32
	mate, made   value // the first greater value that it was combined with, and the result
}

// termBlock is a power of two: 32 KiB of terms.
const termBlock = 1 << 10

// terms makes each distinct expression once, so that equal expressions are equal values. Contributors are known by
// their sums, or exactly by sets, which cost Size/8 bytes an expression.
type terms struct {
	size   int
	again  bool               // a contribution may be combined more than once
	budget *budget            // for values, and for the machines that make them
	list   [][]term           // in blocks of termBlock, so that growing copies nothing; the first is for none
	count  int                // of terms
	leafs  []value            // by chunk*size + rank; none where nobody asked yet
	nodes  map[[2]value]value // combinations but those with a mate; the lesser value is first
	folds  []value            // by chunk; none where nobody asked yet
	all    sum                // of all ranks

	sets  [][]uint64 // by value: bit sets of ranks; nil: contributors are known by their sums
	words []uint64   // room for sets; handed out from the front
}

func newTerms(size, chunks int, again, exact bool, budget *budget) *terms {
	t := &terms{size: size, again: again, budget: budget, leafs: make([]value, size*chunks),
		nodes: map[[2]value]value{}, folds: make([]value, chunks)}
	if exact {
		t.sets = make([][]uint64, 0, 2*chunks)
	} else {
		t.all = sumOfAll(size)
	}
	t.add(term{}, nil)
	return t
}

// exact reports whether contributors are known exactly.
func (t *terms) exact() bool { return t.sets != nil }

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
	if *v != none {
		return *v
	}
	leaf := term{chunk: int32(chunk), count: 1}
	var ranks []uint64
	if t.exact() {
		ranks = t.set()
		ranks[rank/64] |= 1 << (rank % 64)
	} else {
		leaf.sum = sumOf(rank)
	}
	*v = t.add(leaf, ranks)
	return *v
}

// known is the combination of two values, the lesser first; none if nobody has made it.
func (t *terms) known(a, b value) value {
	if x := t.at(a); x.mate == b {
		return x.made
	}
	return t.nodes[[2]value{a, b}]
}

// errTwice is all that sums say: a value has more contributions than there are ranks.
var errTwice = errors.New("takes a contribution twice")

// combine is a op b. Both must be for one chunk, and share no contribution unless one may count again. Sums show the
// latter in the end only.
func (t *terms) combine(a, b value) (value, error) {
	a, b = min(a, b), max(a, b)
	if v := t.known(a, b); v != none {
		return v, nil
	}
	ta, tb := t.at(a), t.at(b)
	if ta.chunk != tb.chunk {
		return none, &chunkError{int(ta.chunk), true, fmt.Errorf("combines chunk %d with chunk %d", ta.chunk, tb.chunk)}
	}
	both := term{chunk: ta.chunk, count: ta.count + tb.count}
	var ranks []uint64
	if t.exact() {
		ranks, both.count = t.set(), 0
		for i, of := range t.sets[a] {
			if twice := of & t.sets[b][i]; twice != 0 && !t.again {
				return none, &chunkError{int(ta.chunk), true,
					fmt.Errorf("%w: %v and %v", errTwice, t.show(a), t.show(b))}
			}
			ranks[i] = of | t.sets[b][i]
			both.count += int32(bits.OnesCount64(ranks[i]))
		}
	} else {
		both.sum = ta.sum.plus(tb.sum)
		if int(both.count) > t.size {
			return none, &chunkError{int(ta.chunk), false, errTwice}
		}
	}
	v := t.add(both, ranks)
	if x := t.at(a); x.mate == none { // terms may have moved
		x.mate, x.made = b, v
	} else {
		t.nodes[[2]value{a, b}] = v
		t.budget.take(nodeBytes)
	}
	return v, nil
}

// nodeBytes is what an entry of terms.nodes takes: three numbers, in a map that is half full.
const nodeBytes = 24

func (t *terms) add(x term, ranks []uint64) value {
	switch {
	case t.count == 0:
		t.list = append(t.list, nil) // it grows: most schedules have few
	case t.count%termBlock == 0:
		t.list = append(t.list, make([]term, 0, termBlock))
	}
	last := &t.list[len(t.list)-1]
	*last = append(*last, x)
	t.budget.take(int64(unsafe.Sizeof(x)))
	if t.exact() {
		t.sets = append(t.sets, ranks)
		t.budget.take(int64(unsafe.Sizeof(ranks)) + 8*int64(len(ranks)))
	}
	t.count++
	return value(t.count - 1)
}

// at is the term of a value.
func (t *terms) at(v value) *term { return &t.list[uint32(v)/termBlock][uint32(v)%termBlock] }

// complete reports whether v is chunk f of all ranks.
func (t *terms) complete(v value, f int) bool {
	x := t.at(v)
	return v != none && int(x.chunk) == f && int(x.count) == t.size && (t.exact() || x.sum == t.all)
}

// contributors lists the ranks whose contributions v holds; none if they are not known exactly.
func (t *terms) contributors(v value) []int {
	var out []int
	for r := range t.size {
		if v != none && t.exact() && t.sets[v][r/64]>>(r%64)&1 == 1 {
			out = append(out, r)
		}
	}
	return out
}

// show describes a value for an error.
func (t *terms) show(v value) string {
	switch {
	case v == none:
		return "nothing"
	case !t.exact():
		return fmt.Sprintf("chunk %d of %d ranks", t.at(v).chunk, t.at(v).count)
	}
	return fmt.Sprintf("chunk %d of ranks %v", t.at(v).chunk, t.contributors(v))
}

// fold is the left fold of the contributions to a chunk in rank order, absent if nobody has made it.
func (t *terms) fold(chunk int) value {
	if v := t.folds[chunk]; v != none {
		return v
	}
	v := t.leaf(0, chunk)
	for r := 1; r < t.size && v != absent; r++ {
		own := t.leaf(r, chunk)
		if v = t.known(min(v, own), max(v, own)); v == none {
			v = absent
		}
	}
	t.folds[chunk] = v
	return v
}

// Operands are spelled out of up to shownRanks ranks, among up to shownTerms terms.
const (
	shownRanks = 16
	shownTerms = 1 << 12
)

// operands spells out an expression by the ranks whose contributions it combines, as in "(0+1)+2", or is "" where that
// would take too long.
func (t *terms) operands(v value) string {
	if t.again || t.size > shownRanks || t.count > shownTerms {
		return ""
	}
	sides := map[value][2]value{} // of combinations
	for of := range value(t.count) {
		if x := t.at(of); x.mate != none {
			sides[x.made] = [2]value{of, x.mate}
		}
	}
	for of, made := range t.nodes {
		sides[made] = of
	}
	ranks := map[value]int{}
	for at, leaf := range t.leafs {
		ranks[leaf] = at % t.size
	}
	var spell func(v value) (text string, least int)
	spell = func(v value) (string, int) {
		of, combined := sides[v]
		if !combined {
			return fmt.Sprint(ranks[v]), ranks[v]
		}
		var text [2]string
		var least [2]int
		for i, side := range of {
			if text[i], least[i] = spell(side); len(text[i]) > len("10") {
				text[i] = "(" + text[i] + ")"
			}
		}
		if least[1] < least[0] {
			text[0], text[1] = text[1], text[0]
		}
		return text[0] + "+" + text[1], min(least[0], least[1])
	}
	text, _ := spell(v)
	return text
}
