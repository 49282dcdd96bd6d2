package ir

import (
	"math"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// Neg returns -t, of float16, bfloat16, float32, float64, int32 or int64. The least integer stays what it is.
func Neg(t *Tensor) *Tensor { return Apply1(functionOp{&negFunction}, nil, t) }

// Abs returns the absolute values of t, of what Neg takes. The least integer stays what it is. The gradient at 0 is 0.
func Abs(t *Tensor) *Tensor { return Apply1(functionOp{&absFunction}, nil, t) }

// Square returns t*t, of what Neg takes.
func Square(t *Tensor) *Tensor { return Apply1(functionOp{&squareFunction}, nil, t) }

// Relu returns the larger of 0 and each element of t, of what Neg takes; NaN for NaN. The gradient at 0 is 0.
func Relu(t *Tensor) *Tensor { return Apply1(functionOp{&reluFunction}, nil, t) }

// Tanh returns the hyperbolic tangents of t, of float16, bfloat16, float32 or float64. It and the functions below have
// the same bits on every machine. They compute in float64. A float32 is rounded once more, and errs by less than
// 0.5000001 units in the last place; a 16-bit float is rounded from float32. The largest errors found in float64 are
// 1.1 units for Exp, 2 for Log, 3 for Tanh and Sigmoid, and 6 for Gelu.
func Tanh(t *Tensor) *Tensor { return Apply1(functionOp{&tanhFunction}, nil, t) }

// Sigmoid returns 1/(1+exp(-t)), of what Tanh takes.
func Sigmoid(t *Tensor) *Tensor { return Apply1(functionOp{&sigmoidFunction}, nil, t) }

// Gelu returns t*Φ(t), Φ being the distribution function of the normal distribution, of what Tanh takes. It is the
// exact form with erf, equation (1) of Hendrycks and Gimpel, Gaussian Error Linear Units (arXiv:1606.08415), not the
// approximation with tanh. Far below 0 it is -0.
func Gelu(t *Tensor) *Tensor { return Apply1(functionOp{&geluFunction}, nil, t) }

// Exp returns the exponentials of t, of what Tanh takes.
func Exp(t *Tensor) *Tensor { return Apply1(functionOp{&expFunction}, nil, t) }

// Log returns the natural logarithms of t, of what Tanh takes: minus infinity for 0, NaN below.
func Log(t *Tensor) *Tensor { return Apply1(functionOp{&logFunction}, nil, t) }

// Sqrt returns the square roots of t, of what Tanh takes: NaN below 0. The gradient at 0 is infinite.
func Sqrt(t *Tensor) *Tensor { return Apply1(functionOp{&sqrtFunction}, nil, t) }

// function is a function of one number: what there is to compute it in each type, and its derivative.
type function struct {
	name string
	f32  func(d, x []float32)
	f64  func(d, x []float64)
	i32  func(d, x []int32) // nil: integers are not taken
	i64  func(d, x []int64)

	// gradient builds the gradient, where that takes no operation of its own.
	gradient func(b *Backward) *Tensor

	// Else: d is g times the derivative, which is computed from v, the result if ofResult, or the argument.
	ofResult bool
	slope32  func(d, v, g []float32)
	slope64  func(d, v, g []float64)
}

var (
	negFunction = function{
		name: "neg", f32: negate[float32], f64: negate[float64], i32: negate[int32], i64: negate[int64],
		gradient: func(b *Backward) *Tensor { return MulScalar(b.Grad(0), -1) },
	}
	absFunction = function{
		name: "abs", f32: absolute[float32], f64: absolute[float64], i32: absolute[int32], i64: absolute[int64],
		slope32: absSlope[float32], slope64: absSlope[float64],
	}
	squareFunction = function{
		name: "square", f32: square[float32], f64: square[float64], i32: square[int32], i64: square[int64],
		slope32: squareSlope[float32], slope64: squareSlope[float64],
	}
	reluFunction = function{
		name: "relu", f32: relu[float32], f64: relu[float64], i32: relu[int32], i64: relu[int64],
		ofResult: true, slope32: reluSlope32, slope64: reluSlope64,
	}
	tanhFunction = function{
		name: "tanh", f32: computed[float32](kernel.Tanh), f64: computed[float64](kernel.Tanh),
		ofResult: true, slope32: tanhSlope[float32], slope64: tanhSlope[float64],
	}
	sigmoidFunction = function{
		name: "sigmoid", f32: computed[float32](kernel.Sigmoid), f64: computed[float64](kernel.Sigmoid),
		ofResult: true, slope32: sigmoidSlope[float32], slope64: sigmoidSlope[float64],
	}
	geluFunction = function{
		name: "gelu", f32: computed[float32](kernel.Gelu), f64: computed[float64](kernel.Gelu),
		slope32: geluSlope[float32], slope64: geluSlope[float64],
	}
	expFunction = function{
		name: "exp", f32: computed[float32](kernel.Exp), f64: computed[float64](kernel.Exp),
		gradient: func(b *Backward) *Tensor { return Mul(b.Grad(0), b.Out(0)) },
	}
	logFunction = function{
		name: "log", f32: computed[float32](kernel.NaturalLog), f64: computed[float64](kernel.NaturalLog),
		gradient: func(b *Backward) *Tensor { return Div(b.Grad(0), b.In(0)) },
	}
	sqrtFunction = function{
		name: "sqrt", f32: squareRoot[float32], f64: squareRoot[float64],
		ofResult: true, slope32: sqrtSlope[float32], slope64: sqrtSlope[float64],
	}
)

// functionOp computes a function of each element.
type functionOp struct{ *function }

func (o functionOp) Name() string { return o.name }

func (o functionOp) Infer(in []Spec) ([]Spec, error) {
	types := floatTypes
	if o.i32 != nil {
		types = signedTypes
	}
	return in, takes(types, in[0].DType)
}

func (o functionOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in...) }

func (o functionOp) Bind(m *Memory) (func() error, error) {
	switch m.In[0].DType() {
	case tensor.F64:
		return each1(m.Out[0], m.In[0], m.Scratch, o.f64)
	case tensor.I32:
		return each1(m.Out[0], m.In[0], m.Scratch, o.i32)
	case tensor.I64:
		return each1(m.Out[0], m.In[0], m.Scratch, o.i64)
	}
	return each1(m.Out[0], m.In[0], m.Scratch, o.f32)
}

func (o functionOp) Gradient(b *Backward) []*Tensor {
	if o.gradient != nil {
		return []*Tensor{o.gradient(b)}
	}
	v := b.In
	if o.ofResult {
		v = b.Out
	}
	return []*Tensor{Apply1(slopeOp(o), nil, v(0), b.Grad(0))}
}

// slopeOp multiplies a gradient by the derivative of a function.
type slopeOp struct{ *function }

func (o slopeOp) Name() string { return o.name + " gradient" }

func (o slopeOp) Infer(in []Spec) ([]Spec, error) {
	if err := takes(floatTypes, in[0].DType); err != nil {
		return nil, err
	}
	return inferUpdate(in)
}

func (o slopeOp) ScratchBytes(in []Spec) int { return blocksBytes(in[0].DType, in...) }

func (o slopeOp) Bind(m *Memory) (func() error, error) {
	if m.In[0].DType() == tensor.F64 {
		return each2(m.Out[0], m.In[0], m.In[1], m.Scratch, o.slope64)
	}
	return each2(m.Out[0], m.In[0], m.In[1], m.Scratch, o.slope32)
}

func negate[T signed](d, x []T) {
	for i, v := range x {
		d[i] = canonical(-v)
	}
}

func absolute[T signed](d, x []T) {
	for i, v := range x {
		if v <= 0 {
			v = 0 - v // of -0 too
		}
		d[i] = canonical(v)
	}
}

func absSlope[T float](d, x, g []T) {
	for i, v := range x {
		switch {
		case v > 0:
			d[i] = g[i]
		case v < 0:
			d[i] = -g[i]
		case v == 0:
			d[i] = 0
		default:
			d[i] = T(canonicalNaN)
		}
	}
}

func square[T signed](d, x []T) {
	kernel.Square(kernel.Type(tensor.DTypeOf[T]()))(tensor.Bytes(d), tensor.Bytes(x))
}

func squareSlope[T float](d, x, g []T) {
	for i, v := range x {
		d[i] = canonical(2 * v * g[i])
	}
}

// zeros is a block of 0, in whatever type.
var zeros [blockElements]float64

func relu[T signed](d, x []T) {
	t := tensor.DTypeOf[T]()
	kernel.Binary(kernel.Max, kernel.Type(t))(tensor.Bytes(d), tensor.Bytes(x),
		tensor.Bytes(zeros[:])[:len(d)*t.Size()])
}

// reluSlope32 and reluSlope64 take no branches, which could not be foreseen. What relu returns is +0 or has bits set.
func reluSlope32(d, y, g []float32) {
	y, g = y[:len(d)], g[:len(d)]
	for i := range d {
		b := int32(math.Float32bits(y[i]))
		d[i] = math.Float32frombits(math.Float32bits(g[i]) & uint32((b|-b)>>31))
	}
}

func reluSlope64(d, y, g []float64) {
	y, g = y[:len(d)], g[:len(d)]
	for i := range d {
		b := int64(math.Float64bits(y[i]))
		d[i] = math.Float64frombits(math.Float64bits(g[i]) & uint64((b|-b)>>63))
	}
}

func tanhSlope[T float](d, y, g []T) {
	for i, v := range y {
		d[i] = canonical((1 - v) * (1 + v) * g[i])
	}
}

func sigmoidSlope[T float](d, y, g []T) {
	for i, v := range y {
		d[i] = canonical((1 - v) * v * g[i])
	}
}

// computed is the kernel's loop of a function, over slices.
func computed[T float](f kernel.Function) func(d, x []T) {
	loop := f.Loop(kernel.Type(tensor.DTypeOf[T]()))
	return func(d, x []T) { loop(tensor.Bytes(d), tensor.Bytes(x)) }
}

func geluSlope[T float](d, x, g []T) {
	kernel.GeluSlope(kernel.Type(tensor.DTypeOf[T]()))(tensor.Bytes(d), tensor.Bytes(x), tensor.Bytes(g))
}

func squareRoot[T float](d, x []T) {
	for i, v := range x {
		d[i] = canonical(T(math.Sqrt(float64(v))))
	}
}

func sqrtSlope[T float](d, y, g []T) {
	for i, v := range y {
		d[i] = canonical(g[i] / (2 * v))
	}
}
