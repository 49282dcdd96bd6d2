package popops_test

import (
	"fmt"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// Look-ups in a table, and an update with the gradients that belong to them.
func Example() {
	table := []float32{0, 0, 10, 10, 20, 20, 30, 30} // rows of 2
	offsets := []uint32{3, 1, 3}
	rows := make([]float32, 6)
	if err := popops.SliceRows(rows, table, 2, offsets, nil, popops.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rows)
	grads := []float32{1, 2, 3, 4, 5, 6}
	if err := popops.UpdateAddRows(table, grads, 2, offsets, -1, nil, popops.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(table)
	// Output:
	// [30 30 10 10 30 30]
	// [0 0 7 6 20 20 24 22]
}

// A slice that goes on at the beginning of the dimension.
func ExampleDynamicSlice() {
	t, _ := tensor.FromSlice([]int32{1, 2, 3, 4, 5, 6}, 3, 2)
	offset, _ := tensor.FromSlice([]uint32{2})
	s, err := popops.DynamicSlice(t, offset, []int{0}, []int{2})
	fmt.Println(s, err)
	// Output: int32(2, 2)[[5 6] [1 2]] <nil>
}

// How the elements of a table are spread over workers.
func ExampleCreateSliceableTensor() {
	t, err := popops.CreateSliceableTensor(4, tensor.F32, tensor.Shape{100, 64}, []int{0}, []int{1}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for w, intervals := range t.Mapping {
		fmt.Println(w, len(intervals), intervals[:2])
	}
	// Output:
	// 0 100 [{0 16} {64 80}]
	// 1 100 [{16 32} {80 96}]
	// 2 100 [{32 48} {96 112}]
	// 3 100 [{48 64} {112 128}]
}
