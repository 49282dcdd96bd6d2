package collective

import (
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
)

// probe is an operation for tests: a copy, which calls a function first.
type probe struct {
	call func(m *ir.Memory) error
}

func (p probe) Name() string                          { return "probe" }
func (p probe) Infer(in []ir.Spec) ([]ir.Spec, error) { return in, nil }
func (p probe) Gradient(b *ir.Backward) []*ir.Tensor  { return []*ir.Tensor{b.Grad(0)} }
func (p probe) Bind(m *ir.Memory) (func() error, error) {
	return func() error {
		if err := p.call(m); err != nil {
			return err
		}
		copy(m.Out[0].Bytes(), m.In[0].Bytes())
		return nil
	}, nil
}

// Probe adds a copy of t that calls f first.
func Probe(t *ir.Tensor, f func(m *ir.Memory) error) *ir.Tensor {
	return ir.Apply1(probe{f}, nil, t)
}

// HasDerivative reports whether an operator has a row among the derivatives.
func HasDerivative(op gcl.Operator) bool {
	row, known := derivatives[op]
	return known && (row.none == "") == (row.input != nil)
}
