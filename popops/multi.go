package popops

import (
	"fmt"
	"math"

	"gogcl.dev/tensor"
)

// MultiSlice is several slices of t: n of them as offsets, of shape (n, d) and of uint32 or int32, has rows. Each is
// what DynamicSlice gives, and the result has shape (n, slice shape...), one dimension more than t. A look-up with an
// offset out of range gives zeros, or with ValidateIndices an error. plan may be nil: then the caller's goroutine does
// it all.
// Errors: those of DynamicSlice but for the offsets' range; a plan for something else.
func MultiSlice(t, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) (*tensor.Tensor, error) {
	return multiSlice(multi{what: "MultiSlice", window: windowOf(t, dims, sizes), options: options}, offsets, plan)
}

// MultiSliceInto is MultiSlice with the result in dst, which shares no memory with t and offsets. It allocates nothing
// once a call like it has been made; without a plan it may after a garbage collection, which empties the pool that
// memory for calls is kept in.
func MultiSliceInto(dst, t, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiSliceInto(multi{what: "MultiSliceInto", window: windowOf(t, dims, sizes), options: options}, dst,
		offsets, plan)
}

// GroupedMultiSlice is MultiSlice for each group on its own: t, offsets and the result have the groups as first
// dimension, dims count without it. The plan is one for so many groups and must not be nil.
func GroupedMultiSlice(t, offsets *tensor.Tensor, dims, sizes []int, plan *Plan,
	options Options) (*tensor.Tensor, error) {
	return multiSlice(multi{what: "GroupedMultiSlice",
		grouped: true, window: windowOf(t, dims, sizes), options: options}, offsets, plan)
}

// GroupedMultiSliceInto is GroupedMultiSlice with the result in dst, as MultiSliceInto has it.
func GroupedMultiSliceInto(dst, t, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiSliceInto(multi{what: "GroupedMultiSliceInto",
		grouped: true, window: windowOf(t, dims, sizes), options: options}, dst, offsets, plan)
}

// one is the size of slices with offsets from the host.
var one = []int{1}

// MultiSliceAt is MultiSlice in one dimension, by single entries, with offsets that the host knows: one out of range
// is an error at once.
func MultiSliceAt(t *tensor.Tensor, offsets []int, dim int) (*tensor.Tensor, error) {
	m := multi{what: "MultiSliceAt", window: windowOf(t, []int{dim}, one)}
	off, err := m.withHost(offsets)
	if err != nil {
		return nil, err
	}
	dst, err := m.result()
	if err != nil {
		return nil, err
	}
	return dst, m.run("dst", dst, off, nil)
}

// MultiSliceAtInto is MultiSliceAt with the result in dst, as MultiSliceInto has it.
func MultiSliceAtInto(dst, t *tensor.Tensor, offsets []int, dim int) error {
	dims := [1]int{dim}
	m := multi{what: "MultiSliceAtInto", window: windowOf(t, dims[:], one)}
	off, err := m.withHost(offsets)
	if err != nil {
		return err
	}
	return m.run("dst", dst, off, nil)
}

func multiSlice(m multi, offsets *tensor.Tensor, plan *Plan) (*tensor.Tensor, error) {
	off, err := m.withTensor(offsets, plan)
	if err != nil {
		return nil, err
	}
	dst, err := m.result()
	if err != nil {
		return nil, err
	}
	return dst, m.run("dst", dst, off, plan)
}

func multiSliceInto(m multi, dst, offsets *tensor.Tensor, plan *Plan) error {
	off, err := m.withTensor(offsets, plan)
	if err != nil {
		return err
	}
	return m.run("dst", dst, off, plan)
}

// MultiUpdate writes the slices s, of shape (n, slice shape...), to t, at offsets of shape (n, d), in their order: of
// what is written twice the last remains. It is the mirror image of MultiSlice, with the same parameters and errors; a
// slice with an offset out of range is left out. s lies apart from t. It allocates nothing once a call like it has
// been made, with the reservation of MultiSliceInto.
func MultiUpdate(t, s, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiUpdate(multi{what: "MultiUpdate", verb: put, window: windowOf(t, dims, sizes), options: options}, s,
		offsets, plan)
}

// GroupedMultiUpdate is MultiUpdate for each group on its own: t, s and offsets have the groups as first dimension,
// dims count without it. The plan is one for so many groups and must not be nil.
func GroupedMultiUpdate(t, s, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiUpdate(multi{what: "GroupedMultiUpdate",
		verb: put, grouped: true, window: windowOf(t, dims, sizes), options: options}, s, offsets, plan)
}

// MultiUpdateAdd adds scale times each of the slices s to t: for each look-up i in turn, and each of its elements,
//
//	t[offsets[i]] += scale * s[i]
//
// A product is rounded, then the sum; integers wrap. Equal offsets accumulate, in their order, so that the bits never
// depend on plan or workers. Floats of 16 bits are multiplied and summed in float32: with a PartialType of float32, the
// default, an element of t is rounded once, after all that the call adds to it; with one of 16 bits after each
// addition. A NaN that results is the canonical one.
//
// scale is one element of t's type, or of float32 for floats of 16 bits. The rest is as MultiUpdate has it. (The
// interface wants t to have rank 2 and one of its dimensions to be sliced; here t and dims may be any.) Sums in float32
// of slices that are not single entries of one dimension take 4 bytes for each element of t while the call lasts.
func MultiUpdateAdd(t, s, offsets, scale *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiUpdate(multi{what: "MultiUpdateAdd",
		verb: addTo, window: windowOf(t, dims, sizes), scale: scale, options: options}, s, offsets, plan)
}

// GroupedMultiUpdateAdd is MultiUpdateAdd for each group on its own, as GroupedMultiUpdate is MultiUpdate.
func GroupedMultiUpdateAdd(t, s, offsets, scale *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiUpdate(multi{what: "GroupedMultiUpdateAdd",
		verb: addTo, grouped: true, window: windowOf(t, dims, sizes), scale: scale, options: options}, s, offsets, plan)
}

// MultiUpdateAddAt is MultiUpdateAdd in one dimension, by single entries, with offsets that the host knows: one out of
// range is an error at once.
func MultiUpdateAddAt(t, s *tensor.Tensor, offsets []int, scale *tensor.Tensor, dim int) error {
	dims := [1]int{dim}
	m := multi{what: "MultiUpdateAddAt", verb: addTo, window: windowOf(t, dims[:], one), scale: scale}
	off, err := m.withHost(offsets)
	if err != nil {
		return err
	}
	return m.run("s", s, off, nil)
}

// MultiUpdateMax makes each element of t the greater of itself and that of each slice in turn: t[offsets[i]] =
// max(t[offsets[i]], s[i]). A NaN that results is the canonical one, and -0 is less than +0. The rest is as MultiUpdate
// has it. (Of t and dims the same holds as with MultiUpdateAdd.)
func MultiUpdateMax(t, s, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiUpdate(multi{what: "MultiUpdateMax", verb: maxTo, window: windowOf(t, dims, sizes), options: options},
		s, offsets, plan)
}

// GroupedMultiUpdateMax is MultiUpdateMax for each group on its own, as GroupedMultiUpdate is MultiUpdate.
func GroupedMultiUpdateMax(t, s, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiUpdate(multi{what: "GroupedMultiUpdateMax",
		verb: maxTo, grouped: true, window: windowOf(t, dims, sizes), options: options}, s, offsets, plan)
}

func multiUpdate(m multi, s, offsets *tensor.Tensor, plan *Plan) error {
	off, err := m.withTensor(offsets, plan)
	if err != nil {
		return err
	}
	return m.run("s", s, off, plan)
}

// The functions on rows do for a slice of Go what those above do for tensors. A table in it is rows of width elements,
// one after the other. They allocate nothing once a call like it has been made, but without a plan when the garbage
// collector has emptied the pool that memory for calls is kept in.

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
