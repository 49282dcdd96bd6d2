package ir_test

import (
	"context"
	"strings"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// TestHostToAll gives several replicas a tensor that they share, twice in a run, beside one of each replica's own.
func TestHostToAll(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		p := ir.New(n)
		f32 := func(shape ...int) ir.Spec { return ir.Spec{DType: tensor.F32, Shape: shape} }
		rate, x, out := p.HostToAll("rate", f32(2)), p.HostToDevice("x", f32(2)), p.DeviceToHost("out", f32(2))
		for range 2 {
			p.Main().HostStore(out, ops.Mul(p.Main().HostLoad(rate), p.Main().HostLoad(x)))
		}
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got, want := s.HostSpec(rate), f32(2, 2); !got.Equal(want) {
			t.Errorf("%d replicas: on the host the stream is of %v, want %v", n, got, want)
		}
		rates, _ := tensor.FromSlice([]float32{2, 3, 5, 7}, 2, 2)
		own := make([]float32, 2*n*2)
		want := make([]float32, len(own))
		for i := range own {
			own[i] = float32(i + 1)
			want[i] = own[i] * []float32{2, 3, 5, 7}[i/(2*n)*2+i%2]
		}
		h := s.HostSpec(x)
		xs, err := tensor.FromSlice(own, h.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{rate: rates, x: xs})
		if err != nil {
			t.Fatal(err)
		}
		if w, _ := tensor.FromSlice(want, h.Shape...); !got[out].Equal(w) {
			t.Errorf("%d replicas: %v, want %v", n, got[out], w)
		}
		if n > 1 {
			_, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{rate: xs, x: xs})
			if want := `host to all "rate" is given`; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d replicas, a tensor for each: %v, want %s in it", n, err, want)
			}
		}
	}
}

// TestGradInfoInput calls a gradient with what it needs, input by input.
func TestGradInfoInput(t *testing.T) {
	data := []*tensor.Tensor{irtest.RandomFloats(tensor.Shape{2, 3}), irtest.RandomFloats(tensor.Shape{2, 3}),
		irtest.RandomFloats(tensor.Shape{2, 3})}
	var byName, want []*tensor.Tensor
	for _, named := range []bool{true, false} {
		got := irtest.Run(t, data, func(m *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			graph := m.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{ops.Mul(in[0], in[1])}
			}, in[0], in[1])
			info := ir.Autodiff(graph)
			forward := m.CallWithInfo(graph, nil, in[:2]...)
			by := info.By(forward)
			if named {
				by = map[*ir.Tensor]*ir.Tensor{}
				for i, x := range graph.Inputs() {
					by[info.Input(x)] = in[i]
				}
			}
			if got := info.Input(graph.Outputs()[0]); got != nil {
				t.Errorf("the gradient of a product needs the product: %v", got)
			}
			by[info.Grads[0]] = in[2]
			return m.CallWithInfo(info.Graph, by).Outputs()
		})
		if named {
			byName = got
		} else {
			want = got
		}
	}
	for i := range want {
		if !byName[i].Equal(want[i]) {
			t.Errorf("gradient %d: %v, want %v", i, byName[i], want[i])
		}
	}
	if got := (*ir.GradInfo)(nil).Input(nil); got != nil {
		t.Errorf("of no gradient: %v, want nil", got)
	}
}
