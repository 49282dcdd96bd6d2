package perceptron

import (
	"math"
	"math/rand/v2"
	"testing"
)

// someImages makes count images of noise.
func someImages(rng *rand.Rand, count int) Images {
	var im Images
	px := make([]float32, Pixels)
	for range count {
		for i := range px {
			px[i] = rng.Float32()
		}
		im.Add(px, uint8(rng.IntN(Classes)))
	}
	return im
}

// slowLoss is the summed cross entropy in float64, straight from the definition, with no BLAS.
func slowLoss(params []float64, im Images) float64 {
	at := func(layer, row, col, cols int) float64 { return params[layer+row*cols+col] }
	const w1, b1 = 0, Pixels * Hidden
	const w2, b2 = b1 + Hidden, b1 + Hidden + Hidden*Classes
	var total float64
	for i := range im.Len() {
		px, label := im.At(i)
		var h [Hidden]float64
		for j := range h {
			h[j] = params[b1+j]
			for p, v := range px {
				h[j] += float64(v) * at(w1, p, j, Hidden)
			}
			h[j] = max(h[j], 0)
		}
		var z [Classes]float64
		var sum float64
		for k := range z {
			z[k] = params[b2+k]
			for j, v := range h {
				z[k] += v * at(w2, j, k, Classes)
			}
			sum += math.Exp(z[k])
		}
		total += math.Log(sum) - z[label]
	}
	return total
}

// TestGradient compares with finite differences of slowLoss, for parameters in every layer.
func TestGradient(t *testing.T) {
	const weight = 0.25
	rng := rand.New(rand.NewPCG(7, 0))
	batch := someImages(rng, 5)
	m := New(8)
	m.Init(rng)
	for i := range m.b1 {
		m.b1[i] = rng.Float32() - 0.5
	}
	for i := range m.b2 {
		m.b2[i] = rng.Float32() - 0.5
	}
	grad := make([]float32, NumParams)
	for i := range grad {
		grad[i] = float32(math.NaN()) // Gradient overwrites, it must not add
	}
	loss := m.Gradient(grad, batch, weight)

	params := make([]float64, NumParams)
	for i, v := range m.Params {
		params[i] = float64(v)
	}
	if want := weight * slowLoss(params, batch); math.Abs(float64(loss)-want) > 1e-5*want {
		t.Errorf("loss %v, want %v", loss, want)
	}
	const firstBias1, firstWeight2, firstBias2 = Pixels * Hidden, Pixels*Hidden + Hidden, NumParams - Classes
	places := []int{0, firstBias1 - 1, firstBias1, firstWeight2 - 1, firstWeight2, firstBias2 - 1, firstBias2,
		NumParams - 1}
	for range 200 {
		places = append(places, rng.IntN(NumParams))
	}
	const delta = 1e-5
	nonZero := 0
	for _, i := range places {
		old := params[i]
		params[i] = old + delta
		up := slowLoss(params, batch)
		params[i] = old - delta
		down := slowLoss(params, batch)
		params[i] = old
		want := weight * (up - down) / (2 * delta)
		if got := float64(grad[i]); !(math.Abs(got-want) <= 1e-5+1e-4*math.Abs(want)) {
			t.Errorf("gradient of parameter %d is %v, want %v", i, got, want)
		}
		if want != 0 {
			nonZero++
		}
	}
	if nonZero < len(places)/2 {
		t.Errorf("only %d of %d gradients tried differ from zero", nonZero, len(places))
	}
}

// TestGradientOfNothing is about a replica that gets no image of a short batch.
func TestGradientOfNothing(t *testing.T) {
	m := New(1)
	m.Init(rand.New(rand.NewPCG(1, 0)))
	grad := make([]float32, NumParams)
	for i := range grad {
		grad[i] = 1
	}
	if loss := m.Gradient(grad, Images{}, 1); loss != 0 {
		t.Errorf("loss %v, want 0", loss)
	}
	for i, g := range grad {
		if g != 0 {
			t.Fatalf("gradient %d is %v, want 0", i, g)
		}
	}
	if got := m.Correct(Images{}); got != 0 {
		t.Errorf("%d of no images correct", got)
	}
}

// TestSharesAddUp checks the weighting of trainer.step: however a batch is shared out, the replicas' weighted
// gradients have the mean of the whole batch's gradient.
func TestSharesAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	batch := someImages(rng, 7)
	m := New(7)
	m.Init(rng)
	whole := make([]float32, NumParams)
	wholeLoss := m.Gradient(whole, batch, 1./7)

	const n = 3
	cuts := [n + 1]int{0, 2, 2, 7} // 2, 0 and 5 images
	sum, part := make([]float64, NumParams), make([]float32, NumParams)
	var loss float64
	for r := range n {
		loss += float64(m.Gradient(part, batch.Slice(cuts[r], cuts[r+1]), float32(n)/7)) / n
		for i, g := range part {
			sum[i] += float64(g) / n
		}
	}
	if math.Abs(loss-float64(wholeLoss)) > 1e-5 {
		t.Errorf("loss %v, want %v", loss, wholeLoss)
	}
	for i, want := range whole {
		if math.Abs(sum[i]-float64(want)) > 1e-6 {
			t.Fatalf("mean gradient %d is %v, want %v", i, sum[i], want)
		}
	}
}
