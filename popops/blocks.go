package popops

import (
	"slices"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// verb is what is done with the elements of a slice and those of the table.
type verb uint8

const (
	take      verb = iota // slice = table
	put                   // table = slice
	addTo                 // table += scale * slice
	maxTo                 // table = max(table, slice)
	widen                 // wide = float32(table)
	addToWide             // wide += scale * slice
	narrow                // table = wide, rounded
)

// blocks carries out a verb for slices of any form, one after the other: each is cut into runs of elements that lie one
// after the other in table and slice.
//
//	window of 2 x 2 at (1, 3) of a (3, 4) table       . . . .
//	                                                  b . . a      runs of one element: a, b, c, d
//	                                                  d . . c      (past the end a slice goes on at the beginning)
type blocks struct {
	window
	offsets
	step  int // offset k of a look-up comes so many after offset k-1
	verb  verb
	size  int // bytes of an element
	table []byte
	slice []byte
	wide  []byte // float32s, as many as table has elements
	scale uint64

	last    int // the innermost dimension that is sliced
	inner   int // elements of the dimensions after it
	each    int // elements of a slice
	add     func(dst, src []byte, pairs []uint64, at kernel.Rows, scale uint64)
	maximum func(dst, a, b []byte)
	convert func(dst, src []byte)
}

// prepare fills in what follows from window, verb and type.
func (b *blocks) prepare(dtype tensor.DType) {
	b.size, b.last, b.each = dtype.Size(), -1, b.elements()
	if len(b.dims) > 0 {
		b.last = slices.Max(b.dims)
		_, b.inner = b.around(b.last)
	}
	b.use(b.verb, dtype)
}

// use sets the verb.
func (b *blocks) use(v verb, dtype tensor.DType) {
	b.verb = v
	switch t := kernel.Type(dtype); v {
	case addTo:
		b.add = kernel.AddRows(t)
	case maxTo:
		b.maximum = kernel.Binary(kernel.Max, t)
	case widen:
		b.convert = kernel.Widen(t)
	case addToWide:
		b.add = kernel.AddWideRows(t)
	case narrow:
		b.convert = kernel.Narrow(t)
	}
}

// lookUp carries out the verb for slice number i.
func (b *blocks) lookUp(i int) {
	if b.each == 0 {
		return
	}
	if b.last < 0 {
		b.run(0, i*b.each, b.each)
		return
	}
	first := i * len(b.dims)
	for k, d := range b.dims {
		if v := b.at(first + k*b.step); v < 0 || v >= int64(b.dim(d)) {
			if b.verb == take {
				clear(b.slice[i*b.each*b.size:][:b.each*b.size])
			}
			return
		}
	}
	b.visit(0, first, 0, i)
}

// visit goes through the elements from dimension axis on, those before being given. table and slice number what they
// name among all that have as many dimensions given; the offsets are those from first on.
func (b *blocks) visit(axis, first, table, slice int) {
	extent := b.dim(axis)
	k := slices.Index(b.dims, axis)
	if k < 0 {
		for x := range extent {
			b.visit(axis+1, first, table*extent+x, slice*extent+x)
		}
		return
	}
	offset, size := int(b.at(first+k*b.step)), b.sizes[k]
	if axis == b.last {
		here := min(size, extent-offset)
		b.run((table*extent+offset)*b.inner, slice*size*b.inner, here*b.inner)
		b.run(table*extent*b.inner, (slice*size+here)*b.inner, (size-here)*b.inner)
		return
	}
	for x := range size {
		b.visit(axis+1, first, table*extent+(offset+x)%extent, slice*size+x)
	}
}

// onePair is the pair of the first rows.
var onePair = []uint64{0}

// run carries out the verb for n elements from those two on.
func (b *blocks) run(table, slice, n int) {
	if n == 0 {
		return
	}
	var wide []byte
	if b.wide != nil {
		wide = b.wide[4*table : 4*(table+n)]
	}
	t := b.table[table*b.size : (table+n)*b.size]
	s := b.slice[slice*b.size : (slice+n)*b.size]
	switch b.verb {
	case take:
		copy(s, t)
	case put:
		copy(t, s)
	case addTo:
		b.add(t, s, onePair, kernel.Rows{Bytes: len(s)}, b.scale)
	case maxTo:
		b.maximum(t, t, s)
	case widen:
		b.convert(wide, t)
	case addToWide:
		b.add(wide, s, onePair, kernel.Rows{Bytes: len(s)}, b.scale)
	case narrow:
		b.convert(t, wide)
	}
}
