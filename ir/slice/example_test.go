package slice_test

import (
	"context"
	"fmt"
	"log"

	"gogcl.dev/ir"
	"gogcl.dev/ir/slice"
	"gogcl.dev/tensor"
)

// Rows of a table are looked up by indices that are known only when the program runs.
func ExampleForm() {
	p := ir.New(1)
	table := p.HostToDevice("table", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{4, 2}})
	words := p.HostToDevice("words", ir.Spec{DType: tensor.I32, Shape: tensor.Shape{3, 1}})
	out := p.DeviceToHost("rows", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{3, 1, 2}})

	g := p.Main()
	rows := slice.Form{Kind: slice.Multi, Dims: []int{0}, Sizes: []int{1}} // single entries of dimension 0
	g.HostStore(out, rows.Slice(g.HostLoad(table), g.HostLoad(words)))

	s, err := ir.NewSession(p)
	if err != nil {
		log.Fatal(err) // whatever was wrong with what was built
	}
	defer s.Close()
	data, err := tensor.FromSlice([]float32{0, 1, 10, 11, 20, 21, 30, 31}, 4, 2)
	if err != nil {
		log.Fatal(err)
	}
	indices, err := tensor.FromSlice([]int32{2, 0, 7}, 3, 1) // 7 is no row
	if err != nil {
		log.Fatal(err)
	}
	got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{table: data, words: indices})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got[out])
	// Output: float32(3, 1, 2)[[[20 21]] [[0 1]] [[0 0]]]
}
