package ops

import (
	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Softmax is exp(x - max) / sum of exp(x - max) of each row of the last dimension. It takes floats. A row of nothing
// but negative infinities gives NaN. The exponentials are those of [Exp]. Their sum is one of float64s, and its order
// depends on the length of a row only, so the bits are the same on every machine. Errors: other types, a scalar.
func Softmax(t *ir.Tensor) *ir.Tensor { return softmax(false, t) }

// LogSoftmax is the logarithm of Softmax: x - max - log(sum of exp(x - max)).
func LogSoftmax(t *ir.Tensor) *ir.Tensor { return softmax(true, t) }

// softmaxName is the name of one of both.
func softmaxName(log bool) string {
	if log {
		return "log softmax"
	}
	return "softmax"
}

func softmax(log bool, t *ir.Tensor) *ir.Tensor {
	return (&row{
		name: softmaxName(log),
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if err := takes(floatTypes, in[0].DType); err != nil {
				return nil, err
			}
			_, _, err := lastDimension(in[0].Shape)
			return in, err
		},
		f32: func(m *ir.Memory) (func() error, error) { return bindSoftmax[float32](log, m) },
		f64: func(m *ir.Memory) (func() error, error) { return bindSoftmax[float64](log, m) },
		back: func(b *ir.Backward) []*ir.Tensor {
			return []*ir.Tensor{softmaxGradient(log, b.Out(0), b.Grad(0))}
		},
	}).of(t)
}

func bindSoftmax[T float](log bool, m *ir.Memory) (func() error, error) {
	x, y, width := elementsOf[T](m.In[0]), elementsOf[T](m.Out[0]), width(m.In[0])
	t := kernel.Type(tensor.DTypeOf[T]())
	exponentials, scale := kernel.Exponentials(t), kernel.Scale(t)
	return func() error {
		for at := 0; at < len(x); at += width {
			x, y := x[at:at+width], y[at:at+width]
			highest, sum := exponentials(tensor.Bytes(y), tensor.Bytes(x))
			if !log {
				scale(tensor.Bytes(y), tensor.Bytes(y), 1/sum)
				continue
			}
			shift := kernel.Log(sum)
			for j, v := range x {
				y[j] = canonical(T(float64(v-T(highest)) - shift))
			}
		}
		return nil
	}, nil
}

// softmaxGradient is the gradient, given the result y and its gradient g: y (g - sum of g y), and of the logarithm,
// g - exp(y) sum of g.
func softmaxGradient(log bool, y, g *ir.Tensor) *ir.Tensor {
	return (&row{
		name: softmaxName(log) + " gradient", infer: like,
		f32: func(m *ir.Memory) (func() error, error) { return bindSoftmaxGradient[float32](log, m) },
		f64: func(m *ir.Memory) (func() error, error) { return bindSoftmaxGradient[float64](log, m) },
		back: func(b *ir.Backward) []*ir.Tensor { // u being that of the result
			y, g, u := b.In(0), b.In(1), b.Grad(0)
			sum := func(t *ir.Tensor) *ir.Tensor { return ReduceSumKeep(t, -1) }
			if log {
				share := Exp(y)
				return []*ir.Tensor{Neg(Mul(Mul(u, share), sum(g))), Sub(u, sum(Mul(u, share)))}
			}
			return []*ir.Tensor{
				Sub(Mul(u, Sub(g, sum(Mul(g, y)))), Mul(g, sum(Mul(u, y)))), softmaxGradient(false, y, u),
			}
		},
	}).of(y, g)
}

func bindSoftmaxGradient[T float](log bool, m *ir.Memory) (func() error, error) {
	y, g, dx, width := elementsOf[T](m.In[0]), elementsOf[T](m.In[1]), elementsOf[T](m.Out[0]), width(m.In[0])
	exponential := loopOf[T](kernel.Exp)
	return func() error {
		for at := 0; at < len(y); at += width {
			y, g, dx := y[at:at+width], g[at:at+width], dx[at:at+width]
			sum := 0.0
			if log {
				for _, v := range g {
					sum += float64(v)
				}
				exponential(dx, y)
				for j, e := range dx {
					dx[j] = canonical(T(float64(g[j]) - float64(float64(e)*sum)))
				}
				continue
			}
			for j, v := range g {
				sum += float64(float64(v) * float64(y[j]))
			}
			for j, v := range y {
				dx[j] = canonical(T(float64(v) * (float64(g[j]) - sum)))
			}
		}
		return nil
	}, nil
}
