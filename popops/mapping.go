package popops

import (
	"fmt"
	"slices"

	"gogcl.dev/tensor"
)

// Interval is elements From to before To of a flattened tensor.
type Interval struct{ From, To int }

// Mapping says which elements of a tensor each worker (tile) has: Mapping[w] are the intervals of worker w, in
// increasing order, no two of which touch. Each element is in one of them.
type Mapping [][]Interval

// Mapped is a tensor and how it is spread over workers.
type Mapped struct {
	*tensor.Tensor
	Mapping Mapping
}

// add gives worker w an interval, the first after all that it has.
func (m Mapping) add(w, from, to int) {
	if from == to {
		return
	}
	if own := m[w]; len(own) > 0 && own[len(own)-1].To == from {
		own[len(own)-1].To = to
		return
	}
	m[w] = append(m[w], Interval{from, to})
}

// Check returns an error unless each of n elements is in exactly one interval, and those of each worker are in order
// and do not touch.
func (m Mapping) Check(n int) error {
	var all []Interval
	for w, own := range m {
		for i, v := range own {
			if v.From < 0 || v.From >= v.To || v.To > n {
				return fmt.Errorf("popops: worker %d has elements %d to %d, want 0 <= from < to <= %d",
					w, v.From, v.To, n)
			}
			if i > 0 && own[i-1].To >= v.From {
				return fmt.Errorf("popops: worker %d has elements to %d and then from %d, want a gap between",
					w, own[i-1].To, v.From)
			}
		}
		all = append(all, own...)
	}
	slices.SortFunc(all, func(a, b Interval) int { return a.From - b.From })
	at := 0
	for _, v := range all {
		if v.From != at {
			return fmt.Errorf("popops: elements %d to %d have %s worker, want one",
				min(at, v.From), max(at, v.From), map[bool]string{true: "no", false: "more than one"}[v.From > at])
		}
		at = v.To
	}
	if at != n {
		return fmt.Errorf("popops: elements %d to %d have no worker, want one", at, n)
	}
	return nil
}

// owners is the runs of a mapping in the order of the elements.
func (m Mapping) owners() []owned {
	var all []owned
	for w, own := range m {
		for _, v := range own {
			all = append(all, owned{v, w})
		}
	}
	slices.SortFunc(all, func(a, b owned) int { return a.From - b.From })
	return all
}

// owned is an interval and its worker.
type owned struct {
	Interval
	worker int
}

// take appends to part, as its elements from `at` on, the n elements from `from` on that owners tells of.
func (m Mapping) take(owners []owned, from, n, at int) {
	i, _ := slices.BinarySearchFunc(owners, from, func(o owned, from int) int {
		if o.To <= from {
			return -1
		}
		return 1
	})
	for n > 0 {
		length := min(n, owners[i].To-from)
		m.add(owners[i].worker, at, at+length)
		from, at, n, i = from+length, at+length, n-length, i+1
	}
}

// spread is how n elements, of which grains stay together, are spread over workers: worker f has those from cuts[f] to
// cuts[f+1]. Where there are fewer grains than workers the last have none.
func spread(n, grain, workers int) (cuts []int) {
	cuts = make([]int, workers+1)
	grains := max(n/grain, 1)
	used := min(workers, grains)
	for f := range cuts {
		cuts[f] = n
		if f < used {
			cuts[f] = grains * f / used * grain
		}
	}
	return cuts
}

// spread is the mapping of a table of so many elements in which those of a slice are spread over workers, whatever the
// offsets. It is made of pieces that are alike: they have all of a dimension that is not sliced, and of one that is
// a single entry, or where that does not go into equal parts, as many as a slice has.
func (w *window) spread(elements, grain, workers int) Mapping {
	m := make(Mapping, workers)
	if elements == 0 {
		return m
	}
	shape := w.shapeOf()
	piece, slice := shape.Clone(), 1
	for axis := range shape {
		shape[axis] = max(shape[axis], 1) // where slices are empty, as if they had one entry
		slice *= shape[axis]
		if piece[axis] = shape[axis]; slices.Contains(w.dims, axis) {
			piece[axis] = 1
		}
	}
	used := max(1, min(workers, slice/grain))
	n, _ := piece.Elements()
	for axis := 0; axis < len(piece) && (n/grain < used || n%grain != 0 || n/grain%used != 0); axis++ {
		n, piece[axis] = n/piece[axis]*shape[axis], shape[axis]
	}
	owners := contiguous(spread(n, grain, workers)).owners()
	at := 0
	table := make(tensor.Shape, w.rank())
	for axis := range table {
		table[axis] = w.dim(axis)
	}
	each(table, piece, func(from, n int) {
		m.take(owners, from, n, at)
		at += n
	})
	return m
}

// contiguous is a mapping in which the elements of worker w are those from cuts[w] to cuts[w+1].
func contiguous(cuts []int) Mapping {
	m := make(Mapping, len(cuts)-1)
	for w := range m {
		m.add(w, cuts[w], cuts[w+1])
	}
	return m
}
