package rts

import (
	"slices"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// unit is layers that follow each other and whose parameters are gathered together, and their gradients reduced: one,
// or as many as there is room for in a bucket.
type unit struct {
	layers  []*layer
	params  []*param // of the layers, each once
	owned   []*param // those that no layer before the unit has: their gradients are complete after the unit's
	forward fetch    // of all parameters
	// of those that the gradients need, some of which need none: those of sums, or of the first layer
	again   fetch
	reduced *ir.Started // of the reduction
}

// fetch is how parameters of a unit are loaded and gathered at some place of a step.
type fetch struct {
	params  []*param
	graph   *ir.Graph   // nil: there is nothing to gather
	pending *ir.Started // of the graph
}

// bytes is what the whole parameter takes.
func (p *param) bytes() int { return p.spec.Bytes() }

// makeUnits puts the layers into units.
func (b *builder) makeUnits() {
	used, owned := 0, map[*param]bool{}
	for _, l := range b.layers {
		bytes := l.bytes()
		// A layer without parameters goes with the one before: it is computed while the next one's are gathered.
		if len(b.units) == 0 || bytes > 0 && used > 0 && used+bytes > b.BucketBytes {
			b.units, used = append(b.units, &unit{}), 0
		}
		u := b.units[len(b.units)-1]
		u.layers = append(u.layers, l)
		for _, p := range l.params {
			u.params = including(u.params, p)
			if !owned[p] {
				owned[p] = true
				u.owned = append(u.owned, p)
			}
		}
		used += bytes
	}
	for _, u := range b.units {
		u.forward = b.newFetch(u.params)
		var needed []*param
		for _, l := range u.layers {
			for _, p := range l.needed() {
				needed = including(needed, p)
			}
		}
		u.again = u.forward
		if len(needed) < len(u.params) {
			u.again = b.newFetch(needed)
		}
	}
}

// including is a list with a parameter in it once.
func including(list []*param, p *param) []*param {
	if slices.Contains(list, p) {
		return list
	}
	return append(list, p)
}

// newFetch builds what loads and gathers some parameters.
func (b *builder) newFetch(params []*param) fetch {
	f := fetch{params: params}
	if len(params) > 0 {
		f.graph = b.program.CreateGraph(bucketed{b, params}.gather)
		for _, t := range f.graph.Outputs() {
			b.gathered[t] = true
		}
	}
	return f
}

// bucketed is parameters that are moved together as far as a bucket has room. Graphs are named after its methods.
type bucketed struct {
	b      *builder
	params []*param
}

// buckets cuts a list of parameters where a bucket is full. One that is larger than that has a bucket of its own.
func buckets(params []*param, limit int) [][]*param {
	var out [][]*param
	used := 0
	for _, p := range params {
		if n := len(out); n == 0 || used+p.bytes() > limit {
			out, used = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], p)
		used += p.bytes()
	}
	return out
}

// gather builds a graph that loads and gathers the parameters.
func (o bucketed) gather(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
	var whole []*ir.Tensor
	for _, bucket := range buckets(o.params, o.b.BucketBytes) {
		var shards []*ir.Tensor
		var shapes []tensor.Shape
		for _, p := range bucket {
			shards, shapes = append(shards, p.Load(g)), append(shapes, p.spec.Shape)
		}
		if o.b.plan.shards > 1 {
			shards = o.b.sharding.GatherMany(shards, shapes)
		}
		whole = append(whole, shards...)
	}
	return whole
}

// reduce builds a graph that reduces the gradients of the parameters to shards, of the mean over the micro-batches.
func (o bucketed) reduce(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	var out []*ir.Tensor
	for _, bucket := range buckets(o.params, o.b.BucketBytes) {
		out = append(out, o.b.plan.reduce(in[:len(bucket)], mean)...)
		in = in[len(bucket):]
	}
	if k := o.b.Accumulate; k > 1 {
		for i, t := range out {
			out[i] = ops.DivScalar(t, float64(k))
		}
	}
	return out
}

// ahead starts to gather parameters, if that is to overlap with what comes next.
func (b *builder) ahead(at place, f *fetch) {
	if b.Overlap && f.graph != nil {
		f.pending = at.Start(f.graph)
	}
}

// get gathers parameters, or waits for them, and says which tensors they are.
func (b *builder) get(at place, f *fetch) {
	if f.graph == nil {
		return
	}
	var whole []*ir.Tensor
	if f.pending != nil {
		whole, f.pending = f.pending.Wait(), nil
	} else {
		whole = at.Call(f.graph)
	}
	for i, p := range f.params {
		p.whole = whole[min(i, len(whole)-1)] // after an error there may be one
	}
}

// reduce reduces the gradients of a unit to shards, or starts to.
func (b *builder) reduce(at place, u *unit) {
	var grads []*ir.Tensor
	var in []ir.Input
	for _, p := range u.owned {
		grads, in = append(grads, p.grad), append(in, p.grad)
	}
	if len(grads) == 0 {
		return
	}
	graph := b.program.CreateGraph(bucketed{b, u.owned}.reduce, in...)
	for _, t := range graph.Outputs() {
		b.gradients[t] = true
	}
	if b.Overlap {
		u.reduced = at.Start(graph, grads...)
		return
	}
	u.setShards(at.Call(graph, grads...))
}

// finish waits for the reduced gradients, if that has not been done.
func (u *unit) finish() {
	if u.reduced != nil {
		shards := u.reduced.Wait()
		u.reduced = nil
		u.setShards(shards)
	}
}

func (u *unit) setShards(shards []*ir.Tensor) {
	for i, p := range u.owned {
		p.reduced = shards[min(i, len(shards)-1)] // after an error there is one
	}
}
