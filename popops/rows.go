package popops

import (
	"fmt"
	"math"

	"gogcl.dev/tensor"
)

// The functions here are those on tensors for who has a table in a slice: rows of width elements, one after the other.
// They allocate nothing once a call like it has been made, but without a plan when the garbage collector has emptied
// the pool that memory for calls is kept in.

// SliceRows is MultiSliceInto: dst, of width elements for each of offsets, becomes those rows of table. The errors are
// the same; dst and table lie apart.
func SliceRows[T tensor.Element, I Offset](dst, table []T, width int, offsets []I, plan *Plan, options Options) error {
	return rowsCall("SliceRows", take, table, dst, width, offsets, 0, plan, options)
}

// UpdateRows is MultiUpdate: rows, of width elements for each of offsets, are written to table, in their order.
func UpdateRows[T tensor.Element, I Offset](table, rows []T, width int, offsets []I, plan *Plan,
	options Options) error {
	return rowsCall("UpdateRows", put, table, rows, width, offsets, 0, plan, options)
}

// UpdateAddRows is MultiUpdateAdd: scale times each of rows is added to its row of table. T is a number.
func UpdateAddRows[T tensor.Element, I Offset](table, rows []T, width int, offsets []I, scale T, plan *Plan,
	options Options) error {
	bits := elementBits(tensor.Bytes([]T{scale}), tensor.DTypeOf[T]())
	return rowsCall("UpdateAddRows", addTo, table, rows, width, offsets, bits, plan, options)
}

// UpdateAddRows16 is UpdateAddRows for floats of 16 bits with a scale of float32, which keeps what a learning rate of
// 16 bits would lose.
func UpdateAddRows16[T tensor.Float16 | tensor.BFloat16, I Offset](table, rows []T, width int, offsets []I,
	scale float32, plan *Plan, options Options) error {
	return rowsCall("UpdateAddRows16", addTo, table, rows, width, offsets, uint64(math.Float32bits(scale)), plan,
		options)
}

// UpdateMaxRows is MultiUpdateMax: each row of table becomes the greater of itself and of those of rows that are for
// it. T is a number.
func UpdateMaxRows[T tensor.Element, I Offset](table, rows []T, width int, offsets []I, plan *Plan,
	options Options) error {
	return rowsCall("UpdateMaxRows", maxTo, table, rows, width, offsets, 0, plan, options)
}

func rowsCall[T tensor.Element, I Offset](what string, v verb, table, rows []T, width int, o []I, scale uint64,
	plan *Plan, options Options) error {
	fail := func(err error) error { return fmt.Errorf("popops: %s: %w", what, err) }
	dtype := tensor.DTypeOf[T]()
	if width < 1 || len(table)%width != 0 {
		return fail(fmt.Errorf("a table of %d elements and rows of %d, want whole rows of 1 or more",
			len(table), width))
	}
	if len(rows)%width != 0 || len(rows)/width != len(o) {
		return fail(fmt.Errorf("%d elements for %d rows of %d, want %d", len(rows), len(o), width, len(o)*width))
	}
	if v >= addTo && !dtype.IsNumber() {
		return fail(fmt.Errorf("elements are %v, want a number", dtype))
	}
	r := rowTable{dtype: dtype, groups: 1, entries: len(table) / width, width: width, n: len(o)}
	off := offsetsIn(o)
	partial, err := r.check(&off, v, plan, options)
	if err != nil {
		return fail(err)
	}
	written, read := tensor.Bytes(table), tensor.Bytes(rows)
	if v == take {
		written, read = read, written
	}
	if overlap(written, read) || overlap(written, tensor.Bytes(o)) {
		return fail(errShared)
	}
	if len(rows) == 0 || len(table) == 0 && v != take {
		return nil
	}
	call := rowCall{
		verb: v, groups: 1, n: len(o), entries: r.entries, outer: 1, inner: width * dtype.Size(),
		table: tensor.Bytes(table), slices: tensor.Bytes(rows), off: off, scale: scale, given: options.IndicesAreSorted,
	}
	call.run(dtype, v == addTo && sumsWide(partial, dtype), plan)
	return nil
}
