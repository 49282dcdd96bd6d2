package popops

import (
	"fmt"
	"slices"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// CreateSliceableTensor is a tensor of zeros that is to be sliced and updated by sizes in dims, and how it is spread
// over workers (an IPU's tiles): so that each slice is spread over as many as minGrainSize allows, evenly. Cuts are at
// multiples of minGrainSize of a slice's elements, and no worker that has any has fewer; 0 is a cache line of elements,
// 64 bytes.
//
//	shape {100, 64}, dims {0}, sizes {1}, minGrainSize 2, 4 workers: of each row [0,16) [16,32) [32,48) [48,64)
//	shape {800}, dims {0}, sizes {80}, minGrainSize 1, 4 workers: of each 80 [0,20) [20,40) [40,60) [60,80)
//
// The dimensions that are not sliced are shared out first. Where they do not go into equal parts, the sliced ones are
// too, in pieces of their sizes, of which a slice at any offset has each place once. (Only one that goes on at the
// beginning, in a dimension that is no multiple of its size, may have some twice and others not at all.)
//
// Errors: workers below 1, minGrainSize below 0, what tensor.New refuses, what DynamicSlice says of dims and sizes.
func CreateSliceableTensor(workers int, dtype tensor.DType, shape tensor.Shape, dims, sizes []int,
	minGrainSize int) (*Mapped, error) {
	const what = "CreateSliceableTensor"
	if workers < 1 || workers > maxWorkers {
		return nil, failed(what, fmt.Errorf("%d workers, want 1 to %d", workers, maxWorkers))
	}
	if minGrainSize < 0 {
		return nil, failed(what, fmt.Errorf("minGrainSize %d, want 1 or more, or 0 for a cache line", minGrainSize))
	}
	w := window{extents{shape: shape}, dims, sizes}
	t, err := w.create(dtype, nil, shape)
	if err != nil {
		return nil, failed(what, err)
	}
	if minGrainSize == 0 {
		minGrainSize = kernel.LineBytes / dtype.Size()
	}
	return &Mapped{t, w.spread(t.Len(), minGrainSize, workers)}, nil
}

// CreateSliceableTensorByPlan is CreateSliceableTensor with the spreading over workers that plan has for updates, or
// if it is for slices only, entries shared out evenly. shape, dims and sizes must be what the plan is for.
func CreateSliceableTensorByPlan(dtype tensor.DType, shape tensor.Shape, dims, sizes []int, plan *Plan,
	options Options) (*Mapped, error) {
	return createSliceable("CreateSliceableTensorByPlan", dtype, 1, nil, shape, dims, sizes, plan, options)
}

// CreateGroupedSliceableTensor is CreateSliceableTensorByPlan for so many groups: the tensor has shape (groups,
// shape...), dims count without the groups, and the plan is one for as many.
func CreateGroupedSliceableTensor(dtype tensor.DType, groups int, shape tensor.Shape, dims, sizes []int, plan *Plan,
	options Options) (*Mapped, error) {
	return createSliceable("CreateGroupedSliceableTensor",
		dtype, groups, []int{groups}, shape, dims, sizes, plan, options)
}

// CreateSliceTensor is a tensor of zeros for n slices of t, of shape (n, slice shape...), each element with the worker
// that has it in t at offset 0: an update, or a slice, that stays with the workers. t's mapping must be one of all its
// elements.
func CreateSliceTensor(t *Mapped, dims, sizes []int, n int) (*Mapped, error) {
	const what = "CreateSliceTensor"
	of, err := SliceMapping(t, dims, sizes)
	if err != nil {
		return nil, failed(what, err)
	}
	w := window{extents{t: t.Tensor}, dims, sizes}
	s, err := tensor.New(t.DType(), w.shapeOf(n)...)
	if err != nil {
		return nil, failed(what, err)
	}
	m := make(Mapping, len(of))
	if s.Len() == 0 {
		return &Mapped{s, m}, nil
	}
	each := w.elements()
	for worker, own := range of {
		for i := range n {
			for _, v := range own {
				m.add(worker, i*each+v.From, i*each+v.To)
			}
		}
	}
	return &Mapped{s, m}, nil
}

// CreateSliceTensorByPlan is a tensor of zeros for n slices of a tensor of that shape, of shape (n, slice shape...),
// spread over workers as plan reads or writes them. n must be one of the plan's numbers of look-ups.
func CreateSliceTensorByPlan(dtype tensor.DType, shape tensor.Shape, dims, sizes []int, n int, plan *Plan,
	options Options) (*Mapped, error) {
	return createSlices("CreateSliceTensorByPlan", dtype, 1, []int{n}, shape, dims, sizes, n, plan, options)
}

// CreateGroupedSliceTensor is CreateSliceTensorByPlan for so many groups: the tensor has shape (groups, n, slice
// shape...).
func CreateGroupedSliceTensor(dtype tensor.DType, groups int, shape tensor.Shape, dims, sizes []int, n int, plan *Plan,
	options Options) (*Mapped, error) {
	return createSlices("CreateGroupedSliceTensor",
		dtype, groups, []int{groups, n}, shape, dims, sizes, n, plan, options)
}

// CreateIndicesTensor is a tensor of zeros for the offsets of n look-ups: of uint32 and shape (n, len(dims)), shared
// out evenly to the plan's workers. The plan is for one dimension.
func CreateIndicesTensor(dims []int, n int, plan *Plan, options Options) (*Mapped, error) {
	return createIndices("CreateIndicesTensor", 1, []int{n}, dims, n, plan, options)
}

// CreateGroupedIndicesTensor is CreateIndicesTensor for so many groups: the tensor has shape (groups, n, len(dims)).
func CreateGroupedIndicesTensor(groups int, dims []int, n int, plan *Plan, options Options) (*Mapped, error) {
	return createIndices("CreateGroupedIndicesTensor", groups, []int{groups, n}, dims, n, plan, options)
}

// CreateSliceableTensorFromSlice is a tensor of zeros of which s is a slice: numSlices[k] times as long in dimension
// dims[k]. An element has the worker that s has for it, whichever of the slices it is in.
func CreateSliceableTensorFromSlice(s *Mapped, dims, numSlices []int) (*Mapped, error) {
	const what = "CreateSliceableTensorFromSlice"
	if err := s.check("s"); err != nil {
		return nil, failed(what, err)
	}
	if len(dims) != len(numSlices) {
		return nil, failed(what, fmt.Errorf("%d dims and %d numSlices, want one number for each dimension",
			len(dims), len(numSlices)))
	}
	sizes := make([]int, len(dims))
	for k, d := range dims {
		if d >= 0 && d < s.Rank() {
			sizes[k] = s.Dim(d)
		}
	}
	part := window{extents{t: s.Tensor}, dims, sizes}
	if err := part.check(); err != nil {
		return nil, failed(what, err)
	}
	shape := s.Shape()
	for k, d := range dims {
		if numSlices[k] < 1 {
			return nil, failed(what, fmt.Errorf("%d slices in dimension %d, want 1 or more", numSlices[k], d))
		}
		var err error
		if shape[d], err = (tensor.Shape{shape[d], numSlices[k]}).Elements(); err != nil {
			return nil, failed(what, err)
		}
	}
	t, err := tensor.New(s.DType(), shape...)
	if err != nil {
		return nil, failed(what, err)
	}
	m := make(Mapping, len(s.Mapping))
	owners := s.Mapping.owners()
	at := 0
	each(shape, s.Shape(), func(from, n int) {
		m.take(owners, from, n, at)
		at += n
	})
	return &Mapped{t, m}, nil
}

// create checks a window of a shape and makes a tensor of lead and then shape.
func (w *window) create(dtype tensor.DType, lead []int, shape tensor.Shape) (*tensor.Tensor, error) {
	if err := w.shape.Validate(); err != nil {
		return nil, err
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	return tensor.New(dtype, slices.Concat(lead, shape)...)
}

// byPlan checks a window of a shape against the plan.
func (w *window) byPlan(dtype tensor.DType, groups int, plan *Plan, options Options) error {
	if plan == nil {
		return errNoPlan
	}
	if err := w.shape.Validate(); err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return err
	}
	if !w.isRows() {
		return fmt.Errorf("dims %v and sizes %v with a plan, want one dimension and the size 1",
			slices.Clone(w.dims), slices.Clone(w.sizes))
	}
	outer, inner := w.around(w.dims[0])
	if err := plan.checkTable(dtype, groups, w.dim(w.dims[0]), outer*inner); err != nil {
		return err
	}
	return plan.checkOptions(options)
}

func createSliceable(what string, dtype tensor.DType, groups int, lead []int, shape tensor.Shape, dims, sizes []int,
	plan *Plan, options Options) (*Mapped, error) {
	w := window{extents{shape: shape}, dims, sizes}
	if err := w.byPlan(dtype, groups, plan, options); err != nil {
		return nil, failed(what, err)
	}
	t, err := w.create(dtype, lead, shape)
	if err != nil {
		return nil, failed(what, err)
	}
	return &Mapped{t, plan.tableMapping(&w)}, nil
}

func createSlices(what string, dtype tensor.DType, groups int, lead []int, shape tensor.Shape, dims, sizes []int, n int,
	plan *Plan, options Options) (*Mapped, error) {
	w := window{extents{shape: shape}, dims, sizes}
	err := w.byPlan(dtype, groups, plan, options)
	if err == nil {
		err = plan.checkLookUps(n)
	}
	if err != nil {
		return nil, failed(what, err)
	}
	s, err := tensor.New(dtype, w.shapeOf(lead...)...)
	if err != nil {
		return nil, failed(what, err)
	}
	return &Mapped{s, plan.sliceMapping(&w, n)}, nil
}

func createIndices(what string, groups int, lead []int, dims []int, n int, plan *Plan,
	options Options) (*Mapped, error) {
	fail := func(err error) (*Mapped, error) { return nil, failed(what, err) }
	if plan == nil {
		return fail(errNoPlan)
	}
	if len(dims) != 1 || dims[0] < 0 {
		return fail(fmt.Errorf("dims %v with a plan, want one dimension", dims))
	}
	if groups != plan.groups {
		return fail(fmt.Errorf("%d groups, the plan is for %d", groups, plan.groups))
	}
	if err := plan.checkLookUps(n); err != nil {
		return fail(err)
	}
	if err := plan.checkOptions(options); err != nil {
		return fail(err)
	}
	t, err := tensor.New(tensor.U32, append(slices.Clone(lead), len(dims))...)
	if err != nil {
		return fail(err)
	}
	return &Mapped{t, contiguous(spread(t.Len(), kernel.LineBytes/4, plan.crews.workers))}, nil
}
