package perceptron

import "math"

// Adam is the optimiser of Kingma and Ba, "Adam: A Method for Stochastic Optimization" (2015), with the decay rates
// that they propose. It is plain arithmetic: replicas that feed it the same bits keep the same bits.
type Adam struct {
	mean, square []float32 // running means of the gradient and of its square
	steps        int
}

const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// NewAdam makes an optimiser for n parameters.
func NewAdam(n int) *Adam {
	return &Adam{mean: make([]float32, n), square: make([]float32, n)}
}

// Step moves params against grad, by about rate each.
func (a *Adam) Step(params, grad []float32, rate float64) {
	a.steps++
	// Both means start at zero; these undo the pull that this has in the first steps.
	correct1 := 1 - math.Pow(adamBeta1, float64(a.steps))
	correct2 := 1 - math.Pow(adamBeta2, float64(a.steps))
	size := float32(rate / correct1)
	scale := float32(1 / math.Sqrt(correct2))
	for i, g := range grad {
		a.mean[i] += (1 - adamBeta1) * (g - a.mean[i])
		a.square[i] += (1 - adamBeta2) * (g*g - a.square[i])
		params[i] -= size * a.mean[i] / (float32(math.Sqrt(float64(a.square[i])))*scale + adamEpsilon)
	}
}
