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

type unaryOp struct {
	name     string
	build    func(x *ir.Tensor) *ir.Tensor
	f64      func(x float64) float64
	i64      func(x int64) int64 // nil: takes no integers
	ulps     float64             // that the second computation may be off by, in float64
	positive bool                // of what the gradient can be checked for
}

var unaryOps = []unaryOp{
	{name: "neg", build: ops.Neg, f64: func(x float64) float64 { return -1 * x }, i64: func(x int64) int64 { return -x }},
	{name: "abs", build: ops.Abs, f64: math.Abs, i64: func(x int64) int64 { return max(x, -x) }},
	{name: "square", build: ops.Square, f64: func(x float64) float64 { return x * x }, i64: func(x int64) int64 { return x * x }},
	{name: "relu", build: ops.Relu, f64: func(x float64) float64 { return max(x, 0) }, i64: func(x int64) int64 { return max(x, 0) }},
	{name: "tanh", build: ops.Tanh, ulps: 4, f64: func(x float64) float64 {
		if math.Abs(x) > 30 {
			return math.Copysign(1, x)
		}
		return math.Expm1(2*x) / (math.Expm1(2*x) + 2)
	}},
	{name: "sigmoid", build: ops.Sigmoid, ulps: 8, f64: func(x float64) float64 {
		if x < 0 {
			return math.Exp(x) / (1 + math.Exp(x))
		}
		return 1 - math.Exp(-x)/(1+math.Exp(-x))
	}},
	{name: "softplus", build: ops.Softplus, ulps: 8, f64: func(x float64) float64 {
		return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	}},
	{name: "gelu", build: ops.Gelu, ulps: 8, f64: func(x float64) float64 {
		switch {
		case x > 40:
			return x
		case x < -40:
			return 0
		case x > 0:
			return x * (1 + math.Erf(x*math.Sqrt(0.5))) / 2
		}
		return x * math.Erfc(x*-math.Sqrt(0.5)) / 2
	}},
	// x*log2(e) is rounded
	{name: "exp", build: ops.Exp, ulps: 40, f64: func(x float64) float64 { return math.Exp2(x * math.Log2E) }},
	{name: "log", build: ops.Log, ulps: 4, positive: true, f64: func(x float64) float64 {
		if x > 0.5 && x < 2 {
			return math.Log1p(x - 1)
		}
		return math.Log2(x) * math.Ln2
	}},
	{name: "sqrt", build: ops.Sqrt, positive: true, f64: func(x float64) float64 {
		if x == 0 || x != x || math.IsInf(x, 1) {
			return x
		}
		return math.Exp2(math.Log2(x) / 2)
	}, ulps: 200},
}

// near reports whether got is want, or as near as so many units in the last place of float64 and half a unit of its
// own type.
func near(d tensor.DType, got, want, ulps float64) bool {
	bits := map[tensor.DType]int{tensor.F16: 11, tensor.BF16: 8, tensor.F32: 24, tensor.F64: 53}[d]
	least := map[tensor.DType]float64{tensor.F16: 0x1p-24, tensor.BF16: 0x1p-133, tensor.F32: 0x1p-149,
		tensor.F64: 0}[d]
	if got == want || got != got && want != want {
		return true
	}
	if most := map[tensor.DType]float64{tensor.F16: 65504, tensor.BF16: 0x1.fep127,
		tensor.F32: math.MaxFloat32}[d]; most > 0 && math.Abs(want) > most {
		return math.Abs(got) >= most
	}
	tolerance := math.Abs(want) * ulps * 0x1p-52
	if d != tensor.F64 {
		tolerance += math.Abs(want)*math.Ldexp(1.001, -bits) + least/2
	}
	return math.Abs(got-want) <= tolerance
}

// TestUnary holds the functions against other ways to compute them.
func TestUnary(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	types := append([]tensor.DType{tensor.I32, tensor.I64}, floats...)
	for _, d := range types {
		for _, o := range unaryOps {
			if d.IsInteger() && o.i64 == nil {
				continue
			}
			for _, n := range []int{0, 1, 7, 1024, 2500} {
				x := random(r, d, n)
				got, err := compute(func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{o.build(in[0])} }, x)
				if err != nil {
					t.Fatal(err)
				}
				if o.ulps == 0 {
					same(t, o.name, got[0], naive(d, x.Shape(), func(v []value) value {
						v[0].f = o.f64(v[0].f)
						if o.i64 != nil {
							v[0].i = o.i64(v[0].i)
						}
						return v[0]
					}, x))
					continue
				}
				for i := range n {
					v := at(x, i).f
					ulps := o.ulps
					if o.name == "gelu" {
						ulps += 2 * v * v // both round the argument of erfc(v), which falls as exp(-v*v)
					}
					if a, b := at(got[0], i).f, o.f64(v); !near(d, a, b, ulps) {
						t.Errorf("%s of %v %v is %v, want %v", o.name, d, v, a, b)
					}
				}
			}
		}
	}
}

// TestUnaryNumbers has values that are known: of gelu, Φ from tables of the normal distribution.
func TestUnaryNumbers(t *testing.T) {
	x, _ := tensor.FromSlice([]float64{-1, 0, 1, 3, 40, math.Inf(1), math.Inf(-1)})
	inf := math.Inf(1)
	for _, o := range []struct {
		name  string
		build func(*ir.Tensor) *ir.Tensor
		want  []float64
	}{
		{"gelu", ops.Gelu, []float64{-0.158655253931457, 0, 0.841344746068543, 2.99595030590511, 40, inf, 0}},
		{"tanh", ops.Tanh, []float64{-0.761594155955765, 0, 0.761594155955765, 0.995054753686730, 1, 1, -1}},
		{"sigmoid", ops.Sigmoid, []float64{0.268941421369995, 0.5, 0.731058578630005, 0.952574126822433, 1, 1, 0}},
		{"exp", ops.Exp, []float64{0.367879441171442, 1, 2.718281828459045, 20.08553692318767, 235385266837019985, inf, 0}},
		{"log", ops.Log, []float64{math.NaN(), -inf, 0, 1.09861228866811, 3.68887945411394, inf, math.NaN()}},
		{"sqrt", ops.Sqrt, []float64{math.NaN(), 0, 1, 1.73205080756888, 6.32455532033676, inf, math.NaN()}},
		{"relu", ops.Relu, []float64{0, 0, 1, 3, 40, inf, 0}},
	} {
		got, err := compute(func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{o.build(in[0])} }, x)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range o.want {
			if v := at(got[0], i).f; !(math.Abs(v-want) <= 1e-14*math.Abs(want)) && v != want &&
				!(v != v && want != want) {
				t.Errorf("%s of %v is %v, want %v", o.name, at(x, i).f, v, want)
			}
		}
	}
}

// TestUnaryFailures has all errors of building.
func TestUnaryFailures(t *testing.T) {
	var all []failure
	for _, o := range unaryOps {
		want, refused := "want float16, bfloat16, float32 or float64", tensor.I32
		if o.i64 != nil {
			want, refused = "want float16, bfloat16, float32, float64, int32 or int64", tensor.U32
		}
		build := func(in []*ir.Tensor) *ir.Tensor { return o.build(here(in)[0]) }
		all = append(all,
			failure{o.name, []ir.Spec{spec(refused, 2)}, build, "element type " + refused.String() + ", " + want},
			failure{o.name, []ir.Spec{spec(tensor.Bool, 2)}, build, "element type bool, " + want},
			failure{o.name, []ir.Spec{spec(tensor.U64, 2)}, build, "element type uint64, " + want})
	}
	checkFailures(t, all)
}

// TestUnaryGradients holds gradients against differences.
func TestUnaryGradients(t *testing.T) {
	for _, o := range unaryOps {
		x := irtest.RandomFloats(tensor.Shape{3, 5})
		if o.positive {
			change(x, func(v value) value { return value{f: math.Abs(v.f)} })
		}
		irtest.CheckGradient(t, o.name, []*tensor.Tensor{x}, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
			return o.build(in[0])
		})
	}
}

// gradient runs f of inputs forward and back, with that gradient of its result.
func gradient(t *testing.T, f func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor, grad *tensor.Tensor,
	inputs ...*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	got, err := compute(func(in []*ir.Tensor) []*ir.Tensor {
		main := in[0].Graph()
		var specs []ir.Input
		for _, x := range in[1:] {
			specs = append(specs, x)
		}
		graph := main.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{f(g, in)}
		}, specs...)
		info := ir.Autodiff(graph)
		by := info.By(main.CallWithInfo(graph, nil, in[1:]...))
		by[info.Grads[0]] = in[0]
		return main.CallWithInfo(info.Graph, by).Outputs()
	}, append([]*tensor.Tensor{grad}, inputs...)...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestSlopes has gradients where a function bends or ends, in all types of floats.
func TestSlopes(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name  string
		build func(*ir.Tensor) *ir.Tensor
		x     []float64
		want  []float64 // of the gradient 3
	}{
		{"relu", ops.Relu, []float64{-2, 0, math.Copysign(0, -1), 0x1p-24, 2, inf, -inf, nan}, []float64{0, 0, 0, 3, 3, 3, 0, 3}},
		{"abs", ops.Abs, []float64{-2, 0, math.Copysign(0, -1), 2, inf, -inf, nan}, []float64{-3, 0, 0, 3, 3, -3, nan}},
		{"gelu", ops.Gelu, []float64{0, inf, -inf, nan, 50, -50}, []float64{1.5, 3, 0, nan, 3, 0}},
		{"tanh", ops.Tanh, []float64{0, inf, -inf, nan}, []float64{3, 0, 0, nan}},
		{"sigmoid", ops.Sigmoid, []float64{0, inf, -inf, nan}, []float64{0.75, 0, 0, nan}},
		{"sqrt", ops.Sqrt, []float64{0, 4, -1}, []float64{inf, 0.75, nan}},
		{"log", ops.Log, []float64{0, 4}, []float64{inf, 0.75}},
		{"exp", ops.Exp, []float64{0, -inf}, []float64{3, 0}},
		{"square", ops.Square, []float64{0.5, -4}, []float64{3, -24}},
	} {
		for _, d := range floats {
			x, _ := tensor.New(d, len(c.x))
			grad, _ := tensor.New(d, len(c.x))
			want, _ := tensor.New(d, len(c.x))
			for i := range c.x {
				set(x, i, value{f: c.x[i]})
				set(grad, i, value{f: 3})
				set(want, i, value{f: c.want[i]})
			}
			got := gradient(t, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor { return c.build(in[0]) }, grad, x)
			same(t, c.name, got[0], want)
		}
	}
}

// TestSumTo holds the gradients of what is broadcast against sums, of small integers, in all types of floats.
func TestSumTo(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 60 {
		shapes := randomShapes(r, 2)
		out := broadcastShape(shapes...)
		for _, d := range floats {
			var in []*tensor.Tensor
			for _, s := range shapes {
				x, _ := tensor.New(d, s...)
				in = append(in, x)
			}
			grad, _ := tensor.New(d, out...)
			change(grad, func(value) value { return value{f: float64(r.IntN(3) - 1)} })
			got := gradient(t, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
				return ops.Add(in[0], in[1])
			}, grad, in...)
			for k, x := range in {
				want, _ := tensor.New(d, x.Shape()...)
				for i := range grad.Len() {
					j := indexIn(x.Shape(), out, i)
					set(want, j, value{f: at(want, j).f + at(grad, i).f})
				}
				same(t, "gradient of add", got[k], want)
			}
		}
	}
}

// TestSumToRoundsOnce sums 5000 ones: a float16 that is rounded at each would stay at 2048, a bfloat16 at 256.
func TestSumToRoundsOnce(t *testing.T) {
	for d, want := range map[tensor.DType]float64{tensor.F16: 5000, tensor.BF16: 4992} {
		for _, s := range []tensor.Shape{{1, 5000}, {5000, 1}} {
			x, _ := tensor.New(d, 1, 1)
			y, _ := tensor.New(d, s...)
			grad, _ := tensor.New(d, s...)
			change(grad, func(value) value { return value{f: 1} })
			got := gradient(t, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
				return ops.Add(in[0], in[1])
			}, grad, x, y)
			if v := at(got[0], 0).f; v != want {
				t.Errorf("%v %v: the sum is %v, want %v", d, s, v, want)
			}
		}
	}
}

// TestGradientOfGradient holds the gradient of a gradient of what is broadcast against differences.
func TestGradientOfGradient(t *testing.T) {
	inputs := []*tensor.Tensor{irtest.RandomFloats(tensor.Shape{2, 3}), irtest.RandomFloats(tensor.Shape{3}),
		irtest.RandomFloats(tensor.Shape{2, 3})}
	irtest.CheckGradient(t, "gradient of mul", inputs, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
		inner := g.Program().CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.Mul(in[0], in[1])}
		}, in[0], in[1])
		info := ir.Autodiff(inner)
		by := info.By(g.CallWithInfo(inner, nil, in[:2]...))
		by[info.Grads[0]] = in[2]
		return g.CallWithInfo(info.Graph, by).Outputs()[1]
	})
}
