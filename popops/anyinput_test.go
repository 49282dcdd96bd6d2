package popops_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	table, err := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	offsets, err := tensor.FromSlice([]uint32{0, 1}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tensor.New(tensor.F32, 2, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := popops.NewPlan(tensor.F32, 2, 3, []int{2}, popops.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := popops.CreateSliceableTensor(2, tensor.F32, tensor.Shape{4, 3}, []int{0}, []int{1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"DynamicSlice": popops.DynamicSlice, "DynamicSliceInto": popops.DynamicSliceInto,
			"DynamicUpdate": popops.DynamicUpdate, "GroupedMultiSlice": popops.GroupedMultiSlice,
			"GroupedMultiSliceInto": popops.GroupedMultiSliceInto,
			"GroupedMultiUpdate":    popops.GroupedMultiUpdate,
			"GroupedMultiUpdateAdd": popops.GroupedMultiUpdateAdd,
			"GroupedMultiUpdateMax": popops.GroupedMultiUpdateMax, "MultiSlice": popops.MultiSlice,
			"MultiSliceAt": popops.MultiSliceAt, "MultiSliceAtInto": popops.MultiSliceAtInto,
			"MultiSliceInto": popops.MultiSliceInto, "MultiUpdate": popops.MultiUpdate,
			"MultiUpdateAdd": popops.MultiUpdateAdd, "MultiUpdateAddAt": popops.MultiUpdateAddAt,
			"MultiUpdateMax": popops.MultiUpdateMax, "SliceRows": popops.SliceRows[float32, int32],
			"UpdateAddRows":                popops.UpdateAddRows[float32, int32],
			"UpdateAddRows16":              popops.UpdateAddRows16[tensor.BFloat16, int32],
			"UpdateMaxRows":                popops.UpdateMaxRows[float32, int32],
			"UpdateRows":                   popops.UpdateRows[float32, int32],
			"CreateGroupedIndicesTensor":   popops.CreateGroupedIndicesTensor,
			"CreateGroupedSliceTensor":     popops.CreateGroupedSliceTensor,
			"CreateGroupedSliceableTensor": popops.CreateGroupedSliceableTensor,
			"CreateIndicesTensor":          popops.CreateIndicesTensor, "CreateSliceTensor": popops.CreateSliceTensor,
			"CreateSliceTensorByPlan":        popops.CreateSliceTensorByPlan,
			"CreateSliceableTensor":          popops.CreateSliceableTensor,
			"CreateSliceableTensorByPlan":    popops.CreateSliceableTensorByPlan,
			"CreateSliceableTensorFromSlice": popops.CreateSliceableTensorFromSlice,
			"SliceMapping":                   popops.SliceMapping, "NewGroupedPlan": popops.NewGroupedPlan,
			"NewPlan": popops.NewPlan, "ParsePlanOptions": popops.ParsePlanOptions,
		},
		Types: []any{
			popops.Distribution(0), popops.Interval{}, popops.Mapped{}, popops.Mapping{}, popops.Options{},
			popops.Plan{}, popops.PlanOptions{}, popops.UpdateOperation(0),
		},
		Values: []any{
			table, offsets, rows, plan, mapped, tensor.Scalar(float32(1)), tensor.F32, &popops.Plan{}, &popops.Mapped{},
			&tensor.Tensor{},
			[]int{0}, []int{1}, tensor.Shape{4, 3}, 0, 1, 2, 3, []float32{1, 2, 3, 4, 5, 6}, []int32{0, 1},
			[]int32{1, 1},
		},
		Skip: map[string]string{"Mapped.Dim": "an index out of range panics, as in Go", "Plan.Force": "of the tests",
			"Plan.SortedAtOnce": "of the tests", "Plan.UpdateSeconds": "of the tests"},
	})
}
