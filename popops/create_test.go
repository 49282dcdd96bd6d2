package popops_test

import (
	"fmt"
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

// TestCreateSliceableTensor checks the rules of spreading on random shapes: the elements that are not sliced are cut at
// multiples of the grain, into parts that differ by one grain at most but for what is left over, whatever the offset.
func TestCreateSliceableTensor(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		c := newTrial(rng, false)
		shape, dims := c.naive.shape, c.naive.dims
		if product(shape) > 5000 {
			continue
		}
		workers, grain := 1+rng.IntN(6), rng.IntN(4)
		m, err := popops.CreateSliceableTensor(workers, c.naive.dtype, shape, dims, c.naive.sizes, grain)
		must(t, err)
		if !m.Shape().Equal(shape) || m.DType() != c.naive.dtype || len(m.Mapping) != workers {
			t.Fatalf("%v %v of %d workers", m.DType(), m.Shape(), len(m.Mapping))
		}
		if grain == 0 {
			grain = 64 / c.naive.dtype.Size()
		}
		unsliced := 1
		for d, x := range shape {
			if !slices.Contains(dims, d) {
				unsliced *= x
			}
		}
		by := make([]int, unsliced) // the worker of each unsliced element, +1
		for i, w := range owners(t, m) {
			at := 0
			for d, x := range coordinates(shape, i) {
				if !slices.Contains(dims, d) {
					at = at*shape[d] + x
				}
			}
			if by[at] != 0 && by[at] != w+1 {
				t.Fatalf("%v dims %v: unsliced element %d has workers %d and %d", shape, dims, at, by[at]-1, w)
			}
			by[at] = w + 1
		}
		if m.Len() == 0 {
			continue
		}
		count := make([]int, workers)
		for at, w := range by {
			count[w-1]++
			if at > 0 && w != by[at-1] && (w != by[at-1]+1 || at%grain != 0) {
				t.Fatalf("%v dims %v grain %d: cut at %d from worker %d to %d", shape, dims, grain, at, by[at-1]-1, w-1)
			}
		}
		used := min(workers, max(1, unsliced/grain))
		for w, n := range count {
			least, most := unsliced/grain/used*grain, (unsliced/grain+used-1)/used*grain+unsliced%grain
			if w < used && unsliced >= grain && (n < least || n > most) || w >= used && n > 0 {
				t.Fatalf("%v dims %v grain %d: worker %d of %d has %d of %d", shape, dims, grain, w, used, n, unsliced)
			}
		}
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
