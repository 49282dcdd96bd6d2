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

// adamCase is what a step works on, in the order of adamStep's inputs.
func adamCase(d tensor.DType, n int, rate, step *tensor.Tensor) []*tensor.Tensor {
	r, kept := rand.New(rand.NewPCG(31, uint64(d))), tensor.F32
	if d == tensor.F64 {
		kept = tensor.F64
	}
	param, mean, square, grad := zeros(spec(d, n)), zeros(spec(kept, n)), zeros(spec(kept, n)), zeros(spec(d, n))
	for _, x := range []*tensor.Tensor{param, mean, square, grad} {
		change(x, func(value) value { return value{f: 2*r.Float64() - 1} })
	}
	change(square, func(v value) value { return value{f: math.Abs(v.f)} })
	return []*tensor.Tensor{param, mean, square, grad, rate, step}
}

func adamStep(a ops.Adam) irtest.Build {
	return func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		// In place, and run again and again: what is changed is a copy.
		param, s := a.Update(ops.Reshape(in[0], in[0].Shape()...), ops.AdamState{
			Mean: ops.Reshape(in[1], in[1].Shape()...), Square: ops.Reshape(in[2], in[2].Shape()...),
		}, in[3], in[4], in[5])
		return []*ir.Tensor{param, s.Mean, s.Square}
	}
}

// TestAdam holds a step against the formulas in float64, for every type and options that differ from what is proposed.
func TestAdam(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64} {
		for i, c := range []struct {
			a            ops.Adam
			b1, b2, e    float64
			rate, step   *tensor.Tensor
			rateV, stepV float64
		}{
			{ops.Adam{}, 0.9, 0.999, 1e-8, tensor.Scalar(0.25), tensor.Scalar(int32(1)), 0.25, 1},
			{ops.Adam{Beta1: 0.5, Beta2: 0.75, Epsilon: 0.125}, 0.5, 0.75, 0.125, tensor.Scalar(float32(0.5)), tensor.Scalar(int64(7)), 0.5, 7},
		} {
			in := adamCase(d, 2500, c.rate, c.step)
			got := irtest.Run(t, in, adamStep(c.a))
			unit := map[tensor.DType]float64{tensor.F16: 0x1p-10, tensor.BF16: 0x1p-7, tensor.F32: 0x1p-21,
				tensor.F64: 0x1p-50}[d]
			kept := map[bool]float64{true: 0x1p-50, false: 0x1p-21}[d == tensor.F64]
			for j := range 2500 {
				g := at(in[3], j).f
				m := c.b1*at(in[1], j).f + (1-c.b1)*g
				v := c.b2*at(in[2], j).f + (1-c.b2)*g*g
				was, by := at(in[0], j).f,
					c.rateV*m/(1-math.Pow(c.b1, c.stepV))/(math.Sqrt(v/(1-math.Pow(c.b2, c.stepV)))+c.e)
				size := max(math.Abs(at(in[1], j).f), math.Abs(g)) // of what is added and may cancel out
				if x := at(got[1], j).f; !(math.Abs(x-m) <= kept*size) {
					t.Fatalf("%v case %d: mean %d is %v, want %v", d, i, j, x, m)
				}
				if x := at(got[2], j).f; !(math.Abs(x-v) <= kept*max(at(in[2], j).f, g*g)) {
					t.Fatalf("%v case %d: square %d is %v, want %v", d, i, j, x, v)
				}
				slope := math.Abs(by) * size / math.Abs(m) // how far the mean's error takes the step
				if x := at(got[0], j).f; !(math.Abs(x-(was-by)) <= unit*(math.Abs(was)+math.Abs(by))+8*kept*slope) {
					t.Fatalf("%v case %d: parameter %d is %v, want %v", d, i, j, x, was-by)
				}
			}
		}
	}
}

// TestAdamNaN has NaNs in the gradient, of other bits than those that are stored, and an infinity.
func TestAdamNaN(t *testing.T) {
	in := adamCase(tensor.F32, 3, tensor.Scalar(0.5), tensor.Scalar(int32(1)))
	grad, _ := tensor.Of[float32](in[3])
	grad[0], grad[1] = math.Float32frombits(0xffc12345), float32(math.Inf(1))
	for i, x := range irtest.Run(t, in, adamStep(ops.Adam{})) {
		v, _ := tensor.Of[float32](x)
		wantNaN := func(j int) {
			if got := math.Float32bits(v[j]); got != 0x7fc00000 {
				t.Errorf("output %d element %d is %#x, want the canonical NaN", i, j, got)
			}
		}
		wantNaN(0)
		if i == 0 {
			wantNaN(1)
		} else if !math.IsInf(float64(v[1]), 1) {
			t.Errorf("output %d element 1 is %v, want an infinity", i, v[1])
		}
		if v[2] != v[2] {
			t.Errorf("output %d element 2 is NaN", i)
		}
	}
}

func TestAdamFailures(t *testing.T) {
	f := func(shape ...int) ir.Spec { return spec(tensor.F32, shape...) }
	rate, step := spec(tensor.F64), spec(tensor.I32)
	for _, c := range []struct {
		in   []ir.Spec
		a    ops.Adam
		want string
	}{
		{[]ir.Spec{f(3), f(3), f(3), f(2), rate, step}, ops.Adam{}, "a gradient of float32 (2,), want float32 (3,) as the parameter"},
		{[]ir.Spec{f(3), f(3), f(3), spec(tensor.F16, 3), rate, step}, ops.Adam{}, "a gradient of float16 (3,), want float32 (3,)"},
		{[]ir.Spec{f(3), f(4), f(3), f(3), rate, step}, ops.Adam{}, "a mean of float32 (4,), want float32 (3,)"},
		{[]ir.Spec{spec(tensor.F16, 3), spec(tensor.F16, 3), f(3), spec(tensor.F16, 3), rate, step}, ops.Adam{}, "a mean of float16 (3,), want float32 (3,)"},
		{[]ir.Spec{spec(tensor.F64, 3), spec(tensor.F64, 3), f(3), spec(tensor.F64, 3), rate, step}, ops.Adam{}, "a mean of squares of float32 (3,), want float64 (3,)"},
		{[]ir.Spec{spec(tensor.I32, 3), f(3), f(3), spec(tensor.I32, 3), rate, step}, ops.Adam{}, "element type int32, want float16, bfloat16, float32 or float64"},
		{[]ir.Spec{f(3), f(3), f(3), f(3), spec(tensor.F64, 1), step}, ops.Adam{}, "a rate of float64 (1,), want a scalar of float32 or float64"},
		{[]ir.Spec{f(3), f(3), f(3), f(3), spec(tensor.F16), step}, ops.Adam{}, "a rate of float16 (), want a scalar"},
		{[]ir.Spec{f(3), f(3), f(3), f(3), rate, spec(tensor.I32, 1)}, ops.Adam{}, "a step of int32 (1,), want a scalar of int32 or int64"},
		{[]ir.Spec{f(3), f(3), f(3), f(3), rate, spec(tensor.F32)}, ops.Adam{}, "a step of float32 (), want a scalar"},
		{[]ir.Spec{f(3), f(3), f(3), f(3), rate, step}, ops.Adam{Beta1: 1}, "a Beta1 of 1, want one above 0 and below 1"},
		{[]ir.Spec{f(3), f(3), f(3), f(3), rate, step}, ops.Adam{Beta2: -0.5}, "a Beta2 of -0.5, want one above 0 and below 1"},
		{[]ir.Spec{f(3), f(3), f(3), f(3), rate, step}, ops.Adam{Epsilon: math.Inf(1)}, "an Epsilon of +Inf, want one above 0 and finite"},
		{[]ir.Spec{f(3), f(3), f(3), f(3), rate, step}, ops.Adam{Epsilon: math.NaN()}, "an Epsilon of NaN"},
	} {
		wantBuildError(t, c.in, adamStep(c.a), "adam", c.want)
	}
	specs := []ir.Spec{f(3), f(3), f(3), f(3), rate, step}
	wantBuildError(t, specs, func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		param, s := ops.Adam{}.Update(in[0], ops.AdamState{Mean: in[1], Square: in[1]}, in[3], in[4], in[5])
		return []*ir.Tensor{param, s.Mean, s.Square}
	}, "adam", "share memory, want what it changes each in its own")
	wantBuildError(t, specs, func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		param, s := ops.Adam{}.Update(in[0], ops.AdamState{Mean: in[1]}, in[3], in[4], in[5])
		return []*ir.Tensor{param, s.Mean, s.Square}
	}, "adam", "input 2 is nil")
	in := adamCase(tensor.F32, 3, tensor.Scalar(0.5), tensor.Scalar(int32(0)))
	wantRunError(t, in, adamStep(ops.Adam{}), "adam", "step 0: want 1 for the first")
}
