package ops_test

import (
	"context"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// TestElementwiseAllocatesNothing runs every operation that goes element by element, and gradients, on two replicas.
func TestElementwiseAllocatesNothing(t *testing.T) {
	for _, d := range append([]tensor.DType{tensor.Bool}, numbers...) {
		p := ir.New(2)
		in := p.HostToDevice("in", spec(d, 3, 700))
		out := p.DeviceToHost("out", spec(d, 3, 700))
		x := p.Main().HostLoad(in)
		row, _ := tensor.New(d, 700)
		fillOne(row)
		y := p.Main().Constant(row)
		done := []*ir.Tensor{ops.Equal(x, y), ops.NotEqual(x, y)}
		all := []*ir.Tensor{ops.Select(done[0], x, y)}
		for _, to := range append([]tensor.DType{tensor.Bool}, numbers...) {
			done = append(done, ops.Cast(x, to))
		}
		if d == tensor.Bool {
			all = append(all, ops.Not(x), ops.And(x, y), ops.Or(x, y))
		} else {
			for _, o := range binaryOps {
				all = append(all, o.build(x, y), o.build(x, all[0]), o.scalar(x, 2))
			}
			for _, o := range compareOps {
				done = append(done, o.build(x, y))
			}
			for _, o := range unaryOps {
				if d.IsFloat() || o.i64 != nil && d != tensor.U32 {
					all = append(all, o.build(x))
				}
			}
			all = append(all, ops.Accumulate(ops.MulScalar(x, 3), x), ops.ScaledAdd(ops.MulScalar(x, 5), x, 2))
		}
		if d.IsFloat() {
			graph := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				z := ops.Div(ops.Mul(in[0], in[1]), ops.AddScalar(in[1], 3))
				for _, o := range unaryOps {
					z = o.build(ops.Select(ops.Less(in[0], in[1]), z, in[1]))
				}
				return []*ir.Tensor{z}
			}, x, y)
			info := ir.Autodiff(graph)
			by := info.By(p.Main().CallWithInfo(graph, nil, x, y))
			by[info.Grads[0]] = x
			all = append(all, p.Main().CallWithInfo(info.Graph, by).Outputs()[0])
		}
		result := ops.CopyInto(x, all[0])
		for _, more := range all[1:] {
			result = ops.CopyInto(result, more)
		}
		p.Main().HostStore(out, result)
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		data, _ := tensor.New(d, 2, 3, 700)
		fillOne(data)
		stored, _ := tensor.New(d, 2, 3, 700)
		to, from := map[*ir.Stream]*tensor.Tensor{out: stored}, map[*ir.Stream]*tensor.Tensor{in: data}
		err = s.Within(func() error {
			if n := testing.AllocsPerRun(5, func() {
				if err := s.RunTo(context.Background(), to, from); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%v: %v allocations in each run, want 0", d, n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func fillOne(x *tensor.Tensor) { change(x, func(value) value { return value{i: 1, f: 1} }) }
