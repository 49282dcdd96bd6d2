package popops_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// owners is the worker of each element.
func owners(t *testing.T, m *popops.Mapped) []int {
	t.Helper()
	must(t, m.Mapping.Check(m.Len()))
	all := make([]int, m.Len())
	for w, own := range m.Mapping {
		for _, v := range own {
			for i := v.From; i < v.To; i++ {
				all[i] = w
			}
		}
	}
	return all
}

// coordinates are those of element i.
func coordinates(shape []int, i int) []int {
	x := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		x[d] = i % shape[d]
		i /= shape[d]
	}
	return x
}

// TestCreateSliceableTensor checks the rules of spreading on random shapes: a slice at any offset that does not go on
// at the beginning touches as many workers as have a grain of it, and each of them has at least a grain, and no more
// than its share and what is left of two.
func TestCreateSliceableTensor(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		c := newTrial(rng, false)
		shape, dims, sizes := c.naive.shape, c.naive.dims, c.naive.sizes
		if product(shape) > 5000 {
			continue
		}
		workers, grain := 1+rng.IntN(6), rng.IntN(4)
		m, err := popops.CreateSliceableTensor(workers, c.naive.dtype, shape, dims, sizes, grain)
		must(t, err)
		if !m.Shape().Equal(shape) || m.DType() != c.naive.dtype || len(m.Mapping) != workers {
			t.Fatalf("%v %v of %d workers", m.DType(), m.Shape(), len(m.Mapping))
		}
		if grain == 0 {
			grain = 64 / c.naive.dtype.Size()
		}
		of := owners(t, m)
		n := product(c.naive.sliceShape())
		if n == 0 {
			continue
		}
		used := max(1, min(workers, n/grain))
		for range 3 {
			offsets := make([]int64, len(dims))
			for k, d := range dims {
				offsets[k] = int64(rng.IntN(shape[d] - sizes[k] + 1))
			}
			count := make([]int, workers)
			for _, at := range c.naive.elements(offsets) {
				count[of[at]]++
			}
			for w, has := range count {
				if w >= used && has > 0 || w < used && (has < min(grain, n) || has > n/used+2*grain) {
					t.Fatalf("%v dims %v sizes %v grain %d offsets %v: worker %d has %d, %v are to have %d",
						shape, dims, sizes, grain, offsets, w, has, used, n)
				}
			}
		}
	}
}

// TestCreateSliceableTensorExamples: what sliced dimensions add where the others do not go round, and that nothing
// takes long where there are no elements.
func TestCreateSliceableTensorExamples(t *testing.T) {
	for _, c := range []struct {
		shape       tensor.Shape
		dims, sizes []int
		grain       int
		of          func(i int) int
	}{
		{tensor.Shape{100, 64}, []int{0}, []int{1}, 2, func(i int) int { return i % 64 / 16 }},
		{tensor.Shape{100, 64}, []int{0}, []int{30}, 2, func(i int) int { return i % 64 / 16 }},
		{tensor.Shape{1000}, []int{0}, []int{100}, 1, func(i int) int { return i % 100 / 25 }},
		{tensor.Shape{64, 64}, []int{0, 1}, []int{16, 16}, 1, func(i int) int { return i / 64 % 16 / 4 }},
		{tensor.Shape{64, 64}, []int{0, 1}, []int{16, 16}, 64, func(i int) int { return i / 64 % 16 / 4 }},
		{tensor.Shape{64, 64}, []int{0, 1}, []int{0, 0}, 1, func(i int) int { return 0 }},
	} {
		m, err := popops.CreateSliceableTensor(4, tensor.F32, c.shape, c.dims, c.sizes, c.grain)
		must(t, err)
		for i, w := range owners(t, m) {
			if w != c.of(i) {
				t.Fatalf("%v dims %v sizes %v: element %d has worker %d, want %d",
					c.shape, c.dims, c.sizes, i, w, c.of(i))
			}
		}
	}
}

// TestWithoutElements: tensors of no elements are made at once, however long their dimensions are.
func TestWithoutElements(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("an int has 32 bits here: no dimension is so long")
	}
	long := math.MaxInt / 1024 / 1024
	none := popops.Options{}
	empty := func(x *popops.Mapped, err error) *popops.Mapped {
		t.Helper()
		must(t, err)
		must(t, x.Mapping.Check(0))
		return x
	}
	empty(popops.CreateSliceableTensor(4, tensor.F32, tensor.Shape{long, 0}, []int{1}, []int{0}, 1))
	empty(popops.CreateSliceableTensor(4, tensor.F32, tensor.Shape{long, long, 0}, []int{1}, []int{5}, 1))
	p, err := popops.NewPlan(tensor.F32, long, 0, []int{long}, popops.PlanOptions{Workers: 4})
	must(t, err)
	table := empty(popops.CreateSliceableTensorByPlan(tensor.F32, tensor.Shape{long, 0}, []int{0}, []int{1}, p, none))
	empty(popops.CreateSliceTensorByPlan(tensor.F32, tensor.Shape{long, 0}, []int{0}, []int{1}, long, p, none))
	empty(popops.CreateSliceTensor(table, []int{0}, []int{1}, long))
	empty(popops.CreateSliceableTensorFromSlice(table, []int{0}, []int{5}))
	full, err := popops.CreateSliceableTensor(4, tensor.F32, tensor.Shape{4, 3}, []int{0}, []int{1}, 1)
	must(t, err)
	empty(popops.CreateSliceTensor(full, []int{0}, []int{0}, long))
}

// TestManyNumbers: a plan for thousands of numbers of look-ups and as many workers as there may be is made at once.
func TestManyNumbers(t *testing.T) {
	var lookUps []int
	for i := range 4000 {
		lookUps = append(lookUps, 1_000_000+i*1000)
	}
	_, err := popops.NewPlan(tensor.F32, 1_000_000, 64, lookUps, popops.PlanOptions{Workers: 1 << 16})
	must(t, err)
	if n := popops.Tries(1 << 16); n > 600 || popops.Tries(64) != 64 {
		t.Errorf("%d numbers of workers are tried up to %d, and %d up to 64, want 600 at most and all",
			n, 1<<16, popops.Tries(64))
	}
}

// TestSliceTensors checks SliceMapping, CreateSliceTensor and CreateSliceableTensorFromSlice by coordinates.
func TestSliceTensors(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		c := newTrial(rng, false)
		shape, dims, sizes := c.naive.shape, c.naive.dims, c.naive.sizes
		table, err := popops.CreateSliceableTensor(3, tensor.F32, shape, nil, nil, 1)
		must(t, err)
		of := owners(t, table)
		zero := make([]int64, len(dims))
		var want []int
		for _, at := range c.naive.elements(zero) {
			want = append(want, of[at])
		}
		m, err := popops.SliceMapping(table, dims, sizes)
		must(t, err)
		if product(c.naive.sliceShape()) > 0 {
			got := owners(t, &popops.Mapped{Tensor: newTensor(t, tensor.F32, c.naive.sliceShape()...), Mapping: m})
			if !slices.Equal(got, want) {
				t.Fatalf("%v dims %v sizes %v: %v, want %v", shape, dims, sizes, got, want)
			}
		}
		s, err := popops.CreateSliceTensor(table, dims, sizes, 3)
		must(t, err)
		if !s.Shape().Equal(append([]int{3}, c.naive.sliceShape()...)) || s.DType() != tensor.F32 {
			t.Fatalf("slices are %v%v", s.DType(), s.Shape())
		}
		if s.Len() > 0 && !slices.Equal(owners(t, s), slices.Concat(want, want, want)) {
			t.Fatalf("%v dims %v sizes %v: slices by %v, want three times %v", shape, dims, sizes, owners(t, s), want)
		}

		numbers := make([]int, len(dims))
		whole := slices.Clone(shape)
		for k, d := range dims {
			numbers[k] = 1 + rng.IntN(3)
			whole[d] *= numbers[k]
		}
		full, err := popops.CreateSliceableTensorFromSlice(table, dims, numbers)
		must(t, err)
		if !full.Shape().Equal(whole) {
			t.Fatalf("shape %v, want %v", full.Shape(), whole)
		}
		for i, w := range owners(t, full) {
			at := 0
			for d, x := range coordinates(whole, i) {
				at = at*shape[d] + x%shape[d]
			}
			if w != of[at] {
				t.Fatalf("element %d of %v has worker %d, the slice's has %d", i, whole, w, of[at])
			}
		}
	}
}

// TestCreateErrors: what the functions that create tensors refuse.
func TestCreateErrors(t *testing.T) {
	shape, dims, sizes := tensor.Shape{4, 3}, []int{0}, []int{1}
	p, other := testPlan(t, 1, popops.PlanOptions{}), testPlan(t, 2, popops.PlanOptions{})
	none := popops.Options{}
	sorted := popops.Options{IndicesAreSorted: true}
	sums := popops.Options{PartialType: tensor.F16}
	first := func(_ *popops.Mapped, err error) error { return err }
	table, err := popops.CreateSliceableTensor(2, tensor.F16, shape, dims, sizes, 1)
	must(t, err)
	with := func(m popops.Mapping) *popops.Mapped { return &popops.Mapped{Tensor: table.Tensor, Mapping: m} }
	mapping := func(m *popops.Mapped, dims, sizes []int) error {
		_, err := popops.SliceMapping(m, dims, sizes)
		return err
	}
	byPlan := popops.CreateSliceableTensorByPlan
	for _, c := range []struct {
		want string
		err  error
	}{
		{"0 workers", first(popops.CreateSliceableTensor(0, tensor.F16, shape, dims, sizes, 1))},
		{"65537 workers", first(popops.CreateSliceableTensor(1<<16+1, tensor.F16, shape, dims, sizes, 1))},
		{"minGrainSize -1", first(popops.CreateSliceableTensor(2, tensor.F16, shape, dims, sizes, -1))},
		{"invalid dtype", first(popops.CreateSliceableTensor(2, 0, shape, dims, sizes, 0))},
		{"negative", first(popops.CreateSliceableTensor(2, tensor.F16, tensor.Shape{-4, 3}, dims, sizes, 1))},
		{"size 5 in dimension 0", first(popops.CreateSliceableTensor(2, tensor.F16, shape, dims, []int{5}, 1))},
		{"no plan", first(byPlan(tensor.F16, shape, dims, sizes, nil, none))},
		{"dimension 2", first(byPlan(tensor.F16, shape, []int{2}, sizes, p, none))},
		{"negative", first(byPlan(tensor.F16, tensor.Shape{-1, 3}, dims, sizes, p, none))},
		{"want one dimension and the size 1", first(byPlan(tensor.F16, shape, dims, []int{2}, p, none))},
		{"the plan is for 1 of 4 of 3 float16", first(byPlan(tensor.F32, shape, dims, sizes, p, none))},
		{"the plan is for 2 of 4", first(byPlan(tensor.F16, shape, dims, sizes, other, none))},
		{"IndicesAreSorted is true", first(byPlan(tensor.F16, shape, dims, sizes, p, sorted))},
		{"PartialType is float16", first(byPlan(tensor.F16, shape, dims, sizes, p, sums))},
		{"PartialType int32 for float16, want float32 or float16", first(byPlan(tensor.F16, shape, dims, sizes, p, popops.Options{PartialType: tensor.I32}))},
		{"PartialType float64 for float16", first(popops.CreateIndicesTensor(dims, 2, p, popops.Options{PartialType: tensor.F64}))},
		{"the plan is for 1 of 4", first(popops.CreateGroupedSliceableTensor(tensor.F16, 2, shape, dims, sizes, p, none))},
		{"no plan", first(popops.CreateSliceTensorByPlan(tensor.F16, shape, dims, sizes, 2, nil, none))},
		{"3 look-ups, the plan is for [2]", first(popops.CreateSliceTensorByPlan(tensor.F16, shape, dims, sizes, 3, p, none))},
		{"the plan is for 2 of 4", first(popops.CreateGroupedSliceTensor(tensor.F16, 3, shape, dims, sizes, 2, other, none))},
		{"no plan", first(popops.CreateIndicesTensor(dims, 2, nil, none))},
		{"3 look-ups, the plan is for [2]", first(popops.CreateIndicesTensor(dims, 3, p, none))},
		{"dims [0 1] with a plan", first(popops.CreateIndicesTensor([]int{0, 1}, 2, p, none))},
		{"IndicesAreSorted is true", first(popops.CreateIndicesTensor(dims, 2, p, sorted))},
		{"3 groups, the plan is for 2", first(popops.CreateGroupedIndicesTensor(3, dims, 2, other, none))},
		{"t is nil", first(popops.CreateSliceTensor(nil, dims, sizes, 2))},
		{"size 5 in dimension 0", first(popops.CreateSliceTensor(table, dims, []int{5}, 2))},
		{"negative", first(popops.CreateSliceTensor(table, dims, sizes, -1))},
		{"s is nil", first(popops.CreateSliceableTensorFromSlice(nil, dims, sizes))},
		{"1 dims and 2 numSlices", first(popops.CreateSliceableTensorFromSlice(table, dims, []int{1, 2}))},
		{"dimension 2", first(popops.CreateSliceableTensorFromSlice(table, []int{2}, sizes))},
		{"0 slices in dimension 0", first(popops.CreateSliceableTensorFromSlice(table, dims, []int{0}))},
		{"has more than", first(popops.CreateSliceableTensorFromSlice(table, dims, []int{math.MaxInt}))},
		{"t is nil, want a tensor with its mapping", mapping(nil, dims, sizes)},
		{"t is nil, want a tensor", mapping(&popops.Mapped{}, dims, sizes)},
		{"size 9", mapping(table, dims, []int{9})},
		{"elements 0 to 12 have no worker", mapping(with(nil), dims, sizes)},
		{"elements 4 to 5 have no worker", mapping(with(popops.Mapping{{{0, 4}}, {{5, 12}}}), dims, sizes)},
		{"elements 3 to 4 have more than one worker", mapping(with(popops.Mapping{{{0, 4}}, {{3, 12}}}), dims, sizes)},
		{"want 0 <= from < to <= 12", mapping(with(popops.Mapping{{{0, 13}}}), dims, sizes)},
		{"has elements 4 to 4", mapping(with(popops.Mapping{{{4, 4}}}), dims, sizes)},
		{"want a gap between", mapping(with(popops.Mapping{{{0, 4}, {4, 12}}}), dims, sizes)},
	} {
		wantError(t, c.want, c.err, c.want)
	}
	// What no call with the plan would refuse, the creators do not either.
	look, greatest := testPlan(t, 1, popops.PlanOptions{NotForUpdate: true}),
		testPlan(t, 1, popops.PlanOptions{Operation: popops.UpdateMax})
	must(t, first(byPlan(tensor.F16, shape, dims, sizes, look, sorted)))
	must(t, first(byPlan(tensor.F16, shape, dims, sizes, look, sums)))
	must(t, first(byPlan(tensor.F16, shape, dims, sizes, greatest, sums)))
}
