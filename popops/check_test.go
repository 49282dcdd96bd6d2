package popops_test

import (
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestChecksOfPlans: what CheckSlice and CheckUpdate say is what calls say.
func TestChecksOfPlans(t *testing.T) {
	adds, err := popops.NewPlan(tensor.F16, 4, 3, []int{2}, popops.PlanOptions{PartialType: tensor.F16})
	must(t, err)
	sorted, err := popops.NewPlan(tensor.F16, 4, 3, []int{2},
		popops.PlanOptions{Operation: popops.UpdateMax, IndicesAreSorted: true})
	must(t, err)
	none := popops.Options{}
	slice := func(p *popops.Plan, n int, o popops.Options) error {
		return p.CheckSlice(tensor.F16, 1, 4, 3, n, o)
	}
	update := func(p *popops.Plan, op popops.UpdateOperation, n int, o popops.Options) error {
		return p.CheckUpdate(op, tensor.F16, 1, 4, 3, n, o)
	}
	must(t, slice(adds, 2, popops.Options{IndicesAreSorted: true}))
	must(t, slice(nil, 5, none))
	must(t, update(adds, popops.UpdateAdd, 2, none))
	must(t, update(sorted, popops.UpdateMax, 2, popops.Options{IndicesAreSorted: true, ValidateIndices: true}))
	must(t, update(nil, popops.UpdateAdd, 2, popops.Options{IndicesAreSorted: true, ValidateIndices: true}))
	wantError(t, "look-ups", slice(adds, 3, none), "3 look-ups, the plan is for [2]")
	wantError(t, "operation", update(adds, popops.UpdateNone, 2, none), "operation none, the plan is for add")
	wantError(t, "sorted", update(sorted, popops.UpdateMax, 2, none), "IndicesAreSorted is false, the plan was made "+
		"with true")
	wantError(t, "partial", update(adds, popops.UpdateAdd, 2, popops.Options{PartialType: tensor.F32}),
		"PartialType is float32, the plan was made with float16")
	wantError(t, "no such sums", update(adds, popops.UpdateAdd, 2, popops.Options{PartialType: tensor.F64}),
		"PartialType float64 for float16")
	wantError(t, "no operation", update(nil, 77, 2, none), "operation UpdateOperation(77), want UpdateAdd, "+
		"UpdateNone or UpdateMax")
	wantError(t, "no operation, planned", update(adds, 77, 2, none), "operation UpdateOperation(77)")
	wantError(t, "fewer than none", slice(nil, -1, none), "-1 look-ups, want 0 or more")
	wantError(t, "fewer than none, planned", update(adds, popops.UpdateAdd, -1, none), "-1 look-ups, want 0 or more")
	var nobodys *popops.Plan
	wantError(t, "no type", nobodys.CheckSlice(tensor.DType(200), 1, 4, 3, 2, none), "invalid dtype")
	wantError(t, "no type, updated", nobodys.CheckUpdate(popops.UpdateNone, tensor.DType(200), 1, 4, 3, 2, none),
		"invalid dtype")
	wantError(t, "no number", nobodys.CheckUpdate(popops.UpdateMax, tensor.Bool, 1, 4, 3, 2, none),
		"elements are bool, want a number")
	must(t, nobodys.CheckUpdate(popops.UpdateNone, tensor.Bool, 1, 4, 3, 2, none))
	wantError(t, "no table", nobodys.CheckSlice(tensor.F16, 1, -4, 3, 2, none), "1 groups of -4 entries of 3 "+
		"elements, want 0 or more of all")
	wantError(t, "a plan for nothing", slice(&popops.Plan{}, 2, none), "the plan is for 0 of 0 of 0")
	wantError(t, "no plan", update(nil, popops.UpdateAdd, 2, popops.Options{PartialType: tensor.F64}),
		"PartialType float64 for float16")
}
