package ops

import (
	"errors"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// row is an operation as a value: its name, the rule of its shapes, its memory, its computation and its gradient stand
// side by side, in the function that adds it.
type row struct {
	name string
	says string // the name with the numbers that it is of; "": the name

	infer   func(in []ir.Spec) ([]ir.Spec, error) // see ir.Op
	scratch func(in []ir.Spec) int                // see ir.Scratcher, beside what widening takes; nil: none
	changes []int                                 // see ir.Updater; nil: it changes nothing

	bind func(m *ir.Memory) (func() error, error) // see ir.Op

	// f32 and f64 are bind where the first input is of floats. Those of 16 bits are widened before and narrowed after.
	f32, f64 func(m *ir.Memory) (func() error, error)

	back func(b *ir.Backward) []*ir.Tensor // see ir.Differentiable; nil: there is no gradient
}

// of adds the operation to the graph of its inputs.
func (o *row) of(in ...*ir.Tensor) *ir.Tensor { return ir.Apply1(o, nil, in...) }

func (o *row) Name() string                          { return o.name }
func (o *row) Infer(in []ir.Spec) ([]ir.Spec, error) { return o.infer(in) }
func (o *row) Updates() []int                        { return o.changes }

func (o *row) String() string {
	if o.says != "" {
		return o.says
	}
	return o.name
}

func (o *row) ScratchBytes(in []ir.Spec) int {
	bytes := 0
	if o.f32 != nil {
		bytes = wideBytes(o.infer, in)
	}
	if o.scratch != nil {
		bytes += o.scratch(in)
	}
	return bytes
}

func (o *row) Bind(m *ir.Memory) (func() error, error) {
	if o.f32 != nil && m.In[0].DType().IsFloat() {
		return bindWide(m, o.f32, o.f64)
	}
	return o.bind(m)
}

var errNoGradient = errors.New("the operation has no gradient")

func (o *row) Gradient(b *ir.Backward) []*ir.Tensor {
	if o.back == nil {
		b.Fail(errNoGradient)
		return nil
	}
	return o.back(b)
}

// byType is the one of some functions that is for an element type: f32 also for floats of 16 bits.
func byType[F any](d tensor.DType, f32, f64, i32, i64, u32 F) F {
	switch d {
	case tensor.F64:
		return f64
	case tensor.I32:
		return i32
	case tensor.I64:
		return i64
	case tensor.U32:
		return u32
	}
	return f32
}

// bySize is the one of some functions that is for elements of so many bytes, whatever they are.
func bySize[F any](d tensor.DType, one, two, four, eight F) F {
	switch d.Size() {
	case 1:
		return one
	case 2:
		return two
	case 4:
		return four
	}
	return eight
}
