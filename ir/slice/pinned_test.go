package slice_test

import (
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/slice"
)

// TestUpdateFromAnEarlierVersion: what a tensor was before a call changed it lies elsewhere, and may be put into it.
func TestUpdateFromAnEarlierVersion(t *testing.T) {
	p := ir.New(1)
	m := p.Main()
	x := p.Variable(of(t, []float32{1, 2, 3, 4}, 2, 2)).Tensor
	var in0 *ir.Tensor
	squares := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		in0 = in[0]
		return []*ir.Tensor{ops.Square(ops.Accumulate(in[0], ops.Square(in[0])))}
	}, x)
	info := ir.Autodiff(squares)
	call := m.CallWithInfo(squares, nil, x)
	call.SetParentInputModified(in0)
	by := info.By(call)
	ops.Accumulate(x, m.Constant(of(t, []float32{1, 1, 1, 1}, 2, 2)))
	for _, old := range by {
		slice.Form{Dims: []int{0}, Sizes: []int{2}}.UpdateInPlace(x, old, m.Constant(of(t, []uint32{0}, 1)))
	}
	if len(by) == 0 {
		t.Fatal("the gradient needs nothing")
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}
