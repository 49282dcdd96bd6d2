package schedule

import (
	"fmt"
)

// list is what a rank's buffer holds.
func (c *CustomContract) list(rank int, buf Buffer) []int {
	if buf == Input {
		return c.Inputs[rank]
	}
	return c.Outputs[rank]
}

// enter begins with the steps of a rank. places has, by buffer and by chunk, one more than the place of the chunk in
// the rank's list, and 0 of a chunk that is not in it. So a span of many runs needs no search.
func (f *forms) enter(rank int) {
	before := f.rank
	f.rank = rank
	own := f.s.Custom
	if own == nil {
		return
	}
	for buf := range f.places {
		if f.places[buf] == nil {
			f.places[buf] = make([]int32, f.s.Chunks)
		}
		for _, chunk := range own.list(before, Buffer(buf)) {
			f.places[buf][chunk] = 0
		}
		for place, chunk := range own.list(rank, Buffer(buf)) {
			f.places[buf][chunk] = int32(place + 1)
		}
	}
}

// lists reports whether a buffer of the rank has n chunks from chunk first on, one after the other.
func (f *forms) lists(buf Buffer, first, n int) bool {
	places := f.places[buf][first : first+n]
	for i, place := range places {
		if place == 0 || place != places[0]+int32(i) {
			return false
		}
	}
	return true
}

// runs refuses a strided span whose chunks the rank does not have, those of each run one after the other.
func (f *forms) runs(sp *Span) error {
	f.parts = sp.AppendRuns(f.parts[:0], f.s.Chunks)
	for _, run := range f.parts {
		if !f.lists(sp.Buf, run.First, run.Count) {
			return fmt.Errorf("rank %d does not have %s there, one after the other", f.rank,
				numbered("chunk", run.First, run.First+run.Count-1))
		}
	}
	return nil
}

// contributors calls a function for each chunk of a rank's Output, with its contributors. holders is that of the
// contract, or nil if it says itself what it wants.
func (c *CustomContract) contributors(rank int, holders [][]int, do func(chunk int, from []int)) {
	for i, f := range c.Outputs[rank] {
		if c.Wants != nil {
			do(f, c.Wants[rank][i])
		} else {
			do(f, holders[f])
		}
	}
}

// byInputs is holders, or nil where the contract says itself what it wants.
func (c *CustomContract) byInputs() [][]int {
	if c.Wants != nil {
		return nil
	}
	return c.holders()
}

// wanting is what is known of the contributors that outputs want by a contract of a program's own. Chunks that follow
// each other mostly want one list.
type wanting struct {
	terms    *terms
	contract *CustomContract
	holders  [][]int

	chunk   int   // that is asked for
	list    []int // the list that was asked for last
	all     sum   // of its ranks, if contributors are known by sums
	number  int   // of the list: equal ones have one number
	numbers map[string]int

	seen  map[[2]int]value // by chunk and number of a list: the first expression
	folds map[[2]int]value // the same: the left fold
}

func newWanting(t *terms, c *CustomContract) *wanting {
	return &wanting{terms: t, contract: c, holders: c.byInputs(), numbers: map[string]int{},
		seen: map[[2]int]value{}, folds: map[[2]int]value{}}
}

func (w *wanting) each(rank int, do func(chunk int)) {
	w.contract.contributors(rank, w.holders, func(f int, from []int) {
		w.chunk = f
		w.of(from)
		do(f)
	})
}

func (w *wanting) text() string { return fmt.Sprintf("chunk %d of ranks %v", w.chunk, w.list) }

func (w *wanting) from() (chunk int, ranks []int) { return w.chunk, w.list }

func (w *wanting) first(have value) value {
	key := [2]int{w.chunk, w.number}
	v, known := w.seen[key]
	if !known {
		v, w.seen[key] = have, have
	}
	return v
}

// of makes a list the one that is asked for.
func (w *wanting) of(from []int) {
	if len(from) == len(w.list) && len(from) > 0 && &from[0] == &w.list[0] {
		return
	}
	w.list, w.all = from, sum{}
	if !w.terms.exact() {
		for _, r := range from {
			w.all = w.all.plus(sumOf(r))
		}
	}
	key := ranges(from)
	number, known := w.numbers[key]
	if !known {
		number = len(w.numbers)
		w.numbers[key] = number
	}
	w.number = number
}

func (w *wanting) has(v value) bool {
	x := w.terms.at(v)
	if v == none || int(x.chunk) != w.chunk || int(x.count) != len(w.list) {
		return false
	}
	if !w.terms.exact() {
		return x.sum == w.all
	}
	set := w.terms.sets[v]
	for _, r := range w.list {
		if set[r/64]>>(r%64)&1 == 0 {
			return false
		}
	}
	return true
}

func (w *wanting) fold() value {
	key := [2]int{w.chunk, w.number}
	v, known := w.folds[key]
	if known {
		return v
	}
	v = w.terms.leaf(w.list[0], w.chunk)
	for _, r := range w.list[1:] {
		own := w.terms.leaf(r, w.chunk)
		if v = w.terms.known(min(v, own), max(v, own)); v == none {
			v = absent
			break
		}
	}
	w.folds[key] = v
	return v
}

// least finds the bounds of a contract with so many ports:
//   - a rank hears of those whose contributions it wants, and those that want a rank's hear of it, and in a round
//     that grows by the factor ports+1 at most;
//   - a rank sends each chunk that another wants of it once at least, and receives one for each chunk of its Output
//     that another contributes to;
//   - the rank that sends most, or receives most, has the mean of all at least.
func (c *CustomContract) least(ports int) Bounds {
	var b Bounds
	size, chunks, holders := len(c.Inputs), c.Chunks(), c.byInputs()
	heard, hearers := make([]int, size), make([]int, size) // heard: one more than the last rank that has heard of it
	asked := newBits(size * chunks)                        // by rank and chunk of its Input: another rank wants it
	most, received := 1, 0
	sent := make([]int, size)
	for rank := range c.Outputs {
		n, of := 0, 1
		c.contributors(rank, holders, func(f int, from []int) {
			if len(from) > 1 || from[0] != rank {
				n++
			}
			for _, r := range from {
				if r == rank {
					continue
				}
				if heard[r] <= rank {
					heard[r] = rank + 1
					hearers[r]++
					of++
				}
				if !asked.has(r*chunks + f) {
					asked.set(r*chunks + f)
					sent[r]++
				}
			}
		})
		b.Received, received, most = max(b.Received, n), received+n, max(most, of)
	}
	sends := 0
	for rank, n := range sent {
		b.Sent, sends, most = max(b.Sent, n), sends+n, max(most, hearers[rank]+1)
	}
	mean := (max(sends, received) + size - 1) / size
	b.Sent, b.Received = max(b.Sent, mean), max(b.Received, mean)
	for reached := 1; reached < most; reached *= max(ports, 1) + 1 {
		b.Rounds++
	}
	return b
}
