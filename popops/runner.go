package popops

import (
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
