package ir

// Backward is what an operation builds its gradient with.
type Backward struct {
	graph *Graph
	node  *node
	grads []*Tensor
	need  func(*Tensor) *Tensor
}

// Graph is the gradient's graph.
func (b *Backward) Graph() *Graph { return b.graph }

// In returns input i of the operation as a tensor of the gradient's graph.
func (b *Backward) In(i int) *Tensor { return b.need(b.node.in[i]) }

// Out returns output i of the operation as a tensor of the gradient's graph.
func (b *Backward) Out(i int) *Tensor { return b.need(b.node.out[i]) }

// Grad returns the gradient of output i, a tensor of the gradient's graph, or nil if none flows back.
func (b *Backward) Grad(i int) *Tensor { return b.grads[i] }

// InSpec returns the spec of input i, which needs no tensor.
func (b *Backward) InSpec(i int) Spec { return b.node.in[i].Spec() }
