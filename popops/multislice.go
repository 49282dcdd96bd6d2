package popops

import "gogcl.dev/tensor"

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
