//go:build !race

package popops_test

import (
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestNoAllocations is not for the race detector, with which a sync.Pool forgets.
func TestNoAllocations(t *testing.T) {
	table, err := tensor.New(tensor.F16, 50, 6)
	must(t, err)
	rows, err := tensor.New(tensor.F16, 40, 1, 6)
	must(t, err)
	columns, err := tensor.New(tensor.F16, 40, 50, 1)
	must(t, err)
	blocks, err := tensor.New(tensor.F16, 40, 3, 2)
	must(t, err)
	part, err := tensor.New(tensor.F16, 3, 2)
	must(t, err)
	offsets, host := make([]uint32, 40), make([]int, 40)
	for i := range offsets {
		offsets[i] = uint32(i * 7 % 60) // some are out of range
		host[i] = i * 7 % 6
	}
	one := offsetsTensor(t, offsets, 40, 1)
	two := offsetsTensor(t, append(offsets, offsets...), 40, 2)
	at := offsetsTensor(t, []uint32{49, 5}, 2)
	scale := tensor.Scalar[float32](2)
	plan := func(o popops.PlanOptions, groups int) *popops.Plan {
		o.Workers = 2
		p, err := popops.NewGroupedPlan(tensor.F16, groups, 50, 6, []int{40}, o)
		must(t, err)
		p.Force(2, 1, o.Operation == popops.UpdateAdd) // or the cost model would have one worker for so little
		return p
	}
	grouped := func(x *tensor.Tensor) *tensor.Tensor {
		g, err := x.Reshape(append([]int{1}, x.Shape()...)...)
		must(t, err)
		return g
	}
	adds, puts := plan(popops.PlanOptions{}, 1), plan(popops.PlanOptions{Operation: popops.UpdateNone}, 1)
	maxes := plan(popops.PlanOptions{Operation: popops.UpdateMax}, 1)
	gt, gr, g1 := grouped(table), grouped(rows), grouped(one)
	floats, wide := make([]float32, 50*6), make([]float32, 40*6)
	none := popops.Options{}
	for name, call := range map[string]func() error{
		"DynamicSliceInto": func() error {
			return popops.DynamicSliceInto(part, table, at, []int{0, 1}, []int{3, 2})
		},
		"DynamicUpdate": func() error {
			return popops.DynamicUpdate(table, part, at, []int{0, 1}, []int{3, 2})
		},
		"MultiSliceInto": func() error {
			return popops.MultiSliceInto(rows, table, one, []int{0}, []int{1}, nil, none)
		},
		"MultiSliceInto/blocks": func() error {
			return popops.MultiSliceInto(blocks, table, two, []int{0, 1}, []int{3, 2}, nil, none)
		},
		"MultiSliceInto/plan": func() error {
			return popops.MultiSliceInto(rows, table, one, []int{0}, []int{1}, adds, none)
		},
		"MultiSliceAtInto": func() error { return popops.MultiSliceAtInto(columns, table, host, 1) },
		"MultiUpdate": func() error {
			return popops.MultiUpdate(table, rows, one, []int{0}, []int{1}, nil, none)
		},
		"MultiUpdate/blocks": func() error {
			return popops.MultiUpdate(table, blocks, two, []int{0, 1}, []int{3, 2}, nil, none)
		},
		"MultiUpdate/plan": func() error {
			return popops.MultiUpdate(table, rows, one, []int{0}, []int{1}, puts, none)
		},
		"MultiUpdateAdd": func() error {
			return popops.MultiUpdateAdd(table, rows, one, scale, []int{0}, []int{1}, nil, none)
		},
		"MultiUpdateAdd/blocks": func() error {
			return popops.MultiUpdateAdd(table, blocks, two, scale, []int{0, 1}, []int{3, 2}, nil, none)
		},
		"MultiUpdateAdd/plan": func() error {
			return popops.MultiUpdateAdd(table, rows, one, scale, []int{0}, []int{1}, adds, none)
		},
		"MultiUpdateAddAt": func() error { return popops.MultiUpdateAddAt(table, columns, host, scale, 1) },
		"MultiUpdateMax": func() error {
			return popops.MultiUpdateMax(table, rows, one, []int{0}, []int{1}, nil, none)
		},
		"MultiUpdateMax/plan": func() error {
			return popops.MultiUpdateMax(table, rows, one, []int{0}, []int{1}, maxes, none)
		},
		"GroupedMultiSliceInto": func() error {
			return popops.GroupedMultiSliceInto(gr, gt, g1, []int{0}, []int{1}, adds, none)
		},
		"GroupedMultiUpdate": func() error {
			return popops.GroupedMultiUpdate(gt, gr, g1, []int{0}, []int{1}, puts, none)
		},
		"GroupedMultiUpdateAdd": func() error {
			return popops.GroupedMultiUpdateAdd(gt, gr, g1, scale, []int{0}, []int{1}, adds, none)
		},
		"GroupedMultiUpdateMax": func() error {
			return popops.GroupedMultiUpdateMax(gt, gr, g1, []int{0}, []int{1}, maxes, none)
		},
		"SliceRows":     func() error { return popops.SliceRows(wide, floats, 6, offsets, nil, none) },
		"UpdateRows":    func() error { return popops.UpdateRows(floats, wide, 6, offsets, nil, none) },
		"UpdateAddRows": func() error { return popops.UpdateAddRows(floats, wide, 6, offsets, 2, nil, none) },
		"UpdateMaxRows": func() error { return popops.UpdateMaxRows(floats, wide, 6, offsets, nil, none) },
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
