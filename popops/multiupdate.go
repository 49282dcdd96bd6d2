package popops

import "gogcl.dev/tensor"

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
