package ops_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// eachRow makes an array of an array's rows, one by one.
func eachRow(x *slowArray, f func(row []float64) []float64) *slowArray {
	out := newSlowArray(x.shape...)
	width := x.shape[len(x.shape)-1]
	for at := 0; at < len(x.v); at += width {
		copy(out.v[at:], f(x.v[at:at+width]))
	}
	return out
}

func slowSoftmax(row []float64) []float64 {
	var out []float64
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(v - maxOf(row))
	}
	for _, v := range row {
		out = append(out, math.Exp(v-maxOf(row))/sum)
	}
	return out
}

func TestSoftmax(t *testing.T) {
	logarithms := func(row []float64) []float64 {
		var out []float64
		for _, v := range slowSoftmax(row) {
			out = append(out, math.Log(v))
		}
		return out
	}
	forTypes(t, floatDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for range 20 {
			x := quarters(r, someShape(r, 1+r.IntN(4), 6)...)
			got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, d)}, func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{ops.Softmax(in[0]), ops.LogSoftmax(in[0])}
			})
			checkArray(t, got[0], eachRow(x, slowSoftmax), 1)
			checkArray(t, got[1], eachRow(x, logarithms), 1)
		}
		big := &slowArray{[]int{3, 3}, []float64{60000, 59999, -60000, math.Inf(-1), 0, math.Inf(-1), math.NaN(), 0, 1}}
		if d == tensor.BF16 {
			big.v[1] = 60000 // it has no 59999
		}
		x := big.tensor(t, d)
		big.v = asFloats(t, x)
		got := irtest.Run(t, []*tensor.Tensor{x}, oneOp(ops.Softmax))
		checkArray(t, got[0], eachRow(big, slowSoftmax), 1)
	})
	for name, f := range map[string]func(*ir.Tensor) *ir.Tensor{"softmax": ops.Softmax, "log softmax": ops.LogSoftmax} {
		wantBuildError(t, []ir.Spec{f32()}, oneOp(f), name, "a scalar, want a tensor of a dimension or more")
		wantBuildError(t, []ir.Spec{{Shape: tensor.Shape{2}, DType: tensor.I32}}, oneOp(f), name,
			"element type int32, want float16, bfloat16, float32 or float64")
	}
}

func crossEntropies(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.CrossEntropy(in[0], in[1]), ops.CrossEntropyEach(in[0], in[1])}
}

// randomLabels are classes for rows.
func randomLabels(r *rand.Rand, classes int, shape ...int) *slowArray {
	a := newSlowArray(shape...)
	for i := range a.v {
		a.v[i] = float64(r.IntN(classes))
	}
	return a
}

func TestCrossEntropy(t *testing.T) {
	forTypes(t, floatDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for k := range 20 {
			shape := make([]int, 1+r.IntN(3))
			for d := range shape {
				shape[d] = 1 + r.IntN(6)
			}
			classes, leading := shape[len(shape)-1], shape[:len(shape)-1]
			x, labels := quarters(r, shape...), randomLabels(r, classes, leading...)
			if k == 0 {
				x.v[0] = 10000 // where exp would be infinite
			}
			each := newSlowArray(leading...)
			for i := range each.v {
				row := x.v[i*classes:][:classes]
				sum := 0.0
				for _, v := range row {
					sum += math.Exp(v - maxOf(row))
				}
				each.v[i] = math.Log(sum) + maxOf(row) - row[int(labels.v[i])]
			}
			got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, d),
				labels.tensor(t, []tensor.DType{tensor.I32, tensor.U32}[k%2])}, crossEntropies)
			checkArray(t, got[0], &slowArray{nil, []float64{meanOf(each.v)}}, 1)
			checkArray(t, got[1], each, 1)
		}
	})
	none := irtest.Run(t,
		[]*tensor.Tensor{newSlowArray(0, 3).tensor(t, tensor.F32), newSlowArray(0).tensor(t, tensor.I32)},
		func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.CrossEntropyEach(in[0], in[1])}
		})
	checkArray(t, none[0], newSlowArray(0), 0)
}

func TestCrossEntropyErrors(t *testing.T) {
	labels := func(d tensor.DType, shape ...int) ir.Spec { return ir.Spec{Shape: shape, DType: d} }
	for _, c := range []struct {
		x, labels ir.Spec
		words     string
	}{
		{f32(2, 3), labels(tensor.F32, 2), "labels of float32, want int32 or uint32"},
		{f32(2, 3), labels(tensor.I64, 2), "labels of int64, want int32 or uint32"},
		{labels(tensor.I32, 2, 3), labels(tensor.I32, 2), "element type int32, want float16, bfloat16, float32 or float64"},
		{f32(2, 3), labels(tensor.I32, 3), "labels of shape (3,), want (2,): one for each row of logits"},
		{f32(2, 3), labels(tensor.I32, 2, 1), "labels of shape (2, 1), want (2,)"},
		{f32(), labels(tensor.I32), "a scalar, want a tensor of a dimension or more"},
		{f32(2, 0), labels(tensor.I32, 2), "rows of no classes"},
		{f32(0, 3), labels(tensor.I32, 0), "the mean of no rows"},
	} {
		wantBuildError(t, []ir.Spec{c.x, c.labels}, crossEntropies, "cross entropy", c.words)
	}
	x := newSlowArray(3, 4).tensor(t, tensor.F32)
	for _, c := range []struct {
		labels *tensor.Tensor
		words  string
	}{
		{fromSlice(t, []int32{0, 3, 4}), "row 2 has label 4, and there are 4 classes"},
		{fromSlice(t, []int32{0, -1, 4}), "row 1 has label -1, and there are 4 classes"},
		{fromSlice(t, []uint32{1 << 31, 3, 0}), "row 0 has label 2147483648, and there are 4 classes"},
	} {
		wantRunError(t, []*tensor.Tensor{x, c.labels}, crossEntropies, "replica 0: cross entropy built at "+
			"softmax_test.go", c.words)
	}
}

func fromSlice[T tensor.Element](t *testing.T, v []T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(v, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func layerNorm(epsilon float64) irtest.Build {
	return func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.LayerNorm(in[0], in[1], in[2], epsilon)}
	}
}

func TestLayerNorm(t *testing.T) {
	forTypes(t, floatDTypes, func(t *testing.T, d tensor.DType, r *rand.Rand) {
		for _, epsilon := range []float64{1e-5, 0.5, 0} {
			for range 10 {
				shape := someShape(r, 1+r.IntN(3), 9)
				width := shape[len(shape)-1]
				x, gamma, beta := quarters(r, shape...), quarters(r, width), quarters(r, width)
				if epsilon == 0 {
					for i := range x.v { // no row without a variance
						x.v[i] += 32 * float64(i%2)
					}
				}
				got := irtest.Run(t, []*tensor.Tensor{x.tensor(t, d), gamma.tensor(t, d), beta.tensor(t, d)},
					layerNorm(epsilon))
				x.v = asFloats(t, x.tensor(t, d))
				want := newSlowArray(shape...)
				if width > 0 {
					want = eachRow(x, func(row []float64) []float64 {
						var out, squares []float64
						for _, v := range row {
							squares = append(squares, (v-meanOf(row))*(v-meanOf(row)))
						}
						for j, v := range row {
							out = append(out, (v-meanOf(row))/math.Sqrt(meanOf(squares)+epsilon)*gamma.v[j]+beta.v[j])
						}
						return out
					})
				}
				checkArray(t, got[0], want, 1)
			}
		}
	})
	for _, c := range []struct {
		x, gamma, beta ir.Spec
		epsilon        float64
		words          string
	}{
		{f32(), f32(1), f32(1), 1, "a scalar, want a tensor of a dimension or more"},
		{f32(2, 3), f32(2), f32(3), 1, "gamma of shape (2,), want (3,)"},
		{f32(2, 3), f32(3), f32(1, 3), 1, "beta of shape (1, 3), want (3,)"},
		{f32(2, 3), f32(3), ir.Spec{Shape: tensor.Shape{3}, DType: tensor.F16}, 1, "element types float32 and float16, want the same"},
		{f32(2, 3), f32(3), f32(3), -1, "an epsilon of -1, want a finite number, 0 or more"},
		{f32(2, 3), f32(3), f32(3), math.NaN(), "an epsilon of NaN"},
		{f32(2, 3), f32(3), f32(3), math.Inf(1), "an epsilon of +Inf"},
	} {
		wantBuildError(t, []ir.Spec{c.x, c.gamma, c.beta}, layerNorm(c.epsilon), "layer norm", c.words)
	}
}
