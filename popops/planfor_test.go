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
	sorted, err := popops.NewPlan(tensor.F16, 4, 3, []int{2}, popops.PlanOptions{Operation: popops.UpdateMax, IndicesAreSorted: true})
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
	wantError(t, "sorted", update(sorted, popops.UpdateMax, 2, none), "IndicesAreSorted is false, the plan was made with true")
	wantError(t, "partial", update(adds, popops.UpdateAdd, 2, popops.Options{PartialType: tensor.F32}), "PartialType is float32, the plan was made with float16")
	wantError(t, "no such sums", update(adds, popops.UpdateAdd, 2, popops.Options{PartialType: tensor.F64}), "PartialType float64 for float16")
	wantError(t, "no plan", update(nil, popops.UpdateAdd, 2, popops.Options{PartialType: tensor.F64}), "PartialType float64 for float16")
}

// TestClone: a clone is for the same calls, and says the same of itself.
func TestClone(t *testing.T) {
	p, err := popops.NewGroupedPlan(tensor.F32, 2, 4, 3, []int{2, 7}, popops.PlanOptions{Operation: popops.UpdateMax, Workers: 3})
	must(t, err)
	if c := p.Clone(); c == p || c.String() != p.String() {
		t.Errorf("clone %v of %v", c, p)
	}
}
