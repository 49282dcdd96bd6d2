package rts

import (
	"slices"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// builder adds a step to a program.
type builder struct {
	Trainer
	*Step
	main     place
	sharding Sharding
	layers   []*layer
	units    []*unit
	known    []gradientOf
}

// place is where something of a step is added: a graph, the main one or one that it calls, with the learning rate and
// the number of the step as that graph has them.
type place struct {
	*ir.Graph
	rate, step *ir.Tensor
}

// build adds the step.
func (b *builder) build(at place) {
	for _, l := range b.layers {
		b.differentiate(l)
	}
	b.makeUnits()
	b.makeStates()
	var params []*param
	for _, u := range b.units {
		params = append(params, u.owned...)
	}
	b.microBatches(at, params, func(at place) {
		b.forward(at)
		b.backward(at, func(int) {})
	}, func(at place) {
		b.forward(at)
		b.backward(at, func(unit int) { b.reduceAndUpdate(at, unit) })
		b.finish(at)
	})
}

// forward calls the layers, each unit's parameters gathered before.
func (b *builder) forward(at place) {
	for _, l := range b.layers {
		l.given = nil
	}
	var outputs []*ir.Tensor
	for i, u := range b.units {
		b.get(at, &u.forward)
		if i+1 < len(b.units) {
			b.ahead(at, &b.units[i+1].forward)
		}
		for _, l := range u.layers {
			in := slices.Concat(outputs, l.Inputs)
			for _, p := range l.params {
				l.given = append(l.given, p.whole)
			}
			in = append(in, l.given...)
			l.call = at.CallWithInfo(l.Graph, nil, in...)
			outputs = l.call.Outputs()
		}
	}
	b.Outputs = outputs
}

// backward calls the layers' gradients from the last to the first, and done after each unit of them.
func (b *builder) backward(at place, done func(unit int)) {
	last := b.layers[len(b.layers)-1]
	last.upstream = nil
	for i, t := range last.Graph.Outputs() {
		var grad *ir.Tensor
		if t.DType().IsFloat() {
			grad = at.constant(t.Spec(), i == 0)
		}
		last.upstream = append(last.upstream, grad)
	}
	for i, u := range slices.Backward(b.units) {

		if !b.Keep && i < len(b.units)-1 { // the last one's are there
			b.get(at, &u.again)
		}
		if !b.Keep && i > 0 {
			b.ahead(at, &b.units[i-1].again)
		}
		for _, v := range slices.Backward(u.layers) {
			b.backwardLayer(at, v)
		}
		done(i)
	}
}

// reduceAndUpdate reduces the gradients of a unit, and updates the parameters of the one after it.
func (b *builder) reduceAndUpdate(at place, unit int) {
	b.reduce(at, b.units[unit])
	if unit+1 < len(b.units) && b.ClipNorm == 0 {
		b.update(at, b.units[unit+1])
	}
}

// finish updates the parameters that reduceAndUpdate has left.
func (b *builder) finish(at place) {
	if b.ClipNorm > 0 {
		b.clip()
		for i := len(b.units) - 1; i > 0; i-- {
			b.update(at, b.units[i])
		}
	}
	b.update(at, b.units[0])
}

// backwardLayer calls a layer's gradient.
func (b *builder) backwardLayer(at place, l *layer) {
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
	grads := at.CallWithInfo(info.Graph, by).Outputs()
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
			p.grad = ops.Accumulate(p.grad, grads[i])
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
func (at place) constant(s ir.Spec, ones bool) *ir.Tensor {
	zeros, err := tensor.New(s.DType, s.Shape...)
	if err != nil { // there is a tensor of that spec in the program
		return ir.Apply1(refused{"constant", err}, at.Graph)
	}
	t := at.Constant(zeros)
	if ones {
		t = ops.AddScalar(t, 1)
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
func (b *builder) update(at place, u *unit) {
	u.finish()
	for _, p := range u.owned {
		shard := p.Load(at.Graph)
		var states []*ir.Tensor
		for _, k := range p.states {
			states = append(states, k.load(at.Graph))
		}
		b.Optimizer.Update(shard, states, p.reduced, at.rate, at.step)
		p.Store(shard)
		for i, k := range p.states {
			k.store(states[i])
		}
	}
}

// mean is how gradients of the replicas' losses become that of the model's.
const mean = gcl.Mean
