package perceptron

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// Hidden is the width of the hidden layer.
const Hidden = 128

// NumParams is how many weights and biases the perceptron has: 9,610.
const NumParams = Pixels*Hidden + Hidden + Hidden*Classes + Classes

// layers gives shape to a flat vector of NumParams numbers, be they parameters or gradients. It copies nothing: what
// is written through it is written to the vector, so that one collective on the vector serves all layers at once.
//
//	flat: | w1 64x128 | b1 128 | w2 128x10 | b2 10 |
type layers struct {
	w1 blas32.General
	b1 []float32
	w2 blas32.General
	b2 []float32
}

// layersOf cuts flat, which is NumParams long.
func layersOf(flat []float32) layers {
	cut := func(n int) []float32 {
		piece := flat[:n:n]
		flat = flat[n:]
		return piece
	}
	return layers{
		w1: matrix(cut(Pixels*Hidden), Pixels, Hidden),
		b1: cut(Hidden),
		w2: matrix(cut(Hidden*Classes), Hidden, Classes),
		b2: cut(Classes),
	}
}

// matrix is data, row after row, as BLAS wants it. It copies nothing.
func matrix(data []float32, rows, cols int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: data[:rows*cols]}
}

// Net is a perceptron with one hidden layer: logits = relu(x w1 + b1) w2 + b2, where x has one image a row.
//
// It keeps the memory of one pass through the net, so it serves one goroutine at a time.
type Net struct {
	layers
	Params []float32 // the flat vector behind layers

	// One row for each image of the last pass.
	h, dh []float32 // the hidden layer's output, and the loss's gradient there
	z     []float32 // the logits, then the gradient there
}

// New makes a perceptron whose parameters are all zero. It takes up to maxRows images at a time.
func New(maxRows int) *Net {
	params := make([]float32, NumParams)
	return &Net{
		layers: layersOf(params),
		Params: params,
		h:      make([]float32, maxRows*Hidden),
		dh:     make([]float32, maxRows*Hidden),
		z:      make([]float32, maxRows*Classes),
	}
}

// Init draws the weights from normal distributions of variance 2/inputs (He et al., "Delving Deep into Rectifiers",
// 2015), which keeps the size of what flows through rectified layers. Biases stay zero.
func (m *Net) Init(rng *rand.Rand) {
	for _, w := range []blas32.General{m.w1, m.w2} {
		deviation := math.Sqrt(2 / float64(w.Rows))
		for i := range w.Data {
			w.Data[i] = float32(rng.NormFloat64() * deviation)
		}
	}
}

// forward gives the logits for x, a row for each image. They are overwritten by the next pass.
func (m *Net) forward(x blas32.General) blas32.General {
	h := matrix(m.h, x.Rows, Hidden)
	affine(h, x, m.w1, m.b1)
	for i, v := range h.Data {
		h.Data[i] = max(v, 0)
	}
	z := matrix(m.z, x.Rows, Classes)
	affine(z, h, m.w2, m.b2)
	return z
}

// affine computes y = x w + b, adding b to each row.
func affine(y, x, w blas32.General, b []float32) {
	for i := range y.Rows {
		copy(y.Data[i*y.Stride:], b)
	}
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, x, w, 1, y)
}

// Gradient overwrites grad, NumParams long, with weight times the gradient of the batch's summed cross entropy, and
// returns weight times that sum. An empty batch gives zeros.
func (m *Net) Gradient(grad []float32, batch Images, weight float32) float32 {
	g := layersOf(grad)
	x := batch.matrix()
	dz := m.forward(x)
	loss := crossEntropy(dz, batch.labels, weight)

	h := matrix(m.h, x.Rows, Hidden)
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, h, dz, 0, g.w2)
	sumRows(g.b2, dz)

	dh := matrix(m.dh, x.Rows, Hidden)
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, dz, m.w2, 0, dh)
	for i, v := range h.Data {
		if v == 0 {
			dh.Data[i] = 0 // the rectifier was shut
		}
	}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, x, dh, 0, g.w1)
	sumRows(g.b1, dh)
	return loss
}

// crossEntropy returns weight times the cross entropy of the logits z, summed over the rows, and puts its gradient in
// their place.
func crossEntropy(z blas32.General, labels []uint8, weight float32) float32 {
	var loss float64
	for i, label := range labels {
		row := z.Data[i*z.Stride : i*z.Stride+z.Cols]
		highest := row[argmax(row)] // subtracted, so that exp cannot overflow
		var sum float64
		for _, v := range row {
			sum += math.Exp(float64(v - highest))
		}
		loss += math.Log(sum) - float64(row[label]-highest)
		for j, v := range row {
			row[j] = weight * float32(math.Exp(float64(v-highest))/sum)
		}
		row[label] -= weight
	}
	return weight * float32(loss)
}

// sumRows overwrites sum with the sum of a's rows.
func sumRows(sum []float32, a blas32.General) {
	clear(sum)
	for i := range a.Rows {
		for j, v := range a.Data[i*a.Stride : i*a.Stride+a.Cols] {
			sum[j] += v
		}
	}
}

// argmax is the index of the largest number of row, the first of equals.
func argmax(row []float32) int {
	best := 0
	for j, v := range row {
		if v > row[best] {
			best = j
		}
	}
	return best
}

// Correct counts the images that the perceptron takes for what they are.
func (m *Net) Correct(im Images) int {
	z := m.forward(im.matrix())
	count := 0
	for i, label := range im.labels {
		if argmax(z.Data[i*z.Stride:i*z.Stride+z.Cols]) == int(label) {
			count++
		}
	}
	return count
}
