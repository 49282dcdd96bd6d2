package popops

import (
	"slices"
	"sync"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
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
	step int     // offset k of a look-up comes so many after offset k-1
	do   *runner // behind a pointer, so that dims and sizes need not be on the heap

	last  int // the innermost dimension that is sliced
	inner int // elements of the dimensions after it
	each  int // elements of a slice
}

// prepare fills in what follows from the window.
func (b *blocks) prepare() {
	b.last, b.each = -1, b.elements()
	if len(b.dims) > 0 {
		b.last = slices.Max(b.dims)
		_, b.inner = b.around(b.last)
	}
}

// lookUp carries out the verb for slice number i.
func (b *blocks) lookUp(i int) {
	if b.each == 0 {
		return
	}
	if b.last < 0 {
		b.do.run(0, i*b.each, b.each)
		return
	}
	first := i * len(b.dims)
	for k, d := range b.dims {
		if v := b.at(first + k*b.step); v < 0 || v >= int64(b.dim(d)) {
			b.do.leaveOut(i*b.each, b.each)
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
		b.do.run((table*extent+offset)*b.inner, slice*size*b.inner, here*b.inner)
		b.do.run(table*extent*b.inner, (slice*size+here)*b.inner, (size-here)*b.inner)
		return
	}
	for x := range size {
		b.visit(axis+1, first, table*extent+(offset+x)%extent, slice*size+x)
	}
}

// eachLookUp carries out the verb for n slices.
func (b *blocks) eachLookUp(n int) {
	for i := range n {
		b.lookUp(i)
	}
}

// addWide adds n slices by way of float32 sums of the whole table, of which only what is added to is looked at.
func (b *blocks) addWide(n int, dtype tensor.DType) {
	wide := wides.Get().(*[]byte)
	if need := 4 * b.t.Len(); len(*wide) < need {
		*wide = make([]byte, need)
	}
	b.do.wide = *wide
	for _, v := range [...]verb{widen, addToWide, narrow} {
		b.do.use(v, dtype)
		b.eachLookUp(n)
	}
	wides.Put(wide)
}

// wides are float32 sums for updates of 16-bit floats that are not rows.
var wides = sync.Pool{New: func() any { return new([]byte) }}

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

// runner carries out a verb on elements that lie one after the other.
type runner struct {
	verb    verb
	size    int // bytes of an element
	table   []byte
	slice   []byte
	wide    []byte // float32s, as many as table has elements; only for the verbs that want it
	scale   uint64
	add     func(dst, src []byte, pairs []uint64, at kernel.Rows, scale uint64)
	maximum func(dst, a, b []byte)
	convert func(dst, src []byte)
}

// use sets the verb.
func (r *runner) use(v verb, dtype tensor.DType) {
	r.verb = v
	switch t := kernel.Type(dtype); v {
	case addTo:
		r.add = kernel.AddRows(t)
	case maxTo:
		r.maximum = kernel.Binary(kernel.Max, t)
	case widen:
		r.convert = kernel.Widen(t)
	case addToWide:
		r.add = kernel.AddWideRows(t)
	case narrow:
		r.convert = kernel.Narrow(t)
	}
}

// onePair is the pair of the first rows.
var onePair = []uint64{0}

// run carries out the verb for n elements from those two on.
func (r *runner) run(table, slice, n int) {
	if n == 0 {
		return
	}
	t := r.table[table*r.size : (table+n)*r.size]
	s := r.slice[slice*r.size : (slice+n)*r.size]
	switch r.verb {
	case take:
		copy(s, t)
	case put:
		copy(t, s)
	case addTo:
		r.add(t, s, onePair, kernel.Rows{Bytes: len(s)}, r.scale)
	case maxTo:
		r.maximum(t, t, s)
	case widen:
		r.convert(r.wide[4*table:4*(table+n)], t)
	case addToWide:
		r.add(r.wide[4*table:4*(table+n)], s, onePair, kernel.Rows{Bytes: len(s)}, r.scale)
	case narrow:
		r.convert(t, r.wide[4*table:4*(table+n)])
	}
}

// leaveOut is run for a slice of an offset out of range.
func (r *runner) leaveOut(slice, n int) {
	if r.verb == take {
		clear(r.slice[slice*r.size:][:n*r.size])
	}
}
