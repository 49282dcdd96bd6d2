package popops

import (
	"fmt"

	"gogcl.dev/tensor"
)

// DynamicSlice is the part of t that begins at offset and has sizes[k] in dimension dims[k], and all of t in the
// others; past the end of a dimension it goes on at the beginning. Without dims it is a copy; a size of 0 gives a
// tensor of no elements.
//
// offset is of uint32 or int32 and has shape (d), an entry for each of dims, or (d, workers): an entry for each worker
// (tile) too, so that it can read its own; those of one dimension must be equal. Errors: dims, sizes and offsets of
// different lengths; a dimension that is not there or given twice; a size that is more than the dimension; an offset
// that is not less than the dimension (of a dimension of 0, more than 0).
func DynamicSlice(t, offset *tensor.Tensor, dims, sizes []int) (*tensor.Tensor, error) {
	b, err := dynamic("DynamicSlice", t, offset, dims, sizes)
	if err != nil {
		return nil, err
	}
	dst, err := tensor.New(t.DType(), b.shapeOf()...)
	if err != nil {
		return nil, fmt.Errorf("popops: DynamicSlice: %w", err)
	}
	return dst, b.dynamic("DynamicSlice", "dst", dst, take)
}

// DynamicSliceInto is DynamicSlice with the result in dst, of the slice's shape and t's type, which shares no memory
// with t and offset. It allocates nothing.
func DynamicSliceInto(dst, t, offset *tensor.Tensor, dims, sizes []int) error {
	b, err := dynamic("DynamicSliceInto", t, offset, dims, sizes)
	if err != nil {
		return err
	}
	return b.dynamic("DynamicSliceInto", "dst", dst, take)
}

// DynamicUpdate is the mirror image of DynamicSlice: it writes s, of the slice's shape, to that part of t. It allocates
// nothing.
func DynamicUpdate(t, s, offset *tensor.Tensor, dims, sizes []int) error {
	b, err := dynamic("DynamicUpdate", t, offset, dims, sizes)
	if err != nil {
		return err
	}
	return b.dynamic("DynamicUpdate", "s", s, put)
}

// dynamic checks all but the slice.
func dynamic(what string, t, offset *tensor.Tensor, dims, sizes []int) (blocks, error) {
	b := blocks{window: window{extents: extents{t: t}, dims: dims, sizes: sizes}}
	fail := func(err error) (blocks, error) { return blocks{}, fmt.Errorf("popops: %s: %w", what, err) }
	if err := checkThere("t", t); err != nil {
		return fail(err)
	}
	if err := checkThere("offset", offset); err != nil {
		return fail(err)
	}
	if err := b.check(); err != nil {
		return fail(err)
	}
	if rank := offset.Rank(); rank < 1 || rank > 2 || offset.Dim(0) != len(dims) ||
		rank == 2 && offset.Dim(1) == 0 && len(dims) > 0 {
		return fail(fmt.Errorf("offset has shape %v, want (%d) or (%[2]d, workers), an entry for each dimension",
			offset.Shape(), len(dims)))
	}
	var err error
	if b.offsets, err = offsetsOf(offset); err != nil {
		return fail(err)
	}
	b.step = 1
	if offset.Rank() == 2 {
		b.step = offset.Dim(1)
	}
	for k, d := range dims {
		v, extent := b.at(k*b.step), t.Dim(d)
		if v < 0 || v >= int64(max(extent, 1)) {
			return fail(fmt.Errorf("offset %d in dimension %d, want 0 <= offset < %d", v, d, extent))
		}
		for w := 1; w < b.step; w++ {
			if other := b.at(k*b.step + w); other != v {
				return fail(fmt.Errorf("offset in dimension %d is %d for worker 0 and %d for worker %d, want the same",
					d, v, other, w))
			}
		}
	}
	return b, nil
}

// dynamic checks the slice and carries the verb out.
func (b *blocks) dynamic(what, name string, s *tensor.Tensor, v verb) error {
	if err := checkThere(name, s); err != nil {
		return fmt.Errorf("popops: %s: %w", what, err)
	}
	if s.DType() != b.t.DType() {
		return fmt.Errorf("popops: %s: %s is %v and t is %v, want one type", what, name, s.DType(), b.t.DType())
	}
	if err := b.checkSlices(name, s, [2]int{}, 0); err != nil {
		return fmt.Errorf("popops: %s: %w", what, err)
	}
	written, other := s, b.t
	if v == put {
		written, other = b.t, s
	}
	if err := checkApart(written, other, tensor.Bytes(b.words)); err != nil {
		return fmt.Errorf("popops: %s: %w", what, err)
	}
	one := *b // so that the runner may be on the stack
	one.do = &runner{verb: v, size: s.DType().Size(), table: b.t.Bytes(), slice: s.Bytes()}
	one.prepare()
	one.lookUp(0)
	return nil
}
