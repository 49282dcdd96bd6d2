package ops_test

import (
	"math/rand/v2"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

type compareOp struct {
	name  string
	build func(x, y *ir.Tensor) *ir.Tensor
	f     func(x, y float64) bool
	i     func(x, y int64) bool
}

var compareOps = []compareOp{
	{"equal", ops.Equal, func(x, y float64) bool { return x == y }, func(x, y int64) bool { return x == y }},
	{"not equal", ops.NotEqual, func(x, y float64) bool { return x != y }, func(x, y int64) bool { return x != y }},
	{"less", ops.Less, func(x, y float64) bool { return x < y }, func(x, y int64) bool { return x < y }},
	{"less or equal", ops.LessEqual, func(x, y float64) bool { return x <= y }, func(x, y int64) bool { return x <= y }},
	{"greater", ops.Greater, func(x, y float64) bool { return x > y }, func(x, y int64) bool { return x > y }},
	{"greater or equal", ops.GreaterEqual, func(x, y float64) bool { return x >= y }, func(x, y int64) bool { return x >= y }},
}

func truth(b bool) value {
	if b {
		return value{f: 1, i: 1}
	}
	return value{}
}

// few makes values few, so that some are equal.
func few(x *tensor.Tensor) *tensor.Tensor {
	return change(x, func(v value) value {
		if v.f > -1e4 && v.f < 1e4 {
			v.f = float64(int(v.f) % 3)
		}
		if v.i > -100 && v.i < 100 {
			v.i %= 3
		}
		return v
	})
}

// TestCompare holds comparisons against one pair of elements after the other.
func TestCompare(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 50 {
		shapes := randomShapes(r, 2)
		for _, d := range append([]tensor.DType{tensor.Bool}, numbers...) {
			ops := compareOps
			if d == tensor.Bool {
				ops = ops[:2]
			}
			x, y := few(random(r, d, shapes[0]...)), few(random(r, d, shapes[1]...))
			got, err := compute(func(in []*ir.Tensor) (out []*ir.Tensor) {
				for _, o := range ops {
					out = append(out, o.build(in[0], in[1]))
				}
				return out
			}, x, y)
			if err != nil {
				t.Fatal(err)
			}
			for i, o := range ops {
				same(t, o.name, got[i], naive(tensor.Bool, broadcastShape(shapes...), func(v []value) value {
					if d.IsFloat() {
						return truth(o.f(v[0].f, v[1].f))
					}
					return truth(o.i(v[0].i, v[1].i))
				}, x, y))
			}
		}
	}
}

// TestLogic holds not, and, or against one pair of elements after the other.
func TestLogic(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for range 50 {
		shapes := randomShapes(r, 2)
		x, y := random(r, tensor.Bool, shapes[0]...), random(r, tensor.Bool, shapes[1]...)
		got, err := compute(func(in []*ir.Tensor) (out []*ir.Tensor) {
			return []*ir.Tensor{ops.Not(in[0]), ops.And(in[0], in[1]), ops.Or(in[0], in[1])}
		}, x, y)
		if err != nil {
			t.Fatal(err)
		}
		out := broadcastShape(shapes...)
		same(t, "not", got[0], naive(tensor.Bool, shapes[0], func(v []value) value { return truth(v[0].i == 0) }, x))
		same(t, "and", got[1], naive(tensor.Bool, out, func(v []value) value {
			return truth(v[0].i+v[1].i == 2)
		}, x, y))
		same(t, "or", got[2], naive(tensor.Bool, out, func(v []value) value { return truth(v[0].i+v[1].i > 0) }, x, y))
	}
}

// TestSelect holds select against one element after the other, with all three broadcast.
func TestSelect(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for range 60 {
		shapes := randomShapes(r, 3)
		for _, d := range append([]tensor.DType{tensor.Bool}, numbers...) {
			c, x, y := random(r, tensor.Bool, shapes[0]...), random(r, d, shapes[1]...), random(r, d, shapes[2]...)
			got, err := compute(func(in []*ir.Tensor) (out []*ir.Tensor) {
				return []*ir.Tensor{ops.Select(in[0], in[1], in[2])}
			}, c, x, y)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "select", got[0], naive(d, broadcastShape(shapes...), func(v []value) value {
				if v[0].i != 0 {
					return v[1]
				}
				return v[2]
			}, c, x, y))
		}
	}
	small, _ := tensor.FromSlice([]int8{1, 2})
	other, _ := tensor.FromSlice([]int8{3, 4})
	c, _ := tensor.FromSlice([]bool{false, true})
	got, err := compute(func(in []*ir.Tensor) (out []*ir.Tensor) {
		return []*ir.Tensor{ops.Select(in[0], in[1], in[2])}
	}, c, small, other)
	want, _ := tensor.FromSlice([]int8{3, 2})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "select", got[0], want)
}

// TestCompareFailures has all errors of building.
func TestCompareFailures(t *testing.T) {
	var all []failure
	shapes := func(d tensor.DType) []ir.Spec { return []ir.Spec{spec(d, 2), spec(d, 3)} }
	const dimension = "dimension 0 of input 1, of shape (3,), is 3, and dimension 0 of input 0, of shape (2,), is 2: " +
		"shapes are matched from their last dimensions on, which must be equal, or one of them 1"
	const differ = "element types float32 and float64, want the same: Cast makes them so"
	two := []ir.Spec{spec(tensor.F32, 2), spec(tensor.F64, 2)}
	for k, o := range compareOps {
		build := func(in []*ir.Tensor) *ir.Tensor { return o.build(here(in)[0], in[1]) }
		taken := "want float16, bfloat16, float32, float64, int32, int64 or uint32"
		if k < 2 {
			taken = "want float16, bfloat16, float32, float64, int32, int64, uint32 or bool"
		} else {
			all = append(all, failure{o.name, []ir.Spec{spec(tensor.Bool), spec(tensor.Bool)}, build,
				"element type bool, " + taken})
		}
		all = append(all, failure{o.name, shapes(tensor.F32), build, dimension}, failure{o.name, two, build, differ},
			failure{o.name, []ir.Spec{spec(tensor.U8), spec(tensor.U8)}, build, "element type uint8, " + taken})
	}
	and := func(in []*ir.Tensor) *ir.Tensor { return ops.And(here(in)[0], in[1]) }
	or := func(in []*ir.Tensor) *ir.Tensor { return ops.Or(here(in)[0], in[1]) }
	not := func(in []*ir.Tensor) *ir.Tensor { return ops.Not(here(in)[0]) }
	choose := func(in []*ir.Tensor) *ir.Tensor { return ops.Select(here(in)[0], in[1], in[2]) }
	all = append(all,
		failure{"and", shapes(tensor.Bool), and, dimension},
		failure{"and", shapes(tensor.I32), and, "element type int32, want bool"},
		failure{"or", shapes(tensor.Bool), or, dimension}, failure{"or", two, or, differ},
		failure{"not", []ir.Spec{spec(tensor.F32)}, not, "element type float32, want bool"},
		failure{"select", []ir.Spec{spec(tensor.I32), spec(tensor.I32), spec(tensor.I32)}, choose,
			"the condition: element type int32, want bool"},
		failure{"select", append([]ir.Spec{spec(tensor.Bool)}, two...), choose, differ},
		failure{"select", []ir.Spec{spec(tensor.Bool, 2), spec(tensor.F32, 2), spec(tensor.F32, 3)}, choose,
			"dimension 0 of input 2, of shape (3,), is 3, and dimension 0 of input 0, of shape (2,), is 2: " +
				"shapes are matched from their last dimensions on, which must be equal, or one of them 1"},
		failure{"select", []ir.Spec{spec(tensor.Bool, 5, 1), spec(tensor.F32, 4), spec(tensor.F32, 7, 6, 4)}, choose,
			"dimension 1 of input 2, of shape (7, 6, 4), is 6, and dimension 0 of input 0, of shape (5, 1), is 5: " +
				"shapes are matched from their last dimensions on, which must be equal, or one of them 1"})
	checkFailures(t, all)
}

// TestSelectGradients holds gradients against differences, with broadcasting of each.
func TestSelectGradients(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	for _, s := range [][3]tensor.Shape{{{2, 3}, {2, 3}, {2, 3}}, {{3}, {2, 3}, {2, 1}}, {{2, 1}, {3}, {}},
		{{2, 3}, {}, {3}}} {
		c := random(r, tensor.Bool, s[0]...)
		irtest.CheckGradient(t, "select", []*tensor.Tensor{c, irtest.RandomFloats(s[1]), irtest.RandomFloats(s[2])},
			func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor { return ops.Select(in[0], in[1], in[2]) })
	}
}
