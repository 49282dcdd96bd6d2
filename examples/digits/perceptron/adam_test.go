package perceptron

import (
	"math"
	"testing"
)

// TestAdamFirstSteps checks numbers that follow from the paper: with the two means corrected, the first step is rate
// times the gradient's sign, and so is every step while the gradient stays the same.
func TestAdamFirstSteps(t *testing.T) {
	params := []float32{1, 1, 1}
	grad := []float32{0.5, -2, 0}
	opt := NewAdam(len(params))
	for step := 1; step <= 3; step++ {
		opt.Step(params, grad, 0.125)
		moved := 0.125 * float64(step)
		for i, want := range []float64{1 - moved, 1 + moved, 1} {
			if math.Abs(float64(params[i])-want) > 1e-5 {
				t.Errorf("after step %d parameter %d is %v, want %v", step, i, params[i], want)
			}
		}
	}
}

// TestAdamAgainstFloat64 compares with the paper's algorithm, line by line, under gradients that change.
func TestAdamAgainstFloat64(t *testing.T) {
	params, want := []float32{0.5}, 0.5
	opt := NewAdam(1)
	var m, v float64
	for step := 1; step <= 50; step++ {
		g := math.Sin(float64(step))
		opt.Step(params, []float32{float32(g)}, 0.01)
		m = adamBeta1*m + (1-adamBeta1)*g
		v = adamBeta2*v + (1-adamBeta2)*g*g
		mHat := m / (1 - math.Pow(adamBeta1, float64(step)))
		vHat := v / (1 - math.Pow(adamBeta2, float64(step)))
		want -= 0.01 * mHat / (math.Sqrt(vHat) + adamEpsilon)
	}
	if got := float64(params[0]); math.Abs(got-want) > 1e-5 {
		t.Errorf("after 50 steps %v, want %v", got, want)
	}
}
