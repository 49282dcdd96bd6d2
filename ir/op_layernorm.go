package ir

import (
	"fmt"
	"math"

	"gogcl.dev/tensor"
)

// LayerNorm is (x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance of each row of the last
// dimension; the variance is the mean of the squared differences from the mean. gamma and beta have one dimension, the
// last of x. All are of one type of floats. It is computed in float64, and has the same bits on every machine. Errors:
// other types or shapes, an epsilon that is negative or not finite.
func LayerNorm(x, gamma, beta *Tensor, epsilon float64) *Tensor {
	return Apply1(&layerNormOp{epsilon}, nil, x, gamma, beta)
}

type layerNormOp struct{ epsilon float64 }

func (o *layerNormOp) Name() string { return "layer norm" }

func (o *layerNormOp) Infer(in []Spec) ([]Spec, error) {
	if _, err := sameType(floatTypes, in...); err != nil {
		return nil, err
	}
	_, width, err := lastDimension(in[0].Shape)
	if err != nil {
		return nil, err
	}
	want := tensor.Shape{width}
	for i, what := range []string{"gamma", "beta"} {
		if s := in[i+1].Shape; !s.Equal(want) {
			return nil, fmt.Errorf("%s of shape %v, want %v", what, s, want)
		}
	}
	if !(o.epsilon >= 0) || math.IsInf(o.epsilon, 1) {
		return nil, fmt.Errorf("an epsilon of %v, want a finite number, 0 or more", o.epsilon)
	}
	return in[:1], nil
}

func (o *layerNormOp) ScratchBytes(in []Spec) int { return wideBytes(o, in) }

func (o *layerNormOp) Bind(m *Memory) (func() error, error) {
	return bindWide(m,
		func(m *Memory) (func() error, error) { return bindLayerNorm[float32](o.epsilon, m) },
		func(m *Memory) (func() error, error) { return bindLayerNorm[float64](o.epsilon, m) })
}

func bindLayerNorm[T float](epsilon float64, m *Memory) (func() error, error) {
	x, gamma, beta, y := elementsOf[T](m.In[0]), elementsOf[T](m.In[1]), elementsOf[T](m.In[2]), elementsOf[T](m.Out[0])
	width := len(gamma)
	return func() error {
		for at := 0; at < len(x); at += width {
			x, y := x[at:at+width], y[at:at+width]
			mean, scale := moments(x, epsilon)
			for j, v := range x {
				n := float64((float64(v) - mean) * scale)
				y[j] = canonical(T(float64(n*float64(gamma[j])) + float64(beta[j])))
			}
		}
		return nil
	}, nil
}

// moments is the mean of a row, and 1 / sqrt(variance + epsilon).
func moments[T float](x []T, epsilon float64) (mean, scale float64) {
	mean = sumRun[T, float64](x) / float64(len(x))
	variance := 0.0
	for _, v := range x {
		d := float64(v) - mean
		variance += float64(d * d)
	}
	return mean, 1 / math.Sqrt(variance/float64(len(x))+epsilon)
}

// Gradient implements Differentiable.
func (o *layerNormOp) Gradient(b *Backward) []*Tensor {
	return Apply(&layerNormGradientOp{o.epsilon}, nil, b.In(0), b.In(1), b.Grad(0))
}

// layerNormGradientOp is the gradients of x, gamma and beta, given x, gamma and the gradient g of the result. With
// n = (x - mean) scale and h = g gamma: scale (h - mean of h - n times the mean of h n), the sum over rows of g n, and
// that of g. Rows are added in order, in float64.
type layerNormGradientOp struct{ epsilon float64 }

func (o *layerNormGradientOp) Name() string { return "layer norm gradient" }

func (o *layerNormGradientOp) Infer(in []Spec) ([]Spec, error) {
	return []Spec{in[0], in[1], in[1]}, nil
}

func (o *layerNormGradientOp) ScratchBytes(in []Spec) int {
	return wideBytes(o, in) + 2*8*in[1].Elements()
}

func (o *layerNormGradientOp) Bind(m *Memory) (func() error, error) {
	return bindWide(m,
		func(m *Memory) (func() error, error) { return bindLayerNormGradient[float32](o.epsilon, m) },
		func(m *Memory) (func() error, error) { return bindLayerNormGradient[float64](o.epsilon, m) })
}

func bindLayerNormGradient[T float](epsilon float64, m *Memory) (func() error, error) {
	x, gamma, g := elementsOf[T](m.In[0]), elementsOf[T](m.In[1]), elementsOf[T](m.In[2])
	dx, dgamma, dbeta := elementsOf[T](m.Out[0]), elementsOf[T](m.Out[1]), elementsOf[T](m.Out[2])
	width := len(gamma)
	sums, err := tensor.FromBytes[float64](m.Scratch[:2*8*width])
	if err != nil {
		return nil, err
	}
	return func() error {
		clear(sums)
		ofGamma, ofBeta := sums[:width], sums[width:]
		for at := 0; at < len(x); at += width {
			x, g, dx := x[at:at+width], g[at:at+width], dx[at:at+width]
			mean, scale := moments(x, epsilon)
			meanH, meanHN := 0.0, 0.0
			for j, v := range x {
				n, h := float64((float64(v)-mean)*scale), float64(float64(g[j])*float64(gamma[j]))
				meanH += h
				meanHN += float64(h * n)
				ofGamma[j] += float64(float64(g[j]) * n)
				ofBeta[j] += float64(g[j])
			}
			meanH /= float64(width)
			meanHN /= float64(width)
			for j, v := range x {
				n, h := float64((float64(v)-mean)*scale), float64(float64(g[j])*float64(gamma[j]))
				dx[j] = canonical(T(scale * (h - meanH - float64(n*meanHN))))
			}
		}
		for j := range dgamma {
			dgamma[j], dbeta[j] = canonical(T(ofGamma[j])), canonical(T(ofBeta[j]))
		}
		return nil
	}, nil
}
