package popops

import (
	"errors"
	"fmt"
	"math"
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

// Offset is a type of offsets: those of tensors of int32 and uint32. A negative one is out of range.
type Offset interface{ int32 | uint32 }

// offsets are offsets, wherever they come from.
type offsets struct {
	words  []uint32 // the bits of int32s or uint32s
	signed bool     // they are int32s
	host   []int    // instead of words, known to be in range
}

// offsetsOf is the offsets in a tensor.
func offsetsOf(t *tensor.Tensor) (offsets, error) {
	switch t.DType() {
	case tensor.U32:
		words, err := tensor.Of[uint32](t)
		return offsets{words: words}, err
	case tensor.I32:
		words, err := tensor.FromBytes[uint32](t.Bytes())
		return offsets{words: words, signed: true}, err
	}
	return offsets{}, fmt.Errorf("offsets are %v, want uint32 or int32", t.DType())
}

// offsetsIn is offsets in a slice.
func offsetsIn[I Offset](s []I) offsets {
	if words, ok := any(s).([]uint32); ok {
		return offsets{words: words}
	}
	words, _ := tensor.FromBytes[uint32](tensor.Bytes(s)) // of the same size and alignment
	return offsets{words: words, signed: true}
}

func (o *offsets) len() int { return len(o.words) + len(o.host) }

// at is offset j, as it is.
func (o *offsets) at(j int) int64 {
	switch {
	case o.host != nil:
		return int64(o.host[j])
	case o.signed:
		return int64(int32(o.words[j]))
	}
	return int64(o.words[j])
}

// limit is from where on the bits of an offset are out of range, where a dimension has so many entries: a negative
// one's are beyond all positive ones'.
func (o *offsets) limit(entries int) uint64 {
	if o.signed {
		return min(uint64(entries), 1<<31)
	}
	return min(uint64(entries), 1<<32)
}

// bits are those of offset j, and whether it is in range.
func (o *offsets) bits(j int, limit uint64) (uint32, bool) {
	if o.host != nil {
		return uint32(o.host[j]), true
	}
	w := o.words[j]
	return w, uint64(w) < limit
}

// checkHost returns what is wrong with the first offset that is out of range.
func checkHost(host []int, entries int) error {
	for j, o := range host {
		if o < 0 || o >= entries {
			return fmt.Errorf("offset %d is %d, want 0 <= offset < %d", j, o, entries)
		}
		if uint64(o) > math.MaxUint32 {
			return fmt.Errorf("offset %d is %d, more than the 32 bits of an offset", j, o)
		}
	}
	return nil
}

// checkRange returns what is wrong with the first look-up that has an offset out of range. Each has one for each of
// dims.
func (w *window) checkRange(o *offsets) error {
	d := len(w.dims)
	for j := range o.len() {
		extent := w.dim(w.dims[j%d])
		if v := o.at(j); v < 0 || v >= int64(extent) {
			return fmt.Errorf("offset of look-up %d in dimension %d is %d, want 0 <= offset < %d",
				j/d, w.dims[j%d], v, extent)
		}
	}
	return nil
}

// checkRange is window.checkRange for offsets of one dimension.
func checkRange(o *offsets, entries int) error {
	for j := range o.len() {
		if v := o.at(j); v < 0 || v >= int64(entries) {
			return fmt.Errorf("offset of look-up %d is %d, want 0 <= offset < %d", j, v, entries)
		}
	}
	return nil
}

// checkSorted returns where offsets of groups of n look-ups do not increase.
func checkSorted(o *offsets, n int) error {
	for j := 1; j < o.len(); j++ {
		if a, b := o.at(j-1), o.at(j); b < a && j%n != 0 {
			return fmt.Errorf("offsets are not sorted, as IndicesAreSorted says: offset %d is %d and offset %d is %d",
				j-1, a, j, b)
		}
	}
	return nil
}

// errTooMany is for more look-ups than can be told apart.
var errTooMany = errors.New("2^32 look-ups or more in one call")

// checkCount returns an error for more look-ups than a call can take: they are numbered by 32 bits.
func checkCount(n int) error {
	if uint64(n) > math.MaxUint32 {
		return errTooMany
	}
	return nil
}
