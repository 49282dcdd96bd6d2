package collective_test

import (
	"context"
	"fmt"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/tensor"
)

// Four replicas have 1, 2, 3 and 4. They add them up in pairs, and gather the larger sum, which both have.
func Example() {
	p := ir.New(4)
	in := p.HostToDevice("in", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{1}})
	out := p.DeviceToHost("out", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}})

	pairs := collective.Comm{Group: commgroup.Group{Type: commgroup.Consecutive, Size: 2}}
	everybody := collective.Comm{}
	x := p.Main().HostLoad(in)
	p.Main().HostStore(out, pairs.AllGatherConcat(everybody.AllReduce(pairs.AllReduce(x, gcl.Add), gcl.Max)))

	s, err := ir.NewSession(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	data, _ := tensor.FromSlice([]float32{1, 2, 3, 4}, 4, 1)
	results, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: data})
	fmt.Println(results[out], err)
	// Output: float32(4, 2)[[7 7] [7 7] [7 7] [7 7]] <nil>
}
