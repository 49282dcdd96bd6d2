package ops

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Add returns x + y, broadcast as NumPy does: dimensions of 1, and those missing in front, are repeated. Both have one
// element type: float16, bfloat16, float32, float64, int32, int64 or uint32. Integers wrap.
func Add(x, y *ir.Tensor) *ir.Tensor {
	return plus.of(x, y, func(b *ir.Backward) []*ir.Tensor {
		g := b.Grad(0)
		return []*ir.Tensor{sumTo(g, b.InSpec(0).Shape), sumTo(g, b.InSpec(1).Shape)}
	})
}

// Sub returns x - y, as Add does.
func Sub(x, y *ir.Tensor) *ir.Tensor {
	return minus.of(x, y, func(b *ir.Backward) []*ir.Tensor {
		g := b.Grad(0)
		return []*ir.Tensor{sumTo(g, b.InSpec(0).Shape), Neg(sumTo(g, b.InSpec(1).Shape))}
	})
}

// Mul returns x * y, as Add does.
func Mul(x, y *ir.Tensor) *ir.Tensor {
	return times.of(x, y, func(b *ir.Backward) []*ir.Tensor {
		g := b.Grad(0)
		return []*ir.Tensor{sumTo(Mul(g, b.In(1)), b.InSpec(0).Shape), sumTo(Mul(g, b.In(0)), b.InSpec(1).Shape)}
	})
}

// Div returns x / y, as Add does. Integers are divided toward zero; one divided by 0 is an error of the run.
func Div(x, y *ir.Tensor) *ir.Tensor {
	return over.of(x, y, func(b *ir.Backward) []*ir.Tensor { // g/y, and -(g/y)*(x/y)
		g := Div(b.Grad(0), b.In(1))
		return []*ir.Tensor{sumTo(g, b.InSpec(0).Shape), Neg(sumTo(Mul(g, b.Out(0)), b.InSpec(1).Shape))}
	})
}

// AddScalar returns t + number, where the number is rounded to t's element type first: float16, bfloat16, float32,
// float64, int32, int64 or uint32. It is an error if an integer type cannot hold it exactly, or if it is finite and
// would become infinite.
func AddScalar(t *ir.Tensor, number float64) *ir.Tensor {
	return plus.ofScalar(t, number, func(b *ir.Backward) *ir.Tensor { return b.Grad(0) })
}

// SubScalar returns t - number, as AddScalar does.
func SubScalar(t *ir.Tensor, number float64) *ir.Tensor {
	return minus.ofScalar(t, number, func(b *ir.Backward) *ir.Tensor { return b.Grad(0) })
}

// MulScalar returns t * number, as AddScalar does.
func MulScalar(t *ir.Tensor, number float64) *ir.Tensor {
	return times.ofScalar(t, number, func(b *ir.Backward) *ir.Tensor { return MulScalar(b.Grad(0), number) })
}

// DivScalar returns t / number, as AddScalar does. Integers are divided toward zero, and by 0 is an error.
func DivScalar(t *ir.Tensor, number float64) *ir.Tensor {
	return over.ofScalar(t, number, func(b *ir.Backward) *ir.Tensor { return DivScalar(b.Grad(0), number) })
}

// arithmetic is what two numbers become: its name.
type arithmetic string

const (
	plus  arithmetic = "add"
	minus arithmetic = "sub"
	times arithmetic = "mul"
	over  arithmetic = "div"
)

// of adds the operation on tensors that are broadcast.
func (k arithmetic) of(x, y *ir.Tensor, back func(b *ir.Backward) []*ir.Tensor) *ir.Tensor {
	return (&row{
		name:    string(k),
		infer:   func(in []ir.Spec) ([]ir.Spec, error) { return inferBroadcast(numberTypes, 0, in) },
		scratch: blocksOfInput,
		bind: func(m *ir.Memory) (func() error, error) {
			return k.bind(m.Out[0], m.In[0], m.In[1], m.Scratch)
		},
		back: back,
	}).of(x, y)
}

// ofScalar adds the operation on a tensor and a number.
func (k arithmetic) ofScalar(t *ir.Tensor, number float64, back func(b *ir.Backward) *ir.Tensor) *ir.Tensor {
	return (&row{
		name: string(k) + " scalar", says: fmt.Sprintf("%s scalar %v", k, number),
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if k == over && in[0].DType.IsInteger() && number == 0 {
				return nil, errors.New("division of integers by the number 0")
			}
			if err := takes(numberTypes, in[0].DType); err != nil {
				return nil, err
			}
			_, err := numberOf(in[0].DType, number)
			return in, err
		},
		scratch: func(in []ir.Spec) int { return blocksBytes(in[0].DType, in[0], in[0]) },
		bind: func(m *ir.Memory) (func() error, error) {
			y, err := numberOf(m.In[0].DType(), number)
			if err != nil {
				return nil, err
			}
			return k.bind(m.Out[0], m.In[0], y, m.Scratch)
		},
		back: func(b *ir.Backward) []*ir.Tensor { return []*ir.Tensor{back(b)} },
	}).of(t)
}

// kernelOps are those for which package kernel has loops.
var kernelOps = map[arithmetic]kernel.Op{plus: kernel.Add, times: kernel.Mul}

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
	return quotient[T]
}

func subtract[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = canonical(x[i] - y[i])
	}
}

func quotient[T number](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = canonical(x[i] / y[i])
	}
}
