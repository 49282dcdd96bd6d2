package rts

import (
	"errors"

	"gogcl.dev/ir"
)

// Layer is a part of a model: a graph, and what it is called with.
type Layer struct {
	// Graph has the layer's inputs: first the outputs of the layer before, if there is one; then Inputs; then Params,
	// whole. Layers alike may share one graph. The first output of a model's last layer is the loss, a scalar of
	// floats; further ones of floats count for nothing in the gradient.
	Graph  *ir.Graph
	Inputs []*ir.Tensor // of the main graph: images, labels
	Params []*Variable  // of float32
}

// Trainer says how a model is trained. Its zero value lacks an Optimizer only.
type Trainer struct {
	Optimizer Optimizer

	// ClipNorm, above 0, is the norm that the gradients of all parameters together are scaled down to where theirs is
	// greater: see Clip. It costs the time until all gradients are reduced before the first parameter changes.
	ClipNorm float64

	// BucketBytes is up to how many bytes of whole parameters are gathered, or their gradients reduced, in one set of
	// messages. Layers that follow each other and have room in one bucket are gathered together. With 1 every parameter
	// goes by itself. 0 is DefaultBucketBytes, but with Overlap no more than an eighth of all parameters.
	BucketBytes int

	// Overlap has parameters gathered while the layers of the bucket before compute, and gradients reduced while those
	// of the next bucket go backward, on a goroutine beside each replica's: see [ir.Graph.Start]. The bits are the
	// same. It takes the memory of a second bucket. Where all parameters are in one bucket nothing overlaps.
	Overlap bool

	// Keep keeps gathered parameters from forward to backward, where otherwise they are gathered again: less is sent,
	// and all parameters are in memory whole.
	Keep bool

	// Accumulate, above 0, is the number of micro-batches of a step. All Inputs of the layers then have one dimension
	// more than those of their graphs, the first, of this extent. The parameters are updated once, by the mean of the
	// micro-batches' gradients: where the loss is the mean of the samples, k micro-batches of m samples give what one
	// batch of k*m does, but for the order of the sums. So a loss that is a sum must be k times as large.
	//
	// All activations are those of one micro-batch. Each replica adds up the gradients of all parameters whole, and
	// they are reduced once, while the last micro-batch goes backward: what is sent of gradients does not grow with k,
	// and a whole copy of them is in memory, which Memory counts among Gradients. (FSDP does that within no_sync. Sums
	// in shards would take 1/n of it and a reduction for each micro-batch.) Parameters are gathered anew for each.
	// The sums end with the step, so a checkpoint between runs has none. 0 is a batch in one, without that dimension.
	Accumulate int

	// CheckFinite has sessions of the program look for NaN and infinity: see [ir.Session.CheckFinite].
	CheckFinite bool
}

// DefaultBucketBytes is what a BucketBytes of 0 stands for: enough for a message to be about its bytes and not about
// its latency.
const DefaultBucketBytes = 1 << 20

// Step is a training step that a Trainer has added to a program.
type Step struct {
	// Outputs are those of the last layer on this replica: the first is its loss, before the step. With Accumulate it
	// is the mean over the micro-batches (of 16 bits, added up in float32), and the others have them as their first
	// dimension.
	Outputs []*ir.Tensor

	// Norm is the norm of the gradients of all parameters before they were clipped, a scalar of float32; nil without
	// ClipNorm.
	Norm *ir.Tensor

	program   *ir.Program
	plan      plan
	kept      []kept              // parameters and their states, in the order of the layers
	gathered  map[*ir.Tensor]bool // tensors of graphs that are whole parameters
	gradients map[*ir.Tensor]bool // and gradients of parameters, whole or in shards
}

// Step adds a training step to the main graph of the layers' program: the layers forward and backward, and an update of
// every parameter by the mean, over the replicas of a group, of the gradients of their losses. rate is a scalar of
// float32, the learning rate; step a scalar of int32, the number of the step, 1 for the first. What the Optimizer keeps
// begins as zeros, in buffers of its own.
//
// Errors, which stick to the program: no Optimizer, no layers, a layer without a graph or with one whose inputs are
// others than they should be, parameters of several Shardings or not of float32, a loss that is no scalar of floats.
//
// A parameter may be in several layers, or in one several times. It is updated once, by the sum of its gradients in the
// order of the way back.
func (t Trainer) Step(layers []Layer, rate, step *ir.Tensor) *Step {
	b := t.begin(layers, rate, step)
	if b.program != nil && b.layers != nil {
		b.main.InSequence(func() { b.build(b.main) })
	}
	return b.Step
}

// begin checks what a step is to be of. After an error, which is the step's output, the builder has no layers.
func (t Trainer) begin(layers []Layer, rate, step *ir.Tensor) *builder {
	b := &builder{Trainer: t, main: place{rate: rate, step: step},
		Step: &Step{gathered: map[*ir.Tensor]bool{}, gradients: map[*ir.Tensor]bool{}}}
	p := programOf(rate, step, layers)
	if p == nil {
		b.Outputs = []*ir.Tensor{ir.Apply1(refused{"training step", errNoProgram}, nil)}
		return b
	}
	b.program, b.main.Graph = p, p.Main()
	if t.CheckFinite {
		p.CheckFinite(true)
	}
	if err := b.check(layers); err != nil {
		b.refuse(err)
	}
	return b
}

// refuse makes an error the step's output.
func (b *builder) refuse(err error) {
	b.layers = nil
	b.Outputs = []*ir.Tensor{ir.Apply1(refused{"training step", err}, b.main.Graph)}
}

var errNoProgram = errors.New("no program: neither a graph nor a tensor of one")

// programOf finds the program of a step.
func programOf(rate, step *ir.Tensor, layers []Layer) *ir.Program {
	for _, t := range []*ir.Tensor{rate, step} {
		if t != nil && t.Graph() != nil {
			return t.Graph().Program()
		}
	}
	for _, l := range layers {
		if l.Graph != nil {
			return l.Graph.Program()
		}
	}
	return nil
}
