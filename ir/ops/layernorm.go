package ops

import (
	"fmt"
	"math"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// LayerNorm is (x - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance of each row of the last
// dimension; the variance is the mean of the squared differences from the mean. gamma and beta have one dimension, the
// last of x. All are of one type of floats. It is computed in float64, and has the same bits on every machine. Errors:
// other types or shapes, an epsilon that is negative or not finite.
func LayerNorm(x, gamma, beta *ir.Tensor, epsilon float64) *ir.Tensor {
	return (&row{
		name:  "layer norm",
		infer: func(in []ir.Spec) ([]ir.Spec, error) { return inferLayerNorm(in, epsilon) },
		f32:   func(m *ir.Memory) (func() error, error) { return bindLayerNorm[float32](epsilon, m) },
		f64:   func(m *ir.Memory) (func() error, error) { return bindLayerNorm[float64](epsilon, m) },
		back: func(b *ir.Backward) []*ir.Tensor {
			return layerNormGradient(b.In(0), b.In(1), b.Grad(0), epsilon)
		},
	}).of(x, gamma, beta)
}

func inferLayerNorm(in []ir.Spec, epsilon float64) ([]ir.Spec, error) {
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
	if !(epsilon >= 0) || math.IsInf(epsilon, 1) {
		return nil, fmt.Errorf("an epsilon of %v, want a finite number, 0 or more", epsilon)
	}
	return in[:1], nil
}

func bindLayerNorm[T float](epsilon float64, m *ir.Memory) (func() error, error) {
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

// layerNormGradient is the gradients of x, gamma and beta, given x, gamma and the gradient g of the result. With
// n = (x - mean) scale and h = g gamma: scale (h - mean of h - n times the mean of h n), the sum over rows of g n, and
// that of g. Rows are added in order, in float64.
func layerNormGradient(x, gamma, g *ir.Tensor, epsilon float64) []*ir.Tensor {
	return ir.Apply(&row{
		name:    "layer norm gradient",
		infer:   func(in []ir.Spec) ([]ir.Spec, error) { return []ir.Spec{in[0], in[1], in[1]}, nil },
		scratch: func(in []ir.Spec) int { return 2 * 8 * in[1].Elements() },
		f32:     func(m *ir.Memory) (func() error, error) { return bindLayerNormGradient[float32](epsilon, m) },
		f64:     func(m *ir.Memory) (func() error, error) { return bindLayerNormGradient[float64](epsilon, m) },
		back:    func(b *ir.Backward) []*ir.Tensor { return layerNormSecond(b, epsilon) },
	}, nil, x, gamma, g)
}

func bindLayerNormGradient[T float](epsilon float64, m *ir.Memory) (func() error, error) {
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

// layerNormSecond builds the gradients of x, gamma and g, given those of the three results: u, v and w. With P(t) =
// scale (t - mean of t - n times the mean of n t), which is its own transpose, the results are P(g gamma), and the sums
// over rows of g n and of g. It is computed in float64, as the gradient is.
func layerNormSecond(b *ir.Backward, epsilon float64) []*ir.Tensor {
	d := b.InSpec(0).DType
	if s := b.InSpec(0).Shape; s[len(s)-1] == 0 { // of nothing
		return []*ir.Tensor{nil, nil, nil}
	}
	wide := func(t *ir.Tensor) *ir.Tensor {
		if d == tensor.F64 {
			return t
		}
		return Cast(t, tensor.F64)
	}
	x, gamma, g := wide(b.In(0)), wide(b.In(1)), wide(b.In(2))
	u, v, w := wide(b.Grad(0)), wide(b.Grad(1)), wide(b.Grad(2))
	mean := func(t *ir.Tensor) *ir.Tensor { return ReduceMeanKeep(t, -1) }
	centred := Sub(x, mean(x))
	scale := Div(scalar(b.Graph(), tensor.F64, 1), Sqrt(AddScalar(mean(Square(centred)), epsilon)))
	n, h := Mul(centred, scale), Mul(g, gamma)
	p := func(t *ir.Tensor) *ir.Tensor {
		return Mul(scale, Sub(Sub(t, mean(t)), Mul(n, mean(Mul(n, t)))))
	}
	pu := p(u)
	un, hn := mean(Mul(u, n)), mean(Mul(h, n))
	// What changes with n where it stands, and with the scale, which changes n too.
	q := Sub(Mul(v, g), Mul(scale, Add(Mul(u, hn), Mul(h, un))))
	by := Mul(Square(scale), Sub(Sub(mean(Mul(u, h)), Mul(mean(u), mean(h))), Mul(un, hn)))
	out := []*ir.Tensor{
		Sub(p(q), Mul(by, n)), sumTo(Mul(g, pu), b.InSpec(1).Shape), Add(Add(Mul(gamma, pu), Mul(v, n)), w),
	}
	for i, t := range out {
		if d != tensor.F64 {
			out[i] = Cast(t, d)
		}
	}
	return out
}
