package ir

import (
	"errors"

	"gogcl.dev/tensor"
)

// constantOp has its value in memory that all replicas share.
type constantOp struct{ value *tensor.Tensor }

func (o *constantOp) Name() string                       { return "constant" }
func (o *constantOp) Infer([]Spec) ([]Spec, error)       { return []Spec{SpecOf(o.value)}, nil }
func (o *constantOp) Bind(*Memory) (func() error, error) { return nil, errInPlace }

// Constant adds a tensor that never changes. The value is copied.
func (g *Graph) Constant(value *tensor.Tensor) *Tensor {
	g = g.orNone()
	if !value.DType().Valid() {
		g.program.fail(&BuildError{Op: "constant", Graph: g.name, Position: caller(""), Err: errors.New("no value")})
		return g.broken()
	}
	return apply(&constantOp{value.Clone()}, g, caller(""), nil)[0]
}
