package ir_test

import (
	"context"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// TestIdentity moves a tensor through two replicas.
func TestIdentity(t *testing.T) {
	p := ir.New(2)
	in := p.HostToDevice("in", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{3}})
	out := p.DeviceToHost("out", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{3}})
	g := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return in }, in.Spec())
	x := p.Main().HostLoad(in)
	x = p.Main().Repeat(g, 3, x)[0]
	x = p.Main().Call(g, x)[0]
	p.Main().HostStore(out, x)
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	data, _ := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: data})
	if err != nil {
		t.Fatal(err)
	}
	if !got[out].Equal(data) {
		t.Errorf("%v, want %v", got[out], data)
	}
}
