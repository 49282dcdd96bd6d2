package popops_test

import (
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestExamples: the examples and rules that the semantics give in words.
func TestExamples(t *testing.T) {
	x := newTensor(t, tensor.I32, 3, 4, 2)
	for i := range x.Len() {
		store(x, i, uint64(100*(i/8+1)+10*(i/2%4+1)+i%2+1))
	}
	got, err := popops.DynamicSlice(x, of(t, []uint32{2}, 1), []int{0}, []int{2})
	must(t, err)
	if want := of(t, []int32{311, 312, 321, 322, 331, 332, 341, 342, 111, 112, 121, 122, 131, 132, 141, 142}, 2, 4,
		2); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
	got, err = popops.DynamicSlice(x, of(t, []int32{2, 3, 1}, 3), []int{0, 1, 2}, []int{1, 1, 1})
	must(t, err)
	if want := of(t, []int32{342}, 1, 1, 1); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
	got, err = popops.DynamicSlice(x, of(t, []uint32{}, 0), nil, nil)
	must(t, err)
	if !got.Equal(x) {
		t.Errorf("no dims: %v", got)
	}
	got, err = popops.DynamicSlice(x, of(t, []uint32{1}, 1), []int{1}, []int{0})
	must(t, err)
	if got.Len() != 0 || !got.Shape().Equal(tensor.Shape{3, 0, 2}) {
		t.Errorf("a zero size: %v", got)
	}
	got, err = popops.MultiSliceAt(x, []int{1, 0}, 2)
	must(t, err)
	if !got.Shape().Equal(tensor.Shape{2, 3, 4, 1}) || load(got, 0) != 112 || load(got, 12) != 111 {
		t.Errorf("host offsets: %v", got)
	}
}

// TestPartials: with sums in float32 an element is rounded once, with sums of 16 bits after each addition. 2048 is
// where a float16 has no fractions any more: 2048+1 is rounded to 2048, and 2048+1+1 is 2050.
func TestPartials(t *testing.T) {
	for partial, want := range map[tensor.DType]float32{0: 2050, tensor.F32: 2050, tensor.F16: 2048} {
		for _, planned := range []bool{false, true} {
			table := []tensor.Float16{tensor.Float16FromFloat32(2048)}
			one := tensor.Float16FromFloat32(1)
			var plan *popops.Plan
			options := popops.Options{PartialType: partial}
			if planned {
				var err error
				plan, err = popops.NewPlan(tensor.F16, 1, 1, []int{2}, popops.PlanOptions{PartialType: partial})
				must(t, err)
				options = popops.Options{}
			}
			must(t, popops.UpdateAddRows(table, []tensor.Float16{one, one}, 1, []uint32{0, 0}, one, plan, options))
			if got := table[0].Float32(); got != want {
				t.Errorf("partials of %v, plan %v: %v, want %v", partial, planned, got, want)
			}
		}
	}
}
