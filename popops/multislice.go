package popops

import "gogcl.dev/tensor"

// MultiSlice is several slices of t: n of them as offsets, of shape (n, d) and of uint32 or int32, has rows. Each is what
// DynamicSlice gives, and the result has shape (n, slice shape...), one dimension more than t. A look-up with an offset
// out of range gives zeros, or with ValidateIndices an error. plan may be nil: then the caller's goroutine does it all.
// Errors: those of DynamicSlice but for the offsets' range; a plan for something else.
func MultiSlice(t, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) (*tensor.Tensor, error) {
	return multiSlice(multi{what: "MultiSlice", t: t, dims: dims, sizes: sizes, plan: plan, options: options}, offsets)
}

// MultiSliceInto is MultiSlice with the result in dst, which shares no memory with t and offsets. It allocates nothing
// once a call like it has been made.
func MultiSliceInto(dst, t, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiSliceInto(multi{what: "MultiSliceInto", t: t, dims: dims, sizes: sizes, plan: plan, options: options}, dst, offsets)
}

// GroupedMultiSlice is MultiSlice for each group on its own: t, offsets and the result have the groups as first dimension,
// dims count without it. The plan is one for so many groups and must not be nil.
func GroupedMultiSlice(t, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) (*tensor.Tensor, error) {
	return multiSlice(multi{what: "GroupedMultiSlice", grouped: true, t: t, dims: dims, sizes: sizes, plan: plan, options: options}, offsets)
}

// GroupedMultiSliceInto is GroupedMultiSlice with the result in dst, as MultiSliceInto has it.
func GroupedMultiSliceInto(dst, t, offsets *tensor.Tensor, dims, sizes []int, plan *Plan, options Options) error {
	return multiSliceInto(multi{what: "GroupedMultiSliceInto", grouped: true, t: t, dims: dims, sizes: sizes, plan: plan, options: options}, dst, offsets)
}

// one is the size of slices with offsets from the host.
var one = []int{1}

// MultiSliceAt is MultiSlice in one dimension, by single entries, with offsets that the host knows: one out of range is an
// error at once.
func MultiSliceAt(t *tensor.Tensor, offsets []int, dim int) (*tensor.Tensor, error) {
	m := multi{what: "MultiSliceAt", t: t, dims: []int{dim}, sizes: one}
	if err := m.withHost(offsets); err != nil {
		return nil, err
	}
	dst, err := m.result()
	if err != nil {
		return nil, err
	}
	return dst, m.run("dst", dst)
}

// MultiSliceAtInto is MultiSliceAt with the result in dst, as MultiSliceInto has it.
func MultiSliceAtInto(dst, t *tensor.Tensor, offsets []int, dim int) error {
	dims := [1]int{dim}
	m := multi{what: "MultiSliceAtInto", t: t, dims: dims[:], sizes: one}
	if err := m.withHost(offsets); err != nil {
		return err
	}
	return m.run("dst", dst)
}

func multiSlice(m multi, offsets *tensor.Tensor) (*tensor.Tensor, error) {
	if err := m.withTensor(offsets); err != nil {
		return nil, err
	}
	dst, err := m.result()
	if err != nil {
		return nil, err
	}
	return dst, m.run("dst", dst)
}

func multiSliceInto(m multi, dst, offsets *tensor.Tensor) error {
	if err := m.withTensor(offsets); err != nil {
		return err
	}
	return m.run("dst", dst)
}
