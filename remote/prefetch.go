package remote

import "gogcl.dev/ir"

// Pending is a load that has been started.
type Pending struct {
	started *ir.Started // nil after an error
}

// Prefetch adds the start of a load of an entry to a graph: [ir.Graph.Start] of a graph that loads. It runs beside
// what comes between the start and Wait, which must be called once; a Store to the entry in between may or may not be
// seen, but as a whole. Within [ir.Graph.InSequence] the start comes where it is written. Errors are those of Load
// and of Start.
func Prefetch(g *ir.Graph, b *Buffer, offset int) *Pending {
	if refuses(b, g) {
		Load(g, b, offset) // says why
		return &Pending{}
	}
	load := g.Program().CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{Load(g, b, offset)}
	})
	return &Pending{g.Start(load)}
}

// PrefetchAt is Prefetch of an entry whose number is computed: a scalar of int32, int64 or uint32.
func PrefetchAt(b *Buffer, offset *ir.Tensor) *Pending {
	if offset == nil || refuses(b, offset.Graph()) {
		LoadAt(b, offset)
		return &Pending{}
	}
	g := offset.Graph()
	load := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{LoadAt(b, in[0])}
	}, offset)
	return &Pending{g.Start(load, offset)}
}

// refuses reports whether there can be no operation on a buffer in a graph.
func refuses(b *Buffer, g *ir.Graph) bool { return g == nil || b == nil || b.program != g.Program() }

// Wait adds the end of the load, and returns what is loaded. An error of the load is one of the run, here or before.
func (p *Pending) Wait() *ir.Tensor {
	var started *ir.Started
	if p != nil {
		started = p.started
	}
	return started.Wait()[0]
}
