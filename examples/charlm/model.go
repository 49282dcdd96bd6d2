package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/slice"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// parameter is a tensor that is learnt, in float32.
type parameter struct {
	name  string
	shape tensor.Shape
	begin func(random *rand.Rand, values []float32) // sets what it begins with
}

// layer is a part of the model, as training wants it: a graph whose inputs are the outputs of the layer before, then
// what comes from outside, then the parameters. Layers of one kind share a graph.
//
//	layer      graph             before        from outside       outputs
//	embedding  embedding         -             characters (B, T)  (B, T, width)
//	block 0    block             (B, T, width) -                  (B, T, width)
//	...        the same
//	head       logits, loss or   (B, T, width) targets (B, T)     logits (B, T, vocabulary), or the mean loss, a scalar,
//	           losses                          but for logits     or the loss of each character (B, T)
type layer struct {
	name   string
	graph  *ir.Graph
	params []parameter
}

// head says what comes after the blocks.
type head int

const (
	meanLoss head = iota // the mean cross entropy of the next characters
	eachLoss             // that of each one
	onlyLogits
)

// model is a transformer decoder with the norm before each part (Radford et al., "Language Models are Unsupervised
// Multitask Learners", 2019), as graphs of a program:
//
//	x = table[characters] + positions
//	each block: x = x + attention(norm(x)); x = x + mlp(norm(x))
//	logits = norm(x) w + b
//
// where attention is over the characters up to one's own, and the mlp squares what its relu lets through (So et al.,
// "Primer", arXiv:2109.08668).
type model struct {
	size   size
	layers []layer
}

// newModel builds the graphs for batches of so many windows.
func newModel(p *ir.Program, s size, windows int, h head) *model {
	chars := ir.Spec{DType: tensor.I32, Shape: tensor.Shape{windows, s.window}}
	x := ir.Spec{DType: tensor.F32, Shape: tensor.Shape{windows, s.window, s.width}}
	build := func(f func(*ir.Graph, []*ir.Tensor) []*ir.Tensor, params []parameter, in ...ir.Input) *ir.Graph {
		for _, param := range params {
			in = append(in, ir.Spec{DType: tensor.F32, Shape: param.shape})
		}
		return p.CreateGraph(f, in...)
	}
	m := &model{size: s}
	first := s.embeddingParams()
	m.layers = append(m.layers, layer{"embedding", build(s.embedding, first, chars), first})
	each := s.blockParams()
	block := build(s.block, each, x)
	for i := range s.depth {
		m.layers = append(m.layers, layer{fmt.Sprintf("block %d", i), block, each})
	}
	last := s.headParams()
	switch h {
	case meanLoss:
		m.layers = append(m.layers, layer{"head", build(s.loss, last, x, chars), last})
	case eachLoss:
		m.layers = append(m.layers, layer{"head", build(s.losses, last, x, chars), last})
	case onlyLogits:
		m.layers = append(m.layers, layer{"head", build(s.logits, last, x), last})
	}
	return m
}

func (s size) embeddingParams() []parameter {
	return []parameter{
		{"table", tensor.Shape{s.vocabulary, s.width}, normal(1)},
		{"positions", tensor.Shape{s.window, s.width}, normal(1)},
	}
}

func (s size) blockParams() []parameter {
	in, hidden := 1/math.Sqrt(float64(s.width)), 1/math.Sqrt(float64(s.hidden()))
	out := 1 / math.Sqrt(2*float64(s.depth)) // so many parts are added up
	return []parameter{
		{"norm 1 gain", tensor.Shape{s.width}, constant(1)},
		{"norm 1 bias", tensor.Shape{s.width}, constant(0)},
		{"query", tensor.Shape{s.width, s.width}, normal(in)},
		{"key", tensor.Shape{s.width, s.width}, normal(in)},
		{"value", tensor.Shape{s.width, s.width}, normal(in)},
		{"projection", tensor.Shape{s.width, s.width}, normal(in * out)},
		{"norm 2 gain", tensor.Shape{s.width}, constant(1)},
		{"norm 2 bias", tensor.Shape{s.width}, constant(0)},
		{"mlp in", tensor.Shape{s.width, s.hidden()}, normal(in)},
		{"mlp in bias", tensor.Shape{s.hidden()}, constant(0)},
		{"mlp out", tensor.Shape{s.hidden(), s.width}, normal(hidden * out)},
		{"mlp out bias", tensor.Shape{s.width}, constant(0)},
	}
}

func (s size) headParams() []parameter {
	return []parameter{
		{"norm gain", tensor.Shape{s.width}, constant(1)},
		{"norm bias", tensor.Shape{s.width}, constant(0)},
		{"output", tensor.Shape{s.width, s.vocabulary}, constant(0)}, // at first all characters are as likely
		{"output bias", tensor.Shape{s.vocabulary}, constant(0)},
	}
}

// epsilon is what layer norms add to variances: that of PyTorch's LayerNorm.
const epsilon = 1e-5

// embedding has characters (B, T), and the parameters of embeddingParams.
func (s size) embedding(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	entries := slice.Form{Kind: slice.Multi, Dims: []int{0}, Sizes: []int{1},
		Options: popops.Options{ValidateIndices: true}}
	rows := entries.Slice(in[1], ops.Reshape(in[0], -1, 1))
	return []*ir.Tensor{ops.Add(ops.Reshape(rows, append(in[0].Shape(), s.width)...), in[2])}
}

// block has x (B, T, width), and the parameters of blockParams.
func (s size) block(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	x, p := in[0], in[1:]
	x = ops.Add(x, s.attention(g, ops.LayerNorm(x, p[0], p[1], epsilon), p[2], p[3], p[4], p[5]))
	h := ops.Relu(ops.Add(ops.MatMul(ops.LayerNorm(x, p[6], p[7], epsilon), p[8]), p[9]))
	return []*ir.Tensor{ops.Add(x, ops.Add(ops.MatMul(ops.Square(h), p[10]), p[11]))}
}

// attention has x (B, T, width). Heads are batches of matrices: (B, heads, T, width/heads).
func (s size) attention(g *ir.Graph, x, query, key, value, projection *ir.Tensor) *ir.Tensor {
	shape := x.Shape()
	windows, each := shape[0], s.width/s.heads
	split := func(w *ir.Tensor) *ir.Tensor {
		return ops.Reshape(ops.MatMul(x, w), windows, s.window, s.heads, each)
	}
	q := ops.Transpose(split(query), 0, 2, 1, 3)
	k := ops.Transpose(split(key), 0, 2, 3, 1)
	v := ops.Transpose(split(value), 0, 2, 1, 3)
	scores := ops.MatMul(ops.MulScalar(q, 1/math.Sqrt(float64(each))), k)
	weights := ops.Softmax(ops.Add(scores, g.Constant(s.mask())))
	y := ops.Transpose(ops.MatMul(weights, v), 0, 2, 1, 3)
	return ops.MatMul(ops.Reshape(y, windows, s.window, s.width), projection)
}

// masked is added to the scores of characters that are still to come: its exponential is 0, as that of an infinity is,
// and ir.Session.CheckFinite takes it for a number.
const masked = -1e30

// mask is what is added to the scores (T, T): nothing where a character sees one that is not after it.
func (s size) mask() *tensor.Tensor {
	m := make([]float32, s.window*s.window)
	for i := range s.window {
		for j := i + 1; j < s.window; j++ {
			m[i*s.window+j] = masked
		}
	}
	t, err := tensor.FromSlice(m, s.window, s.window)
	if err != nil {
		panic(err) // so many elements are made above
	}
	return t
}

// logits has x (B, T, width), and the parameters of headParams.
func (s size) logits(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{s.predict(in[0], in[1:])}
}

// loss has x (B, T, width), targets (B, T), and the parameters of headParams.
func (s size) loss(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.CrossEntropy(s.predict(in[0], in[2:]), in[1])}
}

// losses is loss before the mean.
func (s size) losses(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.CrossEntropyEach(s.predict(in[0], in[2:]), in[1])}
}

func (s size) predict(x *ir.Tensor, p []*ir.Tensor) *ir.Tensor {
	return ops.Add(ops.MatMul(ops.LayerNorm(x, p[0], p[1], epsilon), p[2]), p[3])
}

// normal begins with numbers of a normal distribution.
func normal(deviation float64) func(*rand.Rand, []float32) {
	return func(random *rand.Rand, values []float32) {
		for i := range values {
			values[i] = float32(deviation * random.NormFloat64())
		}
	}
}

// constant begins with one number.
func constant(v float32) func(*rand.Rand, []float32) {
	return func(_ *rand.Rand, values []float32) {
		for i := range values {
			values[i] = v
		}
	}
}

// values is what the parameters have, by layer, in the order of its parameters.
type values [][]*tensor.Tensor

// begin draws what the parameters begin with.
func (m *model) begin(random *rand.Rand) (values, error) {
	all := make(values, len(m.layers))
	for i, l := range m.layers {
		for _, param := range l.params {
			t, err := tensor.New(tensor.F32, param.shape...)
			if err != nil {
				return nil, err
			}
			data, err := tensor.Of[float32](t)
			if err != nil {
				return nil, err
			}
			param.begin(random, data)
			all[i] = append(all[i], t)
		}
	}
	return all, nil
}
