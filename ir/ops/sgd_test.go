package ops_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// sgdCase is what a step works on, in the order of sgdStep's inputs.
func sgdCase(d tensor.DType, n int, rate *tensor.Tensor) []*tensor.Tensor {
	r, kept := rand.New(rand.NewPCG(37, uint64(d))), tensor.F32
	if d == tensor.F64 {
		kept = tensor.F64
	}
	param, velocity, grad := zeros(spec(d, n)), zeros(spec(kept, n)), zeros(spec(d, n))
	for _, x := range []*tensor.Tensor{param, velocity, grad} {
		change(x, func(value) value { return value{f: 2*r.Float64() - 1} })
	}
	return []*tensor.Tensor{param, velocity, grad, rate}
}

// sgdStep is a step, of which what is changed is a copy; without a velocity its outputs are the parameter alone.
func sgdStep(s ops.SGD, moving bool) irtest.Build {
	return func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		param := ops.Reshape(in[0], in[0].Shape()...)
		if !moving {
			param, none := s.Update(param, nil, in[2], in[3])
			if none != nil {
				panic("a velocity of none")
			}
			return []*ir.Tensor{param}
		}
		param, velocity := s.Update(param, ops.Reshape(in[1], in[1].Shape()...), in[2], in[3])
		return []*ir.Tensor{param, velocity}
	}
}

// TestSGD holds a step against the formulas in float64, for every type, with and without momentum.
func TestSGD(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64} {
		for _, c := range []struct {
			s      ops.SGD
			moving bool
			rate   *tensor.Tensor
			rateV  float64
		}{
			{ops.SGD{}, false, tensor.Scalar(0.25), 0.25},
			{ops.SGD{}, true, tensor.Scalar(float32(0.5)), 0.5},
			{ops.SGD{Momentum: 0.9}, true, tensor.Scalar(0.25), 0.25},
			{ops.SGD{Momentum: 0.5, Nesterov: true}, true, tensor.Scalar(float32(0.5)), 0.5},
		} {
			t.Run(fmt.Sprintf("dtype=%v/%+v/velocity=%v", d, c.s, c.moving), func(t *testing.T) {
				in := sgdCase(d, 2500, c.rate)
				got := irtest.Run(t, in, sgdStep(c.s, c.moving))
				unit := map[tensor.DType]float64{tensor.F16: 0x1p-10, tensor.BF16: 0x1p-7, tensor.F32: 0x1p-21,
					tensor.F64: 0x1p-50}[d]
				kept := map[bool]float64{true: 0x1p-50, false: 0x1p-21}[d == tensor.F64]
				for j := range 2500 {
					g, was := at(in[2], j).f, at(in[0], j).f
					v := g
					if c.moving {
						v = c.s.Momentum*at(in[1], j).f + g
						if x := at(got[1], j).f; !(math.Abs(x-v) <= 2*kept) {
							t.Fatalf("velocity %d is %v, want %v", j, x, v)
						}
					}
					step := v
					if c.s.Nesterov {
						step = g + c.s.Momentum*v
					}
					if x, want := at(got[0], j).f, was-c.rateV*step; !(math.Abs(x-want) <= 2*unit) {
						t.Fatalf("parameter %d is %v, want %v", j, x, want)
					}
				}
			})
		}
	}
}

// TestSGDSteps has the numbers of three steps, from a velocity of zeros: the gradient is 1, 2, 4.
func TestSGDSteps(t *testing.T) {
	for _, c := range []struct {
		s               ops.SGD
		param, velocity []float64
	}{
		{ops.SGD{}, []float64{9.5, 8.5, 6.5}, []float64{1, 2, 4}},
		{ops.SGD{Momentum: 0.5}, []float64{9.5, 8.25, 5.625}, []float64{1, 2.5, 5.25}},
		{ops.SGD{Momentum: 0.5, Nesterov: true}, []float64{9.25, 7.625, 4.3125}, []float64{1, 2.5, 5.25}},
	} {
		in := []*tensor.Tensor{tensor.Scalar(10.0), tensor.Scalar(0.0), nil, tensor.Scalar(0.5)}
		for i, g := range []float64{1, 2, 4} {
			in[2] = tensor.Scalar(g)
			got := irtest.Run(t, in, sgdStep(c.s, true))
			in[0], in[1] = got[0], got[1]
			if p, v := at(got[0], 0).f, at(got[1], 0).f; p != c.param[i] || v != c.velocity[i] {
				t.Errorf("%+v: step %d: parameter %v, velocity %v, want %v, %v",
					c.s, i, p, v, c.param[i], c.velocity[i])
			}
		}
	}
}

// TestSGDNaN has a NaN in the gradient, of other bits than those that are stored, and an infinity.
func TestSGDNaN(t *testing.T) {
	for _, s := range []ops.SGD{{}, {Momentum: 0.5}, {Momentum: 0.5, Nesterov: true}} {
		in := sgdCase(tensor.F32, 3, tensor.Scalar(0.5))
		grad, _ := tensor.Of[float32](in[2])
		grad[0], grad[1] = math.Float32frombits(0xffc12345), float32(math.Inf(1))
		for _, moving := range []bool{false, true} {
			if !moving && s.Momentum > 0 {
				continue
			}
			for i, x := range irtest.Run(t, in, sgdStep(s, moving)) {
				v, _ := tensor.Of[float32](x)
				if got := math.Float32bits(v[0]); got != 0x7fc00000 {
					t.Errorf("%+v: output %d element 0 is %#x, want the canonical NaN", s, i, got)
				}
				if !math.IsInf(float64(v[1]), 2*i-1) || v[2] != v[2] {
					t.Errorf("%+v: output %d is %v", s, i, v)
				}
			}
		}
	}
}

func TestSGDFailures(t *testing.T) {
	f := func(shape ...int) ir.Spec { return spec(tensor.F32, shape...) }
	rate := spec(tensor.F64)
	for _, c := range []struct {
		in     []ir.Spec
		s      ops.SGD
		moving bool
		want   string
	}{
		{[]ir.Spec{f(3), f(3), f(2), rate}, ops.SGD{}, false, "a gradient of float32 (2,), want float32 (3,) as the parameter"},
		{[]ir.Spec{f(3), f(3), spec(tensor.F16, 3), rate}, ops.SGD{}, true, "a gradient of float16 (3,), want float32 (3,)"},
		{[]ir.Spec{f(3), f(4), f(3), rate}, ops.SGD{Momentum: 0.5}, true, "a velocity of float32 (4,), want float32 (3,)"},
		{[]ir.Spec{spec(tensor.F16, 3), spec(tensor.F16, 3), spec(tensor.F16, 3), rate}, ops.SGD{}, true, "a velocity of float16 (3,), want float32 (3,)"},
		{[]ir.Spec{spec(tensor.F64, 3), f(3), spec(tensor.F64, 3), rate}, ops.SGD{}, true, "a velocity of float32 (3,), want float64 (3,)"},
		{[]ir.Spec{spec(tensor.I32, 3), f(3), spec(tensor.I32, 3), rate}, ops.SGD{}, false, "element type int32, want float16, bfloat16, float32 or float64"},
		{[]ir.Spec{f(3), f(3), f(3), spec(tensor.F64, 1)}, ops.SGD{}, true, "a rate of float64 (1,), want a scalar of float32 or float64"},
		{[]ir.Spec{f(3), f(3), f(3), spec(tensor.F16)}, ops.SGD{}, false, "a rate of float16 (), want a scalar"},
		{[]ir.Spec{f(3), f(3), f(3), rate}, ops.SGD{Momentum: 1}, true, "a Momentum of 1, want one from 0 on and below 1"},
		{[]ir.Spec{f(3), f(3), f(3), rate}, ops.SGD{Momentum: -0.5}, true, "a Momentum of -0.5, want one from 0 on and below 1"},
		{[]ir.Spec{f(3), f(3), f(3), rate}, ops.SGD{Momentum: math.NaN()}, true, "a Momentum of NaN"},
		{[]ir.Spec{f(3), f(3), f(3), rate}, ops.SGD{Nesterov: true}, true, "a Momentum of 0 with Nesterov, want one above 0"},
		{[]ir.Spec{f(3), f(3), f(3), rate}, ops.SGD{Momentum: 0.5}, false, "a Momentum of 0.5 and no velocity"},
	} {
		wantBuildError(t, c.in, sgdStep(c.s, c.moving), "sgd", c.want)
	}
	wantBuildError(t, []ir.Spec{f(3), f(3), f(3), rate}, func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		param, velocity := ops.SGD{Momentum: 0.5}.Update(in[0], in[0], in[2], in[3])
		return []*ir.Tensor{param, velocity}
	}, "sgd", "share memory, want what it changes each in its own")
	wantBuildError(t, []ir.Spec{f(3), f(3), f(3), rate}, func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		param, velocity := ops.SGD{Momentum: 0.5}.Update(in[0], in[1], nil, in[3])
		return []*ir.Tensor{param, velocity}
	}, "sgd", "input 2 is nil")
}
