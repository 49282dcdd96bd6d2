package ops_test

import (
	"context"
	"fmt"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// BenchmarkElementwise runs operations on a tensor that a second-level cache holds, 20 times in each run of a session,
// and on one of a small perceptron. ns/element is of one operation.
func BenchmarkElementwise(b *testing.B) {
	const turns = 20
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		for _, shape := range []tensor.Shape{{256, 256}, {100, 10}} {
			rows, columns := tensor.Shape{shape[1]}, tensor.Shape{shape[0], 1}
			for _, c := range []struct {
				name  string
				build func(x, y, row, column *ir.Tensor) *ir.Tensor
			}{
				{"add", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.Add(x, y) }},
				{"sub", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.Sub(x, y) }},
				{"div", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.Div(x, y) }},
				{"add_row", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.Add(x, row) }},
				{"add_column", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.Add(x, column) }},
				{"mul_scalar", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.MulScalar(x, 3) }},
				{"relu", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.Relu(x) }},
				{"tanh", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.Tanh(x) }},
				{"gelu", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.Gelu(x) }},
				{"exp", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.Exp(x) }},
				{"scaled_add", func(x, y, row, column *ir.Tensor) *ir.Tensor { return ops.ScaledAdd(x, y, 0.5) }},
			} {
				b.Run(fmt.Sprintf("op=%s/dtype=%v/shape=%dx%d", c.name, d, shape[0], shape[1]), func(b *testing.B) {
					p := ir.New(1)
					in := p.HostToDevice("in", spec(d, shape...))
					constant := func(s tensor.Shape) *ir.Tensor {
						x, err := tensor.New(d, s...)
						if err != nil {
							b.Fatal(err)
						}
						fillOne(x)
						return p.Main().Constant(x)
					}
					y, row, column := constant(shape), constant(rows), constant(columns)
					x := p.Main().HostLoad(in)
					g := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
						c.build(in[0], in[1], in[2], in[3])
						return nil
					}, x, y, row, column)
					p.Main().Repeat(g, turns, x, y, row, column)
					s, err := ir.NewSession(p)
					if err != nil {
						b.Fatal(err)
					}
					defer s.Close()
					data, _ := tensor.New(d, shape...)
					change(data, func(value) value { return value{f: 0.3} })
					feed := map[*ir.Stream]*tensor.Tensor{in: data}
					b.ReportAllocs()
					for b.Loop() {
						if err := s.RunTo(context.Background(), nil, feed); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/turns/float64(data.Len()),
						"ns/element")
				})
			}
		}
	}
}
