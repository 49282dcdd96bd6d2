package ir

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// Add returns x + y, broadcast as NumPy does: dimensions of 1, and those missing in front, are repeated. Both have one
// element type: float16, bfloat16, float32, float64, int32, int64 or uint32. Integers wrap.
func Add(x, y *Tensor) *Tensor { return Apply1(addOp{}, nil, x, y) }

// Sub returns x - y, as Add does.
func Sub(x, y *Tensor) *Tensor { return Apply1(subOp{}, nil, x, y) }

// Mul returns x * y, as Add does.
func Mul(x, y *Tensor) *Tensor { return Apply1(mulOp{}, nil, x, y) }

// Div returns x / y, as Add does. Integers are divided toward zero; one divided by 0 is an error of the run.
func Div(x, y *Tensor) *Tensor { return Apply1(divOp{}, nil, x, y) }

type (
	addOp struct{}
	subOp struct{}
	mulOp struct{}
	divOp struct{}
)

func (addOp) Name() string { return "add" }
func (subOp) Name() string { return "sub" }
func (mulOp) Name() string { return "mul" }
func (divOp) Name() string { return "div" }

func (addOp) Infer(in []Spec) ([]Spec, error) { return inferBinary(in) }
func (subOp) Infer(in []Spec) ([]Spec, error) { return inferBinary(in) }
func (mulOp) Infer(in []Spec) ([]Spec, error) { return inferBinary(in) }
func (divOp) Infer(in []Spec) ([]Spec, error) { return inferBinary(in) }

func (addOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in...) }
func (subOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in...) }
func (mulOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in...) }
func (divOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in...) }

func (addOp) Bind(m *Memory) (func() error, error) {
	return plus.bind(m.Out[0], m.In[0], m.In[1], m.Scratch)
}
func (subOp) Bind(m *Memory) (func() error, error) {
	return minus.bind(m.Out[0], m.In[0], m.In[1], m.Scratch)
}
func (mulOp) Bind(m *Memory) (func() error, error) {
	return times.bind(m.Out[0], m.In[0], m.In[1], m.Scratch)
}
func (divOp) Bind(m *Memory) (func() error, error) {
	return over.bind(m.Out[0], m.In[0], m.In[1], m.Scratch)
}

func (addOp) Gradient(b *Backward) []*Tensor {
	g := b.Grad(0)
	return []*Tensor{sumTo(g, b.InSpec(0).Shape), sumTo(g, b.InSpec(1).Shape)}
}

func (subOp) Gradient(b *Backward) []*Tensor {
	g := b.Grad(0)
	return []*Tensor{sumTo(g, b.InSpec(0).Shape), Neg(sumTo(g, b.InSpec(1).Shape))}
}

func (mulOp) Gradient(b *Backward) []*Tensor {
	g := b.Grad(0)
	return []*Tensor{sumTo(Mul(g, b.In(1)), b.InSpec(0).Shape), sumTo(Mul(g, b.In(0)), b.InSpec(1).Shape)}
}

// Gradient of x/y: g/y, and -(g/y)*(x/y).
func (divOp) Gradient(b *Backward) []*Tensor {
	x := Div(b.Grad(0), b.In(1))
	return []*Tensor{sumTo(x, b.InSpec(0).Shape), Neg(sumTo(Mul(x, b.Out(0)), b.InSpec(1).Shape))}
}

// inferBinary is the rule of two numbers that are broadcast.
func inferBinary(in []Spec) ([]Spec, error) {
	d, err := sameType(numberTypes, in...)
	if err != nil {
		return nil, err
	}
	shape, err := broadcast(in...)
	return []Spec{{shape, d}}, err
}

// arithmetic is what two numbers become.
type arithmetic uint8

const (
	plus arithmetic = iota
	minus
	times
	over
)

// kernelOps are those for which package kernel has loops.
var kernelOps = [...]kernel.Op{plus: kernel.Add, times: kernel.Mul, over: 0}

// bind binds the computation of dst from x and y, which are broadcast to its shape. scratch has a block of each.
func (k arithmetic) bind(dst, x, y *tensor.Tensor, scratch []byte) (func() error, error) {
	if op := kernelOps[k]; op.Valid() && dst.Len() == x.Len() && dst.Len() == y.Len() {
		fold := kernel.Binary(op, kernel.Type(dst.DType()))
		d, x, y := dst.Bytes(), x.Bytes(), y.Bytes()
		return func() error {
			fold(d, x, y)
			return nil
		}, nil
	}
	switch dst.DType() {
	case tensor.F16, tensor.BF16, tensor.F32:
		return each2(dst, x, y, scratch, arithmeticLoop[float32](k))
	case tensor.F64:
		return each2(dst, x, y, scratch, arithmeticLoop[float64](k))
	case tensor.I32:
		return bindInteger[int32](k, dst, x, y, scratch)
	case tensor.I64:
		return bindInteger[int64](k, dst, x, y, scratch)
	case tensor.U32:
		return bindInteger[uint32](k, dst, x, y, scratch)
	}
	return nil, takes(numberTypes, dst.DType())
}

// bindInteger is bind of integers, of which none can be divided by 0.
func bindInteger[T int32 | int64 | uint32](k arithmetic, dst, x, y *tensor.Tensor,
	scratch []byte) (func() error, error) {
	run, err := each2(dst, x, y, scratch, arithmeticLoop[T](k))
	if k != over || err != nil || dst.Len() == 0 {
		return run, err
	}
	by, err := tensor.Of[T](y)
	if err != nil {
		return nil, err
	}
	return func() error {
		if i := slices.Index(by, 0); i >= 0 {
			return divisionByZero(i, len(by))
		}
		return run()
	}, nil
}

var errDivision = errors.New("division by 0")

func divisionByZero(i, n int) error {
	return fmt.Errorf("%w: element %d of the %d of the divisor", errDivision, i, n)
}

func arithmeticLoop[T number](k arithmetic) func(d, x, y []T) {
	switch k {
	case plus:
		return folded[T](kernel.Add)
	case minus:
		return subtract[T]
	case times:
		return folded[T](kernel.Mul)
	}
	return divide[T]
}

func subtract[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = canonical(x[i] - y[i])
	}
}

func divide[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = canonical(x[i] / y[i])
	}
}
