package ir

import (
	"fmt"
	"math/bits"

	"gogcl.dev/tensor"
)

// Spec is the shape and element type of a tensor.
type Spec struct {
	Shape tensor.Shape
	DType tensor.DType
}

// SpecOf returns the spec of a tensor with data.
func SpecOf(t *tensor.Tensor) Spec { return Spec{t.Shape(), t.DType()} }

// Equal reports whether both have the same shape and element type.
func (s Spec) Equal(t Spec) bool { return s.DType == t.DType && s.Shape.Equal(t.Shape) }

// Elements is the number of elements of a valid spec.
func (s Spec) Elements() int {
	n, _ := s.Shape.Elements()
	return n
}

// Bytes is the size of a valid spec.
func (s Spec) Bytes() int { return s.Elements() * s.DType.Size() }

// String returns the text form, as in "float32 (2, 3)".
func (s Spec) String() string { return fmt.Sprintf("%v %v", s.DType, s.Shape) }

// check returns an error if there can be no such tensor.
func (s Spec) check() error {
	if !s.DType.Valid() {
		return fmt.Errorf("element type %v does not exist", s.DType)
	}
	n, err := s.Shape.Elements()
	if err != nil {
		return err
	}
	if n > maxBytes/s.DType.Size() {
		return fmt.Errorf("%d elements of %v take more than %d bytes", n, s.DType, maxBytes)
	}
	return nil
}

// maxBytes is what a tensor, and all tensors of a replica together, may take: 1 TiB, or on 32 bits 1 GiB.
const maxBytes = 1 << min(40, bits.UintSize-2)

func (s Spec) clone() Spec { return Spec{s.Shape.Clone(), s.DType} }

// spec implements Input.
func (s Spec) spec() Spec { return s }

// Input is what CreateGraph takes the specs of a graph's inputs from: a *Tensor or a Spec.
type Input interface{ spec() Spec }

// Tensor is a value in a graph. It has no data until a session runs the graph, and then on every replica. The
// functions that make tensors never return nil. One that stands for an error, as do a nil and the zero Tensor, has no
// element type and the shape (1, 1, 1, 1, 1, 1, 1, 1), so that code which goes on building comes to its end; what is
// built on it adds no other error.
type Tensor struct {
	graph *Graph
	id    int // counts all of the program
	name  string
	sp    Spec
	node  *node   // that makes it; nil: an input of the graph, or broken
	out   int     // of which it is this output
	root  *Tensor // whose memory it is, if an op has changed that in place; else nil
	bad   bool

	pinned *pinned // it stands for one version of a tensor; else nil
}

// Graph returns the graph that the tensor is in.
func (t *Tensor) Graph() *Graph {
	if t == nil {
		return nil
	}
	return t.graph
}

// Name returns the tensor's name, or "" if it has none of its own.
func (t *Tensor) Name() string {
	if t == nil {
		return ""
	}
	return t.name
}

// Named gives the tensor a name, for programs as text and for drawings, and returns it.
func (t *Tensor) Named(name string) *Tensor {
	if t != nil {
		t.name = name
	}
	return t
}

// Spec returns shape and element type.
func (t *Tensor) Spec() Spec { return Spec{t.Shape(), t.DType()} }

// Shape returns the shape.
func (t *Tensor) Shape() tensor.Shape {
	if t == nil || t.failed() {
		return standIn()
	}
	return t.sp.Shape.Clone()
}

// DType returns the element type.
func (t *Tensor) DType() tensor.DType {
	if t == nil || t.failed() {
		return 0
	}
	return t.sp.DType
}

// String returns what identifies the tensor in a program as text, as in "%3" or "%3.weights".
func (t *Tensor) String() string {
	switch {
	case t == nil:
		return "%nil"
	case t.name == "":
		return fmt.Sprintf("%%%d", t.id)
	}
	return fmt.Sprintf("%%%d.%s", t.id, t.name)
}

func (t *Tensor) spec() Spec {
	if t == nil {
		return Spec{}
	}
	return t.sp
}

// memory is the tensor that t shares memory with, after changes in place.
func (t *Tensor) memory() *Tensor {
	for t.root != nil {
		t = t.root
	}
	return t
}

// changeable returns an error if the tensor's memory must not change.
func (t *Tensor) changeable() error {
	if root := t.memory(); root.node != nil {
		if _, is := root.node.op.(*constantOp); is {
			return fmt.Errorf("%v is a constant and cannot be changed in place", t)
		}
	}
	return nil
}
