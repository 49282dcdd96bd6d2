package rts

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
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
		b.main.InSequence(b.build)
	}
	return b.Step
}

// begin checks what a step is to be of. After an error, which is the step's output, the builder has no layers.
func (t Trainer) begin(layers []Layer, rate, step *ir.Tensor) *builder {
	b := &builder{Trainer: t, rate: rate, step: step,
		Step: &Step{gathered: map[*ir.Tensor]bool{}, gradients: map[*ir.Tensor]bool{}}}
	p := programOf(rate, step, layers)
	if p == nil {
		b.Outputs = []*ir.Tensor{ir.Apply1(refused{"training step", errNoProgram}, nil)}
		return b
	}
	b.program, b.main = p, p.Main()
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
	b.Outputs = []*ir.Tensor{ir.Apply1(refused{"training step", err}, b.main)}
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

// builder adds a step to a program.
type builder struct {
	Trainer
	*Step
	main       *ir.Graph // that the step is added to; with StepIf, a graph that the main one calls
	rate, step *ir.Tensor
	sharding   Sharding
	layers     []*layer
	units      []*unit
	known      []gradientOf
}

// layer is a Layer as its step is built.
type layer struct {
	Layer
	index    int
	before   int // inputs that are outputs of the layer before
	params   []*param
	given    []*ir.Tensor // params as forward was given them
	call     *ir.CallInfo
	gradient *ir.GradInfo
	wanted   []int        // inputs that the gradient is of
	upstream []*ir.Tensor // the gradients of the outputs, nil of one that is no float
}

// param is a parameter as its step is built.
type param struct {
	*Variable
	states  []kept
	whole   *ir.Tensor // as it was gathered last
	grad    *ir.Tensor // whole: the sum over the layers whose gradients are built, and over micro-batches
	reduced *ir.Tensor // the shard of the gradient
}

// check fills in the layers, and says what is wrong with them.
func (b *builder) check(layers []Layer) error {
	switch {
	case b.Optimizer == nil:
		return errors.New("no Optimizer")
	case b.ClipNorm != 0 && !validLimit(b.ClipNorm):
		return fmt.Errorf("ClipNorm %v, want a finite number above 0, or 0 for no clipping", b.ClipNorm)
	case b.BucketBytes < 0:
		return fmt.Errorf("BucketBytes %d, want 1 or more, or 0 for %d", b.BucketBytes, DefaultBucketBytes)
	case b.Accumulate < 0:
		return fmt.Errorf("an Accumulate of %d, want 1 micro-batch or more, or 0 for a batch in one", b.Accumulate)
	case len(layers) == 0:
		return errors.New("no layers")
	}
	if err := scalarOf("rate", b.rate, b.program, tensor.F32); err != nil {
		return err
	}
	if err := scalarOf("step", b.step, b.program, tensor.I32); err != nil {
		return err
	}
	params := map[*Variable]*param{}
	var outputs []*ir.Tensor
	for i, l := range layers {
		own := &layer{Layer: l, index: i, before: len(outputs)}
		if err := b.checkLayer(own, outputs); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
		for _, v := range l.Params {
			if params[v] == nil {
				params[v] = &param{Variable: v}
			}
			own.params = append(own.params, params[v])
		}
		outputs = l.Graph.Outputs()
		b.layers = append(b.layers, own)
	}
	if b.BucketBytes == 0 {
		b.BucketBytes = DefaultBucketBytes
		if b.Overlap {
			b.BucketBytes = min(DefaultBucketBytes, b.bytes()/8)
		}
	}
	if len(params) == 0 {
		return errors.New("no layer has parameters")
	}
	if len(outputs) == 0 || !outputs[0].DType().IsFloat() || len(outputs[0].Shape()) != 0 {
		return errors.New("the first output of the last layer is the loss, a scalar of floats")
	}
	return nil
}

// bytes are those of all parameters.
func (b *builder) bytes() int {
	sum := 0
	for _, l := range b.layers {
		sum += l.bytes()
	}
	return sum
}

// bytes are those of the layer's parameters.
func (l *layer) bytes() int {
	sum := 0
	for _, p := range l.params {
		sum += p.bytes()
	}
	return sum
}

// checkLayer looks at the inputs of a layer's graph, given the outputs of the layer before.
func (b *builder) checkLayer(l *layer, before []*ir.Tensor) error {
	switch {
	case l.Graph == nil:
		return errors.New("no graph")
	case l.Graph.Program() != b.program:
		return errors.New("its graph is of another program")
	}
	want := make([]ir.Spec, 0, len(before)+len(l.Inputs)+len(l.Params))
	for _, t := range before {
		want = append(want, t.Spec())
	}
	for k, t := range l.Inputs {
		if t == nil || t.Graph() != b.main {
			return fmt.Errorf("input %d is no tensor of the main graph", k)
		}
		s, err := b.microSpec(t)
		if err != nil {
			return fmt.Errorf("input %d is %w", k, err)
		}
		want = append(want, s)
	}
	for k, v := range l.Params {
		switch {
		case v == nil || v.program != b.program:
			return fmt.Errorf("parameter %d is no variable of the program", k)
		case v.spec.DType != tensor.F32:
			return fmt.Errorf("parameter %d is of %v, want float32", k, v.spec.DType)
		case v.plan.group.Groups() > 1:
			return fmt.Errorf("parameter %d has %d groups, want one tensor for all replicas", k, v.plan.group.Groups())
		case b.plan.shards == 0:
			b.sharding, b.plan = v.sharding, v.plan
		case v.plan != b.plan:
			return fmt.Errorf("parameter %d has another Sharding than the first of the model", k)
		}
		want = append(want, v.spec)
	}
	in := l.Graph.Inputs()
	if len(in) != len(want) {
		return fmt.Errorf("its graph has %d inputs, want %d: %d outputs of the layer before, %d Inputs, %d Params",
			len(in), len(want), len(before), len(l.Inputs), len(l.Params))
	}
	for k, t := range in {
		if !t.Spec().Equal(want[k]) {
			return fmt.Errorf("input %d of its graph is %v, and is given %v", k, t.Spec(), want[k])
		}
	}
	return nil
}

// scalarOf returns an error unless a tensor is a scalar of the main graph.
func scalarOf(name string, t *ir.Tensor, p *ir.Program, d tensor.DType) error {
	if t == nil || t.Graph() != p.Main() || t.DType() != d || len(t.Shape()) != 0 {
		return fmt.Errorf("the %s is not a scalar of %v in the main graph", name, d)
	}
	return nil
}

// build adds the step.
func (b *builder) build() {
	for _, l := range b.layers {
		b.differentiate(l)
	}
	b.makeUnits()
	b.makeStates()
	var params []*param
	for _, u := range b.units {
		params = append(params, u.owned...)
	}
	b.microBatches(params, func() {
		b.forward()
		b.backward(func(int) {})
	}, func() {
		b.forward()
		b.backward(b.reduceAndUpdate)
		b.finish()
	})
}

// forward calls the layers, each unit's parameters gathered before.
func (b *builder) forward() {
	for _, l := range b.layers {
		l.given = nil
	}
	var outputs []*ir.Tensor
	for i, u := range b.units {
		b.get(&u.forward)
		if i+1 < len(b.units) {
			b.ahead(&b.units[i+1].forward)
		}
		for _, l := range u.layers {
			in := slices.Concat(outputs, l.Inputs)
			for _, p := range l.params {
				l.given = append(l.given, p.whole)
			}
			in = append(in, l.given...)
			l.call = b.main.CallWithInfo(l.Graph, nil, in...)
			outputs = l.call.Outputs()
		}
	}
	b.Outputs = outputs
}

// backward calls the layers' gradients from the last to the first, and done after each unit of them.
func (b *builder) backward(done func(unit int)) {
	last := b.layers[len(b.layers)-1]
	last.upstream = nil
	for i, t := range last.Graph.Outputs() {
		var grad *ir.Tensor
		if t.DType().IsFloat() {
			grad = b.constant(t.Spec(), i == 0)
		}
		last.upstream = append(last.upstream, grad)
	}
	for i := len(b.units) - 1; i >= 0; i-- {
		u := b.units[i]
		if !b.Keep && i < len(b.units)-1 { // the last one's are there
			b.get(&u.again)
		}
		if !b.Keep && i > 0 {
			b.ahead(&b.units[i-1].again)
		}
		for k := len(u.layers) - 1; k >= 0; k-- {
			b.backwardLayer(u.layers[k])
		}
		done(i)
	}
}

// reduceAndUpdate reduces the gradients of a unit, and updates the parameters of the one after it.
func (b *builder) reduceAndUpdate(unit int) {
	b.reduce(b.units[unit])
	if unit+1 < len(b.units) && b.ClipNorm == 0 {
		b.update(b.units[unit+1])
	}
}

// finish updates the parameters that reduceAndUpdate has left.
func (b *builder) finish() {
	if b.ClipNorm > 0 {
		b.clip()
		for i := len(b.units) - 1; i > 0; i-- {
			b.update(b.units[i])
		}
	}
	b.update(b.units[0])
}

// backwardLayer calls a layer's gradient.
func (b *builder) backwardLayer(l *layer) {
	info, wanted := l.gradient, l.wanted
	by := info.By(l.call)
	for in, t := range by {
		for k, p := range l.params {
			if t == l.given[k] {
				by[in] = p.whole
			}
		}
	}
	for i, in := range info.Grads {
		if in != nil {
			by[in] = l.upstream[i]
		}
	}
	grads := b.main.CallWithInfo(info.Graph, by).Outputs()
	inner := info.Graph.Outputs()
	if len(grads) != len(wanted) || len(inner) != len(wanted) { // after an error
		return
	}
	if l.index > 0 {
		b.layers[l.index-1].upstream = make([]*ir.Tensor, l.before)
	}
	for i, in := range wanted {
		if in < l.before {
			b.layers[l.index-1].upstream[in] = grads[i]
			continue
		}
		b.gradients[inner[i]], b.gradients[grads[i]] = true, true
		p := l.params[in-l.before-len(l.Inputs)]
		if p.grad != nil {
			p.grad = ir.Accumulate(p.grad, grads[i])
			continue
		}
		p.grad = grads[i]
	}
}

// needed are the parameters that the layer's gradient is computed with.
func (l *layer) needed() []*param {
	var out []*param
	first := l.before + len(l.Inputs)
	for i, t := range l.Graph.Inputs()[first:] {
		if slices.Contains(l.gradient.Needs, t) {
			out = append(out, l.params[i])
		}
	}
	return out
}

// differentiate builds the gradient of a layer's graph, once for each way in which layers use it.
func (b *builder) differentiate(l *layer) {
	in := l.Graph.Inputs()
	var of []*ir.Tensor
	for i, t := range in {
		if i >= l.before && i < l.before+len(l.Inputs) || !t.DType().IsFloat() {
			continue
		}
		of, l.wanted = append(of, t), append(l.wanted, i)
	}
	for _, known := range b.known {
		if slices.Equal(known.of, of) {
			l.gradient = known.info
			return
		}
	}
	l.gradient = ir.Autodiff(l.Graph, ir.ForInputs(of...))
	b.known = append(b.known, gradientOf{of, l.gradient})
}

// gradientOf is a gradient of inputs of a graph.
type gradientOf struct {
	of   []*ir.Tensor
	info *ir.GradInfo
}

// constant is a tensor of ones or zeros.
func (b *builder) constant(s ir.Spec, ones bool) *ir.Tensor {
	zeros, err := tensor.New(s.DType, s.Shape...)
	if err != nil { // there is a tensor of that spec in the program
		return ir.Apply1(refused{"constant", err}, b.main)
	}
	t := b.main.Constant(zeros)
	if ones {
		t = ir.AddScalar(t, 1)
	}
	return t
}

// clip scales the shards of all gradients.
func (b *builder) clip() {
	var params []*param
	var shards []*ir.Tensor
	for _, u := range b.units {
		u.finish()
		for _, p := range u.owned {
			params, shards = append(params, p), append(shards, p.reduced)
		}
	}
	b.Norm = b.sharding.GlobalNorm(shards)
	for i, t := range Clip(shards, b.Norm, b.ClipNorm) {
		params[i].reduced = t
		b.gradients[t] = true
	}
}

// update changes the parameters of a unit, once its gradients are reduced.
func (b *builder) update(u *unit) {
	u.finish()
	for _, p := range u.owned {
		shard := p.Load(b.main)
		var states []*ir.Tensor
		for _, k := range p.states {
			states = append(states, k.load(b.main))
		}
		b.Optimizer.Update(shard, states, p.reduced, b.rate, b.step)
		p.Store(shard)
		for i, k := range p.states {
			k.store(states[i])
		}
	}
}

// mean is how gradients of the replicas' losses become that of the model's.
const mean = gcl.Mean
