package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// The block of BenchmarkTransformerBlock: sequences of a batch, positions of a sequence, channels of a position, heads
// of attention, and neurons between the two products of the perceptron.
const (
	blockBatch     = 8
	blockPositions = 64
	blockChannels  = 128
	blockHeads     = 4
	blockNeurons   = 4 * blockChannels
)

// blockShapes are the shapes of the block's parameters, in the order that transformerBlock takes them.
var blockShapes = []tensor.Shape{
	{blockChannels}, {blockChannels}, // gain and bias of the first norm
	{blockChannels, blockChannels}, {blockChannels, blockChannels}, {blockChannels, blockChannels}, // query, key, value
	{blockChannels, blockChannels},   // projection
	{blockChannels}, {blockChannels}, // gain and bias of the second norm
	{blockChannels, blockNeurons}, {blockNeurons}, // weights and biases of the perceptron's first layer
	{blockNeurons, blockChannels}, {blockChannels}, // and of the second
}

// transformerBlock is x + attention(norm(x)), and then x + perceptron(norm(x)), of x (batch, positions, channels). A
// position attends to itself and those before. The perceptron has a GELU.
func transformerBlock(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	const epsilon, width = 1e-5, blockChannels / blockHeads
	x, p := in[0], in[1:]
	mask := make([]float32, blockPositions*blockPositions)
	for i := range blockPositions {
		for j := i + 1; j < blockPositions; j++ {
			mask[i*blockPositions+j] = -1e30
		}
	}
	masked, err := tensor.FromSlice(mask, blockPositions, blockPositions)
	if err != nil {
		panic(err) // the mask has as many elements as its shape says
	}
	norm := ops.LayerNorm(x, p[0], p[1], epsilon)
	heads := func(w *ir.Tensor, order ...int) *ir.Tensor {
		y := ops.Reshape(ops.MatMul(norm, w), blockBatch, blockPositions, blockHeads, width)
		return ops.Transpose(y, order...)
	}
	q, k, v := heads(p[2], 0, 2, 1, 3), heads(p[3], 0, 2, 3, 1), heads(p[4], 0, 2, 1, 3)
	scores := ops.MatMul(ops.MulScalar(q, 1/math.Sqrt(width)), k)
	weights := ops.Softmax(ops.Add(scores, g.Constant(masked)))
	y := ops.Transpose(ops.MatMul(weights, v), 0, 2, 1, 3)
	x = ops.Add(x, ops.MatMul(ops.Reshape(y, blockBatch, blockPositions, blockChannels), p[5]))

	h := ops.Gelu(ops.Add(ops.MatMul(ops.LayerNorm(x, p[6], p[7], epsilon), p[8]), p[9]))
	return []*ir.Tensor{ops.Add(x, ops.Add(ops.MatMul(h, p[10]), p[11]))}
}

// newTransformer is the block forward and backward, on one replica: the gradients of its input and of each parameter,
// given one of its output. All that goes in stays the same.
func newTransformer() (*ir.Session, error) {
	p := ir.New(1)
	main := p.Main()
	rng := rand.New(rand.NewPCG(3, 4))
	random := func(deviation, mean float64, shape ...int) (*tensor.Tensor, error) {
		t, err := tensor.New(tensor.F32, shape...)
		if err != nil {
			return nil, err
		}
		values, err := tensor.Of[float32](t)
		for i := range values {
			values[i] = float32(mean + deviation*rng.NormFloat64())
		}
		return t, err
	}
	x, err := random(1, 0, blockBatch, blockPositions, blockChannels)
	if err != nil {
		return nil, err
	}
	in := []*ir.Tensor{main.Constant(x)}
	for i, shape := range blockShapes {
		deviation, mean := 1/math.Sqrt(float64(shape[0])), 0.0
		if i == 0 || i == 6 { // gains
			mean = 1
		}
		t, err := random(deviation, mean, shape...)
		if err != nil {
			return nil, err
		}
		in = append(in, p.Variable(t, ir.VariableName(fmt.Sprintf("p%d", i))).Tensor)
	}
	grad, err := random(1, 0, blockBatch, blockPositions, blockChannels)
	if err != nil {
		return nil, err
	}
	forward := p.CreateGraph(transformerBlock, inputs(in)...)
	call := main.CallWithInfo(forward, nil, in...)
	back := ir.Autodiff(forward)
	by := back.By(call)
	by[back.Grads[0]] = main.Constant(grad)
	main.CallWithInfo(back.Graph, by)
	s, err := ir.NewSession(p)
	if err != nil {
		return nil, err
	}
	return s, s.Enter()
}

// BenchmarkTransformerBlock is a block of a transformer, forward and backward, by one replica: 8 sequences of 64
// positions with 128 channels, 4 heads and a GELU.
func BenchmarkTransformerBlock(b *testing.B) {
	s, err := newTransformer()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Run(context.Background(), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTransformerBlock: the block that BenchmarkTransformerBlock measures can be run.
func TestTransformerBlock(t *testing.T) {
	s, err := newTransformer()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.CheckFinite(true)
	if _, err := s.Run(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
