package ir

import (
	"errors"
	"fmt"
	"strings"

	"gogcl.dev/tensor"
)

// constantOp has its value in memory that all replicas share.
type constantOp struct {
	replaced
	value *tensor.Tensor
}

func (o *constantOp) Name() string                 { return "constant" }
func (o *constantOp) Infer([]Spec) ([]Spec, error) { return []Spec{SpecOf(o.value)}, nil }
func (o *constantOp) runs() []*Graph               { return nil }
func (o *constantOp) goBack(*back, *node) error    { return nil }

func (o *constantOp) lower(l *lowering, n *node, _ []*location, where map[*Tensor]*location) ([]*step, error) {
	x := l.at(n.out[0])
	x.kind, x.constant = ofConstant, o.value
	where[n.out[0]] = x
	return nil, nil
}

func (o *constantOp) begins(n *node) (data *tensor.Tensor, wrong string) {
	return o.value, fmt.Sprintf("constant %s, built at %v in graph %s, has other elements", reference(n.out[0]), n.pos,
		plainName(n.graph.name))
}

// fewElements is up to how many a constant is shown with its elements.
const fewElements = 6

// String has the elements, if they are few.
func (o *constantOp) String() string {
	if o.value.Len() > fewElements {
		return o.Name()
	}
	elements := strings.TrimPrefix(o.value.String(), o.value.DType().String()+o.value.Shape().String())
	if o.value.Rank() == 0 {
		elements = strings.Trim(elements, "[]")
	}
	return o.Name() + " " + elements
}

// Constant adds a tensor that never changes. The value is copied.
func (g *Graph) Constant(value *tensor.Tensor) *Tensor {
	g = g.orNone()
	if !value.DType().Valid() {
		g.refuse("constant", caller(""), errors.New("no value"))
		return g.broken()
	}
	return apply(&constantOp{value: value.Clone()}, g, caller(""), nil)[0]
}
