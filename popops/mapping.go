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

// SliceMapping is which worker has which elements of a slice of t at offset 0.
func SliceMapping(t *Mapped, dims, sizes []int) (Mapping, error) {
	if err := t.check("t"); err != nil {
		return nil, failed("SliceMapping", err)
	}
	w := window{extents{t: t.Tensor}, dims, sizes}
	if err := w.check(); err != nil {
		return nil, failed("SliceMapping", err)
	}
	m := make(Mapping, len(t.Mapping))
	owners := t.Mapping.owners()
	at := 0
	each(w.shapeOf(), t.Shape(), func(from, n int) {
		m.take(owners, from, n, at)
		at += n
	})
	return m, nil
}

// each calls f for the elements of a tensor of shape out, in order: they are n elements from `from` on of a tensor of
// shape in, of as many dimensions, past the end of which it goes on at the beginning.
func each(out, in tensor.Shape, f func(from, n int)) {
	if n, _ := out.Elements(); n == 0 {
		return
	}
	if len(out) == 0 {
		f(0, 1)
		return
	}
	last := len(out) - 1
	var visit func(axis, from int)
	visit = func(axis, from int) {
		from *= in[axis]
		if axis < last {
			for x := range out[axis] {
				visit(axis+1, from+x%in[axis])
			}
			return
		}
		for x := 0; x < out[last]; x += in[last] {
			f(from, min(in[last], out[last]-x))
		}
	}
	visit(0, 0)
}

// check returns an error for a tensor whose mapping is not one of its elements.
func (t *Mapped) check(name string) error {
	if t == nil {
		return fmt.Errorf("%s is nil, want a tensor with its mapping", name)
	}
	if err := checkThere(name, t.Tensor); err != nil {
		return err
	}
	if err := t.Mapping.Check(t.Len()); err != nil {
		return fmt.Errorf("the mapping of %s: %w", name, err)
	}
	return nil
}

// tableMapping is who has which elements of the table: those that updates of the most look-ups leave to a worker, or
// where there are none, entries shared out.
func (p *Plan) tableMapping(w *window) Mapping {
	how := p.choices[len(p.choices)-1].update
	if p.options.NotForUpdate {
		how.workers, how.by = p.choices[len(p.choices)-1].slice.workers, byRows
	}
	return p.mapping(w, how, p.entries)
}

// sliceMapping is who has which elements of n slices: those that look-ups leave to a worker, or in a plan for updates
// only, those that updates do, which are look-ups shared out where rows of the table are.
func (p *Plan) sliceMapping(w *window, n int) Mapping {
	i, _ := slices.BinarySearch(p.lookUps, n)
	how := p.choices[i].slice
	if p.options.NotForSlice {
		how = p.choices[i].update
		if how.by == byRows {
			how.by = byLookUps
		}
	}
	return p.mapping(w, how, n)
}

// mapping is who has which elements of a table, or of slices, by how a call with n entries, or look-ups, is split.
func (p *Plan) mapping(w *window, how how, n int) Mapping {
	outer, inner := w.around(w.dims[0])
	size := p.dtype.Size()
	m := make(Mapping, p.crews.workers)
	if outer == 0 || inner == 0 || n == 0 {
		return m
	}
	call := rowCall{groups: p.groups, n: n, entries: n, outer: outer, inner: inner * size}
	parts := make([]part, how.workers)
	for i := range parts {
		parts[i] = how.part(&call, i)
	}
	at := 0
	for g := range p.groups {
		table := how.by != byLookUps
		for x := range outer * n { // a table lies by outer, entry; slices by look-up, outer
			row := g*n + x%n
			if !table {
				row = g*n + x/outer
			}
			for i := range parts {
				q := &parts[i]
				rows := q.rows
				if how.by == byLookUps {
					rows = q.lookUps
				}
				if rows[0] <= row && row < rows[1] {
					m.add(i, at+q.columns[0]/size, at+q.columns[1]/size)
				}
			}
			at += inner
		}
	}
	return m
}
