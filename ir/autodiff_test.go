package ir_test

import (
	"context"
	"slices"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// The gradient of what a call gives out for another gradient is an error.
func TestAutodiffRefuses(t *testing.T) {
	p := ir.New(1)
	cube := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.Mul(in[0], ops.Mul(in[0], in[0]))}
	}, f32())
	info := ir.Autodiff(cube)
	ir.Autodiff(p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		by := info.By(g.CallWithInfo(cube, nil, in[0]))
		by[info.Grads[0]] = number(g, 1)
		return g.CallWithInfo(info.Graph, by).Outputs()
	}, f32()))
	if err := p.Err(); err == nil || !matches(err.Error(), "autodiff: %* is given out beside the outputs") {
		t.Errorf("error %v", err)
	}
}

// Turns of a loop that cannot be computed again, since they move tensors by streams: what the gradient needs is kept of
// each turn.
func TestAutodiffOfTurnsThatCannotBeDoneAgain(t *testing.T) {
	p := ir.New(1)
	m := p.Main()
	in, seen, out := p.HostToDevice("in", f32()), p.DeviceToHost("seen", f32()), p.DeviceToHost("out", f32())
	turn := p.CreateGraph(func(g *ir.Graph, in2 []*ir.Tensor) []*ir.Tensor {
		store := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			g.HostStore(seen, in[0])
			return nil
		}, f32())
		g.Call(store, in2[0])
		return []*ir.Tensor{ops.Mul(ops.Mul(in2[0], g.HostLoad(in)), in2[1])}
	}, f32(), f32())
	f := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return g.Repeat(turn, 3, in[0], in[1]) },
		f32(), f32())
	fwd := m.CallWithInfo(f, nil, number(m, 1), number(m, 2))
	info := ir.Autodiff(f)
	by := info.By(fwd)
	by[info.Grads[0]] = number(m, 1)
	grads := m.CallWithInfo(info.Graph, by).Outputs()
	m.HostStore(out, ops.Add(grads[0], ops.MulScalar(grads[1], 1000)))
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: f32s(t, []float32{2, 3, 5})})
	if err != nil {
		t.Fatal(err)
	}
	// 30 x y^3, whose gradients are 30 y^3 = 240 and 90 x y^2 = 360; and each turn has stored once.
	if x, _ := tensor.Of[float32](got[out]); x[0] != 240+360*1000 {
		t.Errorf("gradients %v", x)
	}
	if x, _ := tensor.Of[float32](got[seen]); !slices.Equal(x, []float32{1, 4, 24}) {
		t.Errorf("stored %v", x)
	}
}

// What is changed in place off the way does not matter.
func TestAutodiffOffTheWay(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		count := p.Variable(tensor.Scalar(float32(0)))
		f := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			ops.Accumulate(in[1], number(g, 1))
			return []*ir.Tensor{ops.Mul(in[0], in[0])}
		}, f32(), f32())
		fwd := m.CallWithInfo(f, nil, number(m, 3), count.Tensor)
		fwd.SetParentInputModified(count.Tensor)
		info := ir.Autodiff(f, ir.ForInputs(f.Inputs()[0]))
		by := info.By(fwd)
		by[info.Grads[0]] = number(m, 1)
		return append(m.CallWithInfo(info.Graph, by).Outputs(), count.Tensor)
	}), 6, 1)
}
