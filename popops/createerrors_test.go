package popops_test

import (
	"math"
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

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
