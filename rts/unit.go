package rts

import (
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// unit is layers that follow each other and whose parameters are gathered together, and their gradients reduced: one, or
// as many as there is room for in a bucket.
type unit struct {
	layers  []*layer
	params  []*param
	buckets [][]*param
	graph   *ir.Graph   // that loads and gathers
	pending *ir.Started // of that
	whole   []*ir.Tensor
	reduced *ir.Started // of the reduction
}

// bytes is what the whole parameter takes.
func (p *param) bytes() int { return p.spec.Bytes() }

// makeUnits puts the layers into units.
func (b *builder) makeUnits() {
	used := 0
	for _, l := range b.layers {
		bytes := 0
		for _, p := range l.params {
			bytes += p.bytes()
		}
		if n := len(b.units); n == 0 || used+bytes > b.BucketBytes {
			b.units, used = append(b.units, &unit{}), 0
		}
		u := b.units[len(b.units)-1]
		u.layers, u.params = append(u.layers, l), append(u.params, l.params...)
		used += bytes
	}
	for _, u := range b.units {
		u.buckets = buckets(u.params, b.BucketBytes)
		u.graph = b.program.CreateGraph(u.gather(b))
		for _, t := range u.graph.Outputs() {
			b.gathered[t] = true
		}
	}
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

// gather builds what loads and gathers the parameters of a unit.
func (u *unit) gather(b *builder) func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
	return func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
		var whole []*ir.Tensor
		for _, bucket := range u.buckets {
			var shards []*ir.Tensor
			var shapes []tensor.Shape
			for _, p := range bucket {
				shards, shapes = append(shards, p.Load(g)), append(shapes, p.spec.Shape)
			}
			if b.plan.shards > 1 {
				shards = b.sharding.GatherMany(shards, shapes)
			}
			whole = append(whole, shards...)
		}
		return whole
	}
}

// ahead starts to gather a unit's parameters, if that is to overlap with what comes next.
func (b *builder) ahead(u *unit) {
	if b.Overlap {
		u.pending = b.main.Start(u.graph)
	}
}

// fetch gathers a unit's parameters, or waits for them.
func (b *builder) fetch(u *unit) {
	if u.pending != nil {
		u.whole, u.pending = u.pending.Wait(), nil
		return
	}
	u.whole = b.main.Call(u.graph)
}

// take returns the parameters that have been gathered.
func (u *unit) take() []*ir.Tensor {
	whole := u.whole
	u.whole = nil
	return whole
}

// reduce reduces the gradients of a unit to shards, or starts to.
func (b *builder) reduce(u *unit) {
	var grads []*ir.Tensor
	var in []ir.Input
	for _, p := range u.params {
		grads, in = append(grads, p.grad), append(in, p.grad)
	}
	if len(grads) == 0 {
		return
	}
	graph := b.program.CreateGraph(u.reduce(b), in...)
	for _, t := range graph.Outputs() {
		b.gradients[t] = true
	}
	if b.Overlap {
		u.reduced = b.main.Start(graph, grads...)
		return
	}
	u.setShards(b.main.Call(graph, grads...))
}

// reduce builds what reduces the gradients of a unit.
func (u *unit) reduce(b *builder) func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		var out []*ir.Tensor
		for _, bucket := range u.buckets {
			out = append(out, b.plan.reduce(in[:len(bucket)], mean)...)
			in = in[len(bucket):]
		}
		return out
	}
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
	for i, p := range u.params {
		p.reduced = shards[min(i, len(shards)-1)] // after an error there is one
	}
}
