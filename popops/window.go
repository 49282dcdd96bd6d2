package popops

import (
	"fmt"
	"slices"

	"gogcl.dev/tensor"
)

// extents are the dimensions of what is sliced: those of a tensor, but for leading ones that count groups, or of a
// shape.
type extents struct {
	t     *tensor.Tensor
	skip  int // leading dimensions of t that are left out: 0 or 1
	shape tensor.Shape
}

func (e *extents) rank() int {
	if e.t == nil {
		return len(e.shape)
	}
	return e.t.Rank() - e.skip
}

func (e *extents) dim(axis int) int {
	if e.t == nil {
		return e.shape[axis]
	}
	return e.t.Dim(axis + e.skip)
}

// window is what a slice is: all of some extents, but of dimension dims[k] only sizes[k].
type window struct {
	extents
	dims, sizes []int
}

// windowOf is a window of a tensor.
func windowOf(t *tensor.Tensor, dims, sizes []int) window { return window{extents{t: t}, dims, sizes} }

// check returns what is wrong with dims and sizes.
func (w *window) check() error {
	if len(w.dims) != len(w.sizes) {
		return fmt.Errorf("%d dims and %d sizes, want one size for each dimension", len(w.dims), len(w.sizes))
	}
	rank := w.rank()
	for k, d := range w.dims {
		if d < 0 || d >= rank {
			return fmt.Errorf("dimension %d of what has rank %d, want 0 <= dimension < rank", d, rank)
		}
		if slices.Contains(w.dims[:k], d) {
			return fmt.Errorf("dimension %d is given twice", d)
		}
		if size, extent := w.sizes[k], w.dim(d); size < 0 || size > extent {
			return fmt.Errorf("size %d in dimension %d, want 0 <= size <= %d, its extent", size, d, extent)
		}
	}
	return nil
}

// extent is that of a slice in a dimension.
func (w *window) extent(axis int) int {
	if k := slices.Index(w.dims, axis); k >= 0 {
		return w.sizes[k]
	}
	return w.dim(axis)
}

// elements is how many a slice has.
func (w *window) elements() int {
	n := 1
	for axis := range w.rank() {
		n *= w.extent(axis)
	}
	return n
}

// shapeOf is the shape of slices: lead, and then that of one.
func (w *window) shapeOf(lead ...int) tensor.Shape {
	shape := tensor.Shape(lead)
	for axis := range w.rank() {
		shape = append(shape, w.extent(axis))
	}
	return shape
}

// checkSlices returns what is wrong with the shape of slices, which is to be lead and then that of a slice.
func (w *window) checkSlices(name string, s *tensor.Tensor, lead [2]int, leads int) error {
	ok := s.Rank() == leads+w.rank()
	for i := 0; ok && i < s.Rank(); i++ {
		if i < leads {
			ok = s.Dim(i) == lead[i]
		} else {
			ok = s.Dim(i) == w.extent(i-leads)
		}
	}
	if !ok {
		return fmt.Errorf("%s has shape %v, want %v",
			name, s.Shape(), w.shapeOf(append([]int(nil), lead[:leads]...)...))
	}
	return nil
}

// isRows reports whether slices are rows: one dimension is sliced, by single entries.
func (w *window) isRows() bool { return len(w.dims) == 1 && w.sizes[0] == 1 }

// around is the product of the extents before and after dimension axis.
func (w *window) around(axis int) (outer, inner int) {
	outer, inner = 1, 1
	for i := range w.rank() {
		switch {
		case i < axis:
			outer *= w.dim(i)
		case i > axis:
			inner *= w.dim(i)
		}
	}
	return outer, inner
}
