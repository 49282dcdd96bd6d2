package ir

import (
	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// Softmax is exp(x - max) / sum of exp(x - max) of each row of the last dimension. It takes floats. A row of nothing
// but negative infinities gives NaN. The exponentials are those of [Exp]. Their sum is one of float64s, and its order
// depends on the length of a row only, so the bits are the same on every machine. Errors: other types, a scalar.
func Softmax(t *Tensor) *Tensor { return Apply1(&softmaxOp{}, nil, t) }

// LogSoftmax is the logarithm of Softmax: x - max - log(sum of exp(x - max)).
func LogSoftmax(t *Tensor) *Tensor { return Apply1(&softmaxOp{log: true}, nil, t) }

type softmaxOp struct{ log bool }

func (o *softmaxOp) Name() string {
	if o.log {
		return "log softmax"
	}
	return "softmax"
}

func (o *softmaxOp) Infer(in []Spec) ([]Spec, error) {
	if _, err := sameType(floatTypes, in...); err != nil {
		return nil, err
	}
	_, _, err := lastDimension(in[0].Shape)
	return in, err
}

func (o *softmaxOp) ScratchBytes(in []Spec) int { return wideBytes(o, in) }

func (o *softmaxOp) Bind(m *Memory) (func() error, error) {
	return bindWide(m,
		func(m *Memory) (func() error, error) { return bindSoftmax[float32](o.log, m) },
		func(m *Memory) (func() error, error) { return bindSoftmax[float64](o.log, m) })
}

func bindSoftmax[T float](log bool, m *Memory) (func() error, error) {
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

// width is the extent of a tensor's last dimension.
func width(t *tensor.Tensor) int { return t.Dim(t.Rank() - 1) }

// Gradient implements Differentiable.
func (o *softmaxOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Apply1(&softmaxGradientOp{o.log}, nil, b.Out(0), b.Grad(0))}
}

// softmaxGradientOp is the gradient of softmaxOp, given the result y and its gradient g: y (g - sum of g y), and of the
// logarithm, g - exp(y) sum of g.
type softmaxGradientOp struct{ log bool }

func (o *softmaxGradientOp) Name() string {
	return (&softmaxOp{o.log}).Name() + " gradient"
}

func (o *softmaxGradientOp) Infer(in []Spec) ([]Spec, error) { return in[:1], nil }

func (o *softmaxGradientOp) ScratchBytes(in []Spec) int { return wideBytes(o, in) }

func (o *softmaxGradientOp) Bind(m *Memory) (func() error, error) {
	return bindWide(m,
		func(m *Memory) (func() error, error) { return bindSoftmaxGradient[float32](o.log, m) },
		func(m *Memory) (func() error, error) { return bindSoftmaxGradient[float64](o.log, m) })
}

func bindSoftmaxGradient[T float](log bool, m *Memory) (func() error, error) {
	y, g, dx, width := elementsOf[T](m.In[0]), elementsOf[T](m.In[1]), elementsOf[T](m.Out[0]), width(m.In[0])
	exponential := computed[T](kernel.Exp)
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
