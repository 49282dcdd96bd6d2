package popops_test

import (
	"fmt"
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

// TestCreateByPlan checks what is created for plans: shapes, types, and that every worker has what it works on.
func TestCreateByPlan(t *testing.T) {
	options := popops.Options{}
	for _, groups := range []int{1, 3} {
		for by := range 3 {
			p, err := popops.NewGroupedPlan(tensor.F32, groups, 10, 48, []int{7}, popops.PlanOptions{Workers: 3})
			must(t, err)
			p.Force(3, by, false)
			shape := tensor.Shape{3, 10, 16}
			dims, sizes := []int{1}, []int{1}
			table, err := popops.CreateGroupedSliceableTensor(tensor.F32, groups, shape, dims, sizes, p, options)
			must(t, err)
			rows, err := popops.CreateGroupedSliceTensor(tensor.F32, groups, shape, dims, sizes, 7, p, options)
			must(t, err)
			indices, err := popops.CreateGroupedIndicesTensor(groups, dims, 7, p, options)
			must(t, err)
			for x, want := range map[*popops.Mapped]string{
				table:   fmt.Sprintf("float32(%d, 3, 10, 16)", groups),
				rows:    fmt.Sprintf("float32(%d, 7, 3, 1, 16)", groups),
				indices: fmt.Sprintf("uint32(%d, 7, 1)", groups),
			} {
				if got := x.DType().String() + x.Shape().String(); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
			for i, w := range owners(t, table) {
				x := coordinates([]int{groups, 3, 10, 16}, i)
				if row := x[0]*10 + x[2]; by < 2 && w != ownerOf(row, groups*10, 3) {
					t.Fatalf("row %d of %d groups has worker %d", row, groups, w)
				} else if by == 2 && w != 2 { // a row is a cache line here, which is not split: the last worker has all
					t.Fatalf("by columns worker %d has element %d", w, i)
				}
			}
			for i, w := range owners(t, rows) {
				if x := i / 48; w != ownerOf(x, groups*7, 3) {
					t.Fatalf("look-up %d of %d groups has worker %d", x, groups, w)
				}
			}
			owners(t, indices)
			if groups > 1 {
				continue
			}
			for _, create := range []func() (*popops.Mapped, error){
				func() (*popops.Mapped, error) {
					return popops.CreateSliceableTensorByPlan(tensor.F32, shape, dims, sizes, p, options)
				},
				func() (*popops.Mapped, error) {
					return popops.CreateSliceTensorByPlan(tensor.F32, shape, dims, sizes, 7, p, options)
				},
				func() (*popops.Mapped, error) { return popops.CreateIndicesTensor(dims, 7, p, options) },
			} {
				x, err := create()
				must(t, err)
				owners(t, x)
				if r := x.Rank(); x.Dim(0) == 1 || r != 2 && r != 3 && r != 4 {
					t.Errorf("shape %v", x.Shape())
				}
			}
		}
	}
	// Columns are split at cache lines: four and a bit are 70 floats.
	columns, err := popops.NewPlan(tensor.F32, 10, 210, []int{7}, popops.PlanOptions{Workers: 3})
	must(t, err)
	columns.Force(3, 2, false)
	split, err := popops.CreateSliceableTensorByPlan(tensor.F32, tensor.Shape{3, 10, 70}, []int{1}, []int{1}, columns,
		options)
	must(t, err)
	for i, w := range owners(t, split) {
		if want := []int{0, 1, 2, 2, 2}[i%70/16]; w != want {
			t.Fatalf("column %d has worker %d, want %d", i%70, w, want)
		}
	}
	updates, err := popops.NewPlan(tensor.F32, 10, 210, []int{7}, popops.PlanOptions{NotForSlice: true, Workers: 3})
	must(t, err)
	updates.Force(3, 2, false)
	parts, err := popops.CreateSliceTensorByPlan(tensor.F32, tensor.Shape{3, 10, 70}, []int{1}, []int{1}, 7, updates,
		options)
	must(t, err)
	table := owners(t, split)
	for i, w := range owners(t, parts) {
		if table := table[i%70]; w != table {
			t.Fatalf("column %d of slices has worker %d, that of the table %d", i%70, w, table)
		}
	}
	// A plan for slices only shares the entries out, one for updates only the look-ups of its slices.
	p, err := popops.NewPlan(tensor.F32, 10, 48, []int{7}, popops.PlanOptions{NotForSlice: true, Workers: 3})
	must(t, err)
	p.Force(3, 1, false)
	s, err := popops.CreateSliceTensorByPlan(tensor.F32, tensor.Shape{10, 48}, []int{0}, []int{1}, 7, p, options)
	must(t, err)
	for i, w := range owners(t, s) {
		if w != ownerOf(i/48, 7, 3) {
			t.Fatalf("element %d has worker %d", i, w)
		}
	}
	p, err = popops.NewPlan(tensor.F32, 10, 48, []int{7}, popops.PlanOptions{NotForUpdate: true, Workers: 3})
	must(t, err)
	p.Force(3, 2, false)
	s, err = popops.CreateSliceableTensorByPlan(tensor.F32, tensor.Shape{10, 48}, []int{0}, []int{1}, p, options)
	must(t, err)
	for i, w := range owners(t, s) {
		if w != ownerOf(i/48, 10, 3) {
			t.Fatalf("element %d has worker %d", i, w)
		}
	}
}

// ownerOf is the worker that has x of n things that are shared out to workers.
func ownerOf(x, n, workers int) int {
	for w := range workers {
		if x < n*(w+1)/workers {
			return w
		}
	}
	return -1
}
