package ops

import (
	"math"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Neg returns -t, of float16, bfloat16, float32, float64, int32 or int64. The least integer stays what it is.
func Neg(t *ir.Tensor) *ir.Tensor {
	return function{name: "neg", f32: negate[float32], f64: negate[float64], i32: negate[int32], i64: negate[int64]}.
		of(t, func(b *ir.Backward) *ir.Tensor { return MulScalar(b.Grad(0), -1) })
}

// Abs returns the absolute values of t, of what Neg takes. The least integer stays what it is. The gradient at 0 is 0.
func Abs(t *ir.Tensor) *ir.Tensor {
	return function{
		name: "abs", f32: absolute[float32], f64: absolute[float64], i32: absolute[int32], i64: absolute[int64],
	}.of(t, slope{name: "abs", f32: absSlope[float32], f64: absSlope[float64]}.ofArgument)
}

// Square returns t*t, of what Neg takes.
func Square(t *ir.Tensor) *ir.Tensor {
	return function{name: "square", f32: square[float32], f64: square[float64], i32: square[int32], i64: square[int64]}.
		of(t, slope{
			name: "square", f32: squareSlope[float32], f64: squareSlope[float64],
			next: func(_, g, u *ir.Tensor) *ir.Tensor { return MulScalar(Mul(g, u), 2) },
		}.ofArgument)
}

// Relu returns the larger of 0 and each element of t, of what Neg takes; NaN for NaN. The gradient at 0 is 0.
func Relu(t *ir.Tensor) *ir.Tensor {
	return function{name: "relu", f32: relu[float32], f64: relu[float64], i32: relu[int32], i64: relu[int64]}.
		of(t, slope{name: "relu", f32: reluSlope32, f64: reluSlope64}.ofResult)
}

// Tanh returns the hyperbolic tangents of t, of float16, bfloat16, float32 or float64. It and the functions below have
// the same bits on every machine. They compute in float64. A float32 is rounded once more, and errs by less than
// 0.5000001 units in the last place; a 16-bit float is rounded from float32. The largest errors found in float64 are
// 1.1 units for Exp, 2 for Log, 3 for Softplus, Tanh and Sigmoid, and 6 for Gelu.
func Tanh(t *ir.Tensor) *ir.Tensor {
	return computed("tanh", kernel.Tanh).of(t, slope{
		name: "tanh", f32: tanhSlope[float32], f64: tanhSlope[float64],
		next: func(y, g, u *ir.Tensor) *ir.Tensor { return MulScalar(Mul(Mul(y, g), u), -2) },
	}.ofResult)
}

// Sigmoid returns 1/(1+exp(-t)), of what Tanh takes.
func Sigmoid(t *ir.Tensor) *ir.Tensor {
	return computed("sigmoid", kernel.Sigmoid).of(t, slope{
		name: "sigmoid", f32: sigmoidSlope[float32], f64: sigmoidSlope[float64],
		next: func(y, g, u *ir.Tensor) *ir.Tensor { return Mul(AddScalar(MulScalar(y, -2), 1), Mul(g, u)) },
	}.ofResult)
}

// Softplus returns log(1+exp(t)), of what Tanh takes.
func Softplus(t *ir.Tensor) *ir.Tensor {
	return computed("softplus", kernel.Softplus).of(t,
		func(b *ir.Backward) *ir.Tensor { return Mul(b.Grad(0), Sigmoid(b.In(0))) })
}

// Gelu returns t*Φ(t), Φ being the distribution function of the normal distribution, of what Tanh takes. It is the
// exact form with erf, equation (1) of Hendrycks and Gimpel, Gaussian Error Linear Units (arXiv:1606.08415), not the
// approximation with tanh. Far below 0 it is -0.
func Gelu(t *ir.Tensor) *ir.Tensor {
	return computed("gelu", kernel.Gelu).of(t, slope{
		name: "gelu", f32: geluSlope[float32], f64: geluSlope[float64],
		next: geluNext,
	}.ofArgument)
}

// geluNext is (2 - x x) times the density of the normal distribution, g and u. With e = exp(-x x/4) that is as 2 e e
// less (x e) (x e), where x, which may be infinite, does not count once e is 0.
func geluNext(x, g, u *ir.Tensor) *ir.Tensor {
	e, zero := Exp(MulScalar(Square(x), -0.25)), scalar(x.Graph(), x.DType(), 0)
	xe := Mul(Select(NotEqual(e, zero), x, zero), e)
	slope := MulScalar(Sub(MulScalar(Square(e), 2), Square(xe)), 1/math.Sqrt(2*math.Pi))
	return Mul(slope, Mul(g, u))
}

// Exp returns the exponentials of t, of what Tanh takes.
func Exp(t *ir.Tensor) *ir.Tensor {
	return computed("exp", kernel.Exp).of(t,
		func(b *ir.Backward) *ir.Tensor { return Mul(b.Grad(0), b.Out(0)) })
}

// Log returns the natural logarithms of t, of what Tanh takes: minus infinity for 0, NaN below.
func Log(t *ir.Tensor) *ir.Tensor {
	return computed("log", kernel.NaturalLog).of(t,
		func(b *ir.Backward) *ir.Tensor { return Div(b.Grad(0), b.In(0)) })
}

// Sqrt returns the square roots of t, of what Tanh takes: NaN below 0. The gradient at 0 is infinite.
func Sqrt(t *ir.Tensor) *ir.Tensor {
	var s slope
	s = slope{
		name: "sqrt", f32: sqrtSlope[float32], f64: sqrtSlope[float64],
		next: func(y, g, u *ir.Tensor) *ir.Tensor { return Neg(Div(Mul(s.of(y, g), u), y)) },
	}
	return function{name: "sqrt", f32: squareRoot[float32], f64: squareRoot[float64]}.of(t, s.ofResult)
}

// function is a function of one number: what there is to compute it in each type.
type function struct {
	name string
	f32  func(d, x []float32)
	f64  func(d, x []float64)
	i32  func(d, x []int32) // nil: integers are not taken
	i64  func(d, x []int64)
}

// computed is a function of package kernel.
func computed(name string, f kernel.Function) function {
	return function{name: name, f32: loopOf[float32](f), f64: loopOf[float64](f)}
}

// loopOf is the kernel's loop of a function, over slices.
func loopOf[T float](f kernel.Function) func(d, x []T) {
	loop := f.Loop(kernel.Type(tensor.DTypeOf[T]()))
	return func(d, x []T) { loop(tensor.Bytes(d), tensor.Bytes(x)) }
}

// of adds the function of each element, given how its gradient is built.
func (f function) of(t *ir.Tensor, back func(b *ir.Backward) *ir.Tensor) *ir.Tensor {
	types := floatTypes
	if f.i32 != nil {
		types = signedTypes
	}
	return (&row{
		name:    f.name,
		infer:   func(in []ir.Spec) ([]ir.Spec, error) { return in, takes(types, in[0].DType) },
		scratch: blocksOfInput,
		bind: func(m *ir.Memory) (func() error, error) {
			switch m.In[0].DType() {
			case tensor.F64:
				return each1(m.Out[0], m.In[0], m.Scratch, f.f64)
			case tensor.I32:
				return each1(m.Out[0], m.In[0], m.Scratch, f.i32)
			case tensor.I64:
				return each1(m.Out[0], m.In[0], m.Scratch, f.i64)
			}
			return each1(m.Out[0], m.In[0], m.Scratch, f.f32)
		},
		back: func(b *ir.Backward) []*ir.Tensor { return []*ir.Tensor{back(b)} },
	}).of(t)
}

// slope multiplies a gradient g by the derivative of a function, which is computed from v: its argument or its result.
type slope struct {
	name string // of the function
	f32  func(d, v, g []float32)
	f64  func(d, v, g []float64)

	// next builds the gradient of v, given v, g and the gradient u of what slope returns; nil: it is 0.
	next func(v, g, u *ir.Tensor) *ir.Tensor
}

func (s slope) ofArgument(b *ir.Backward) *ir.Tensor { return s.of(b.In(0), b.Grad(0)) }
func (s slope) ofResult(b *ir.Backward) *ir.Tensor   { return s.of(b.Out(0), b.Grad(0)) }

func (s slope) of(v, g *ir.Tensor) *ir.Tensor {
	return (&row{
		name: s.name + " gradient",
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if err := takes(floatTypes, in[0].DType); err != nil {
				return nil, err
			}
			return inferUpdate(in)
		},
		scratch: blocksOfInput,
		bind: func(m *ir.Memory) (func() error, error) {
			if m.In[0].DType() == tensor.F64 {
				return each2(m.Out[0], m.In[0], m.In[1], m.Scratch, s.f64)
			}
			return each2(m.Out[0], m.In[0], m.In[1], m.Scratch, s.f32)
		},
		back: func(b *ir.Backward) []*ir.Tensor {
			v, g, u := b.In(0), b.In(1), b.Grad(0)
			var ofV *ir.Tensor
			if s.next != nil {
				ofV = s.next(v, g, u)
			}
			return []*ir.Tensor{ofV, s.of(v, u)}
		},
	}).of(v, g)
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
