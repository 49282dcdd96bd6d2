package slice_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/ir"
	"gogcl.dev/ir/slice"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	p := ir.New(2)
	m := p.Main()
	data, err := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	x, numbers := m.Constant(data), m.Constant(tensor.Scalar(int32(1)))
	offsets, err := tensor.FromSlice([]int32{0, 1}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := popops.NewPlan(tensor.F32, 2, 3, []int{2}, popops.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rows := slice.Form{Kind: slice.Multi, Dims: []int{0}, Sizes: []int{1}, Plan: plan}
	running := ir.New(2)
	s, err := ir.NewSession(running)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"At": slice.At,
		},
		Types: []any{slice.Form{}, slice.Kind(0)},
		Values: []any{
			p, m, x, x, numbers, m.Constant(offsets), data, running, s, &ir.Tensor{}, &popops.Plan{}, plan, rows,
			slice.Form{}, slice.Form{Kind: 9}, slice.Form{Kind: slice.GroupedMulti, Dims: []int{-1}}, []int{0},
			[]int{1}, 0, 1,
		},
	})
}
