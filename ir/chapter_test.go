package ir_test

import (
	"context"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// Two graphs from one function, x@w with w = ones(2,2) and then ones(2): row sums s give columns s, then 2s.
func TestTwoGraphsOfOneFunction(t *testing.T) {
	p := ir.New(1)
	m := p.Main()
	in, first, second := p.HostToDevice("in", f32(2, 2)), p.DeviceToHost("first", f32(2, 2)),
		p.DeviceToHost("second", f32(2))
	matMul := func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.MatMul(in[0], in[1])} }
	x := m.HostLoad(in)
	w1, w2 := p.Variable(f32s(t, []float32{1, 1, 1, 1}, 2, 2)), p.Variable(f32s(t, []float32{1, 1}))
	g1, g2 := p.CreateGraph(matMul, x, w1.Tensor), p.CreateGraph(matMul, x, w2.Tensor)
	y := m.Call(g1, x, w1.Tensor)[0]
	m.HostStore(first, y)
	m.HostStore(second, m.Call(g2, y, w2.Tensor)[0])
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: f32s(t, []float32{1, 2, 30, 40}, 2, 2)})
	if err != nil {
		t.Fatal(err)
	}
	if want := f32s(t, []float32{3, 3, 70, 70}, 2, 2); !got[first].Equal(want) {
		t.Errorf("by a matrix: %v, want %v", got[first], want)
	}
	if want := f32s(t, []float32{6, 140}); !got[second].Equal(want) {
		t.Errorf("then by a vector: %v, want %v", got[second], want)
	}
	if g1 == g2 || g1.Name() == g2.Name() {
		t.Errorf("graphs %s and %s", g1.Name(), g2.Name())
	}
}

// linear is a module, which keeps the inputs that it makes.
type linear struct{ w, b *ir.Tensor }

func (l *linear) build(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	l.w, l.b = g.Input("W", f32(2, 2)), g.Input("b", f32(2))
	return []*ir.Tensor{ops.Add(ops.MatMul(in[0], l.w), l.b)}
}

// Linear layer W = ones(2,2), b = ones(2), x = ones(2,2): 3 after a turn, 7 after two. Its own inputs are given by map.
func TestRepeatModule(t *testing.T) {
	for count, want := range map[int]float32{1: 3, 2: 7} {
		p := ir.New(1)
		m := p.Main()
		x, w := m.Constant(f32s(t, []float32{1, 1, 1, 1}, 2, 2)), p.Variable(f32s(t, []float32{1, 1, 1, 1}, 2, 2))
		b, out := p.Variable(f32s(t, []float32{1, 1})), p.DeviceToHost("out", f32(2, 2))
		l := &linear{}
		g := p.CreateGraph(l.build, x)
		info := m.RepeatWithInfo(g, count, map[*ir.Tensor]*ir.Tensor{l.w: w.Tensor, l.b: b.Tensor}, x)
		m.HostStore(out, info.Outputs()[0])
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got, err := s.Run(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := f32s(t, []float32{want, want, want, want}, 2, 2); !got[out].Equal(want) {
			t.Errorf("%d turns: %v, want %v", count, got[out], want)
		}
	}
}
