package slice

import (
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestGradientPlan: a plan that a gradient has made for it is like that of the operation.
func TestGradientPlan(t *testing.T) {
	want := popops.PlanOptions{NotForUpdate: true, Workers: 3, AvailableMemoryProportion: 0.25,
		Distribution: popops.OnePoint}
	plan, err := popops.NewPlan(tensor.F32, 5, 3, []int{7}, want)
	if err != nil {
		t.Fatal(err)
	}
	f := Form{Kind: Multi, Dims: []int{0}, Sizes: []int{1}, Plan: plan}
	table := ir.Spec{Shape: tensor.Shape{5, 3}, DType: tensor.F32}
	f = f.gradientForm(nil, addTo, table, ir.Spec{Shape: tensor.Shape{7, 1}, DType: tensor.U32})
	want.NotForUpdate, want.NotForSlice = false, true
	if got := f.Plan.Options(); got != want {
		t.Errorf("options %+v, want %+v", got, want)
	}
}
