package ir

import (
	"errors"
	"fmt"

	"gogcl.dev/tensor"
)

// AddScalar returns t + number, where the number is rounded to t's element type first: float16, bfloat16, float32,
// float64, int32, int64 or uint32. It is an error if an integer type cannot hold it exactly, or if it is finite and
// would become infinite.
func AddScalar(t *Tensor, number float64) *Tensor {
	return Apply1(&addScalarOp{number}, nil, t)
}

// SubScalar returns t - number, as AddScalar does.
func SubScalar(t *Tensor, number float64) *Tensor {
	return Apply1(&subScalarOp{number}, nil, t)
}

// MulScalar returns t * number, as AddScalar does.
func MulScalar(t *Tensor, number float64) *Tensor {
	return Apply1(&mulScalarOp{number}, nil, t)
}

// DivScalar returns t / number, as AddScalar does. Integers are divided toward zero, and by 0 is an error.
func DivScalar(t *Tensor, number float64) *Tensor {
	return Apply1(&divScalarOp{number}, nil, t)
}

type (
	addScalarOp struct{ number float64 }
	subScalarOp struct{ number float64 }
	mulScalarOp struct{ number float64 }
	divScalarOp struct{ number float64 }
)

func (o *addScalarOp) Name() string { return "add scalar" }
func (o *subScalarOp) Name() string { return "sub scalar" }
func (o *mulScalarOp) Name() string { return "mul scalar" }
func (o *divScalarOp) Name() string { return "div scalar" }

func (o *addScalarOp) String() string { return fmt.Sprintf("add scalar %v", o.number) }
func (o *subScalarOp) String() string { return fmt.Sprintf("sub scalar %v", o.number) }
func (o *mulScalarOp) String() string { return fmt.Sprintf("mul scalar %v", o.number) }
func (o *divScalarOp) String() string { return fmt.Sprintf("div scalar %v", o.number) }

func (o *addScalarOp) Infer(in []Spec) ([]Spec, error) { return inferScalar(in, o.number) }
func (o *subScalarOp) Infer(in []Spec) ([]Spec, error) { return inferScalar(in, o.number) }
func (o *mulScalarOp) Infer(in []Spec) ([]Spec, error) { return inferScalar(in, o.number) }

func (o *divScalarOp) Infer(in []Spec) ([]Spec, error) {
	if in[0].DType.IsInteger() && o.number == 0 {
		return nil, errors.New("division of integers by the number 0")
	}
	return inferScalar(in, o.number)
}

func (o *addScalarOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in[0], in[0]) }
func (o *subScalarOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in[0], in[0]) }
func (o *mulScalarOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in[0], in[0]) }
func (o *divScalarOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in[0], in[0]) }

func (o *addScalarOp) Bind(m *Memory) (func() error, error) { return plus.bindScalar(m, o.number) }
func (o *subScalarOp) Bind(m *Memory) (func() error, error) { return minus.bindScalar(m, o.number) }
func (o *mulScalarOp) Bind(m *Memory) (func() error, error) { return times.bindScalar(m, o.number) }
func (o *divScalarOp) Bind(m *Memory) (func() error, error) { return over.bindScalar(m, o.number) }

func (o *addScalarOp) Gradient(b *Backward) []*Tensor { return []*Tensor{b.Grad(0)} }
func (o *subScalarOp) Gradient(b *Backward) []*Tensor { return []*Tensor{b.Grad(0)} }

func (o *mulScalarOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{MulScalar(b.Grad(0), o.number)}
}

func (o *divScalarOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{DivScalar(b.Grad(0), o.number)}
}

// inferScalar is the rule of a tensor and a number.
func inferScalar(in []Spec, v float64) ([]Spec, error) {
	if err := takes(numberTypes, in[0].DType); err != nil {
		return nil, err
	}
	if _, err := numberOf(in[0].DType, v); err != nil {
		return nil, err
	}
	return []Spec{in[0]}, nil
}

func (k arithmetic) bindScalar(m *Memory, v float64) (func() error, error) {
	y, err := numberOf(m.In[0].DType(), v)
	if err != nil {
		return nil, err
	}
	return k.bind(m.Out[0], m.In[0], y, m.Scratch)
}

// scalar is a constant of a graph.
func (g *Graph) scalar(d tensor.DType, v float64) *Tensor {
	y, err := numberOf(d, v)
	if err != nil {
		g.program.fail(&BuildError{Op: "constant", Graph: g.name, Position: caller(""), Err: err})
		return g.broken()
	}
	return g.Constant(y)
}
