package main

import (
	"math/rand/v2"

	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// hiddenLayer has the outputs of the hidden layer, given images, weights and biases.
func hiddenLayer(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.Relu(ops.Add(ops.MatMul(in[0], in[1]), in[2]))}
}

// lossLayer has the loss, the sum of the images' cross entropies times their weights in the batch, given the outputs
// of the hidden layer, labels, those weights, and the layer's own weights and biases.
func lossLayer(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	logits := ops.Add(ops.MatMul(in[0], in[3]), in[4])
	return []*ir.Tensor{ops.ReduceSum(ops.Mul(ops.CrossEntropyEach(logits, in[1]), in[2]))}
}

// hiddenSpec is the output of hiddenLayer.
func hiddenSpec(rows int) ir.Spec {
	return ir.Spec{DType: tensor.F32, Shape: tensor.Shape{rows, perceptron.Hidden}}
}

// param is a parameter of the net.
type param struct {
	name  string
	shape tensor.Shape
}

// params are the parameters in the order of perceptron.Net's Params; the first two are those of hiddenLayer.
var params = []param{
	{"w1", tensor.Shape{perceptron.Pixels, perceptron.Hidden}},
	{"b1", tensor.Shape{perceptron.Hidden}},
	{"w2", tensor.Shape{perceptron.Hidden, perceptron.Classes}},
	{"b2", tensor.Shape{perceptron.Classes}},
}

// layerBytes is what the parameters of the larger layer take: gathered in buckets of this size, each layer goes by
// itself.
const layerBytes = 4 * (perceptron.Pixels*perceptron.Hidden + perceptron.Hidden)

// spec is the parameter as a whole.
func (p param) spec() ir.Spec { return ir.Spec{DType: tensor.F32, Shape: p.shape} }

// elements is how many numbers a parameter has.
func (p param) elements() int {
	n := 1
	for _, extent := range p.shape {
		n *= extent
	}
	return n
}

// cut gives a function each parameter with its part of flat, which is as long as all together.
func cut(flat []float32, f func(i int, p param, part []float32) error) error {
	for i, p := range params {
		n := p.elements()
		if err := f(i, p, flat[:n:n]); err != nil {
			return err
		}
		flat = flat[n:]
	}
	return nil
}

// firstWeights are the parameters that training begins with.
func firstWeights(seed uint64) []float32 {
	net := perceptron.New(1)
	net.Init(rand.New(rand.NewPCG(seed, weightStream)))
	return net.Params
}

// Streams of random numbers from one seed.
const (
	weightStream = iota // the first weights
	orderStream         // the order of the images in the first pass; that of pass k is orderStream+k
)

// orderOf is the order of so many images in a pass, the first being 0.
func orderOf(seed uint64, pass, images int) []int {
	return rand.New(rand.NewPCG(seed, orderStream+uint64(pass))).Perm(images)
}
