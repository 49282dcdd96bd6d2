package ir

import "sort"

// fit finds places in an arena for tensors that are alive for ranges of steps. It is a segment tree over the steps. A
// range is that of one node, or falls into those of a few:
//
//	              0..7
//	      0..3            4..7
//	  0..1    2..3    4..5    6..7
//	 0   1   2   3   4   5   6   7
//
//	steps 2..6: 2..3, 4..5 and 6
//
// Each node has the bytes that are taken in its whole range, and those that are taken in some of its steps. Bytes that
// lie side by side are one span, so that an arena without gaps is one span however many tensors it holds.
type fit struct {
	steps  int
	whole  []spans // by node, from 1; the halves of node i are 2i and 2i+1
	some   []spans
	looked int // spans compared, for tests
}

func newFit(steps int) *fit {
	leaves := 1
	for leaves < steps {
		leaves *= 2
	}
	return &fit{steps: leaves, whole: make([]spans, 2*leaves), some: make([]spans, 2*leaves)}
}

// lowest is the first byte from which on so many are free in all of the steps.
func (f *fit) lowest(first, last, size int) int {
	if size == 0 {
		return 0
	}
	var taken []spans
	f.walk(1, 0, f.steps-1, first, last, func(node int, inside bool) {
		s := f.whole[node]
		if inside {
			s = f.some[node]
		}
		if len(s) > 0 {
			taken = append(taken, s)
		}
	})
	at := 0
	for i, settled := 0, 0; settled < len(taken); i++ {
		settled++ // nodes in a row that have nothing where the bytes would lie
		for end := f.in(taken[i%len(taken)], at, size); end > at; end = f.in(taken[i%len(taken)], at, size) {
			at, settled = end, 1
		}
	}
	return at
}

// in is the end of the first span that has some of the bytes from at on, or at if there is none.
func (f *fit) in(s spans, at, size int) int {
	i := sort.Search(len(s), func(i int) bool {
		f.looked++
		return s[i].end > at
	})
	if i < len(s) && s[i].start < at+size {
		return s[i].end
	}
	return at
}

// take notes that bytes are taken in some steps.
func (f *fit) take(first, last, at, size int) {
	if size == 0 {
		return
	}
	f.walk(1, 0, f.steps-1, first, last, func(node int, inside bool) {
		if inside {
			f.whole[node].add(span{at, at + size})
		}
		f.some[node].add(span{at, at + size})
	})
}

// walk calls visit for the nodes whose ranges are inside the steps and in no larger such range, and, before them, for
// the nodes around those.
func (f *fit) walk(node, lo, hi, first, last int, visit func(node int, inside bool)) {
	inside := first <= lo && hi <= last
	visit(node, inside)
	if inside {
		return
	}
	mid := lo + (hi-lo)/2
	if first <= mid {
		f.walk(2*node, lo, mid, first, last, visit)
	}
	if last > mid {
		f.walk(2*node+1, mid+1, hi, first, last, visit)
	}
}

// span is the bytes from start to end, end excluded.
type span struct{ start, end int }

// spans are in their order, with gaps between them.
type spans []span

// add adds a span, of which some bytes may be there already.
func (s *spans) add(x span) {
	lo := sort.Search(len(*s), func(i int) bool { return (*s)[i].end >= x.start })
	hi := lo
	for hi < len(*s) && (*s)[hi].start <= x.end {
		x.start, x.end = min(x.start, (*s)[hi].start), max(x.end, (*s)[hi].end)
		hi++
	}
	switch {
	case hi == lo:
		*s = append(*s, span{})
		copy((*s)[lo+1:], (*s)[lo:])
	case hi > lo+1:
		*s = append((*s)[:lo+1], (*s)[hi:]...)
	}
	(*s)[lo] = x
}
