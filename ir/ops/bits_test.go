package ops_test

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// TestSameBitsOnEveryMachine: functions, the operations of rows, and the gradients of all have the bits that they had
// where the checksums were made. One that changes is another result, for CHANGELOG.md.
func TestSameBitsOnEveryMachine(t *testing.T) {
	const rows, width = 9, 77
	for d, want := range map[tensor.DType]uint32{
		tensor.F32: 0xeff1502d, tensor.F64: 0xae234e25, tensor.F16: 0x2d5addd6, tensor.BF16: 0x7090bb8e,
	} {
		r := rand.New(rand.NewPCG(7, 8))
		random := func(shape ...int) *tensor.Tensor {
			a := newSlowArray(shape...)
			for i := range a.v {
				a.v[i] = 8*r.Float64() - 4
			}
			return a.tensor(t, d)
		}
		in := []*tensor.Tensor{random(rows, width), random(width), random(width), random(rows, width),
			randomLabels(r, width, rows).tensor(t, tensor.I32)}
		got := irtest.Run(t, in, func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			forward := func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				x, gamma, beta, labels := in[0], in[1], in[2], in[3]
				return []*ir.Tensor{
					ops.Exp(x), ops.Log(ops.Abs(x)), ops.Tanh(x), ops.Sigmoid(x), ops.Gelu(x),
					ops.Softmax(x), ops.LogSoftmax(x), ops.LayerNorm(x, gamma, beta, 1e-5),
					ops.CrossEntropyEach(x, labels),
				}
			}
			x := []*ir.Tensor{in[0], in[1], in[2], in[4]}
			sub := g.Program().CreateGraph(forward, x[0], x[1], x[2], x[3])
			call := g.CallWithInfo(sub, nil, x...)
			back := ir.Autodiff(sub, ir.ForInputs(sub.Inputs()[:3]...))
			by := back.By(call)
			for i, grad := range back.Grads {
				if by[grad] = in[3]; i == len(back.Grads)-1 {
					by[grad] = ops.ReduceSum(in[3], 1)
				}
			}
			return append(call.Outputs(), g.CallWithInfo(back.Graph, by).Outputs()...)
		})
		sum := crc32.NewIEEE()
		for _, y := range got {
			sum.Write(y.Bytes())
		}
		if sum.Sum32() != want {
			t.Errorf("%v: the results have checksum %#x, want %#x", d, sum.Sum32(), want)
		}
	}
}
