package popops_test

import (
	"fmt"
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

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
