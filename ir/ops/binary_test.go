package ops_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

type binaryOp struct {
	name   string
	build  func(x, y *ir.Tensor) *ir.Tensor
	scalar func(x *ir.Tensor, v float64) *ir.Tensor
	f32    func(x, y float32) float32
	f64    func(x, y float64) float64
	i64    func(x, y int64) int64
}

var binaryOps = []binaryOp{
	{"add", ops.Add, ops.AddScalar,
		func(x, y float32) float32 { return x + y }, func(x, y float64) float64 {
			return x + y
		}, func(x, y int64) int64 { return x + y }},
	{"sub", ops.Sub, ops.SubScalar,
		func(x, y float32) float32 { return x - y }, func(x, y float64) float64 {
			return x - y
		}, func(x, y int64) int64 { return x - y }},
	{"mul", ops.Mul, ops.MulScalar,
		func(x, y float32) float32 { return x * y }, func(x, y float64) float64 {
			return x * y
		}, func(x, y int64) int64 { return x * y }},
	{"div", ops.Div, ops.DivScalar,
		func(x, y float32) float32 { return x / y }, func(x, y float64) float64 {
			return x / y
		}, func(x, y int64) int64 { return x / y }},
}

// of is the operation on one pair of elements.
func (o binaryOp) of(d tensor.DType) func(v []value) value {
	return func(v []value) value {
		switch {
		case d == tensor.F64:
			return value{f: o.f64(v[0].f, v[1].f)}
		case d.IsFloat():
			return value{f: float64(o.f32(float32(v[0].f), float32(v[1].f)))}
		}
		return value{i: o.i64(v[0].i, v[1].i)}
	}
}

// noZero makes integers good to divide by.
func noZero(x *tensor.Tensor) *tensor.Tensor {
	if !x.DType().IsInteger() {
		return x
	}
	return change(x, func(v value) value {
		if v.i == 0 {
			v.i = 3
		}
		return v
	})
}

// TestBinary holds add, sub, mul and div against one pair of elements after the other, for shapes of all kinds.
func TestBinary(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	fixed := [][2]tensor.Shape{
		{{2500}, {2500}}, {{3, 700}, {700}}, {{700}, {3, 700}}, {{2, 1500}, {1500}}, {{2500}, {}}, {{}, {2500}}, {{}, {}},
		{{300, 10}, {10}}, {{300, 10}, {300, 1}}, {{1, 10}, {300, 1}}, {{1, 2500}, {2500}}, {{2, 3, 400}, {2, 1, 400}},
		{{2, 2048}, {2, 1}}, {{2, 600}, {2, 1}}, {{0}, {1}}, {{0, 3}, {3}}, {{1, 1}, {1}},
	}
	for k := range len(fixed) + 60 {
		shapes := randomShapes(r, 2)
		if k < len(fixed) {
			shapes = fixed[k][:]
		}
		for _, d := range numbers {
			x, y := random(r, d, shapes[0]...), noZero(random(r, d, shapes[1]...))
			got, err := compute(func(in []*ir.Tensor) (out []*ir.Tensor) {
				for _, o := range binaryOps {
					out = append(out, o.build(in[0], in[1]))
				}
				return out
			}, x, y)
			if err != nil {
				t.Fatalf("%v %v: %v", d, shapes, err)
			}
			for i, o := range binaryOps {
				same(t, o.name, got[i], naive(d, broadcastShape(shapes[0], shapes[1]), o.of(d), x, y))
			}
		}
	}
}

// TestBinaryOfOne has both operands be one tensor.
func TestBinaryOfOne(t *testing.T) {
	x, _ := tensor.FromSlice([]float32{1, 2, 3})
	got, err := compute(func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Mul(in[0], in[0])} }, x)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := tensor.FromSlice([]float32{1, 4, 9})
	same(t, "mul", got[0], want)
}

// TestScalar holds the operations with a number against those with a tensor of the number, rounded once.
func TestScalar(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, d := range numbers {
		for _, v := range []float64{3, 7, 0.1, -2.5, 0, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8 + 0x1p-40} {
			if d.IsInteger() && (v != float64(int(v)) || v == 0) {
				continue
			}
			for _, n := range []int{0, 5, 2500} {
				x := random(r, d, n)
				number, _ := tensor.New(d)
				set(number, 0, value{f: v, i: int64(v)})
				switch {
				case d == tensor.F16 && v == 1+0x1p-11+0x1p-40:
					of[tensor.Float16](number)[0] = 0x3c01 // above the tie that float32 would make of it
				case d == tensor.BF16 && v == 1+0x1p-8+0x1p-40:
					of[tensor.BFloat16](number)[0] = 0x3f81
				}
				got, err := compute(func(in []*ir.Tensor) (out []*ir.Tensor) {
					for _, o := range binaryOps {
						out = append(out, o.scalar(in[0], v))
					}
					return out
				}, x)
				if err != nil {
					t.Fatalf("%v %v: %v", d, v, err)
				}
				for i, o := range binaryOps {
					same(t, o.name+" scalar", got[i], naive(d, x.Shape(), o.of(d), x, number))
				}
			}
		}
	}
}

// TestBinaryFailures has all errors of building.
func TestBinaryFailures(t *testing.T) {
	var all []failure
	for _, o := range binaryOps {
		all = append(all,
			failure{o.name, []ir.Spec{spec(tensor.F32, 2, 3), spec(tensor.F32, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.build(here(in)[0], in[1])
			},
				"dimension 0 of input 1, of shape (2,), is 2, and dimension 1 of input 0, of shape (2, 3), is 3: " +
					"shapes are matched from their last dimensions on, which must be equal, or one of them 1"},
			failure{o.name, []ir.Spec{spec(tensor.F32, 3, 2), spec(tensor.F32, 4, 2)},
				func(in []*ir.Tensor) *ir.Tensor {
					return o.build(here(in)[0], in[1])
				},
				"dimension 0 of input 1, of shape (4, 2), is 4, and dimension 0 of input 0, of shape (3, 2), is 3: " +
					"shapes are matched from their last dimensions on, which must be equal, or one of them 1"},
			failure{o.name, []ir.Spec{spec(tensor.F32, 0), spec(tensor.F32, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.build(here(in)[0], in[1])
			},
				"dimension 0 of input 1, of shape (2,), is 2, and dimension 0 of input 0, of shape (0,), is 0: " +
					"shapes are matched from their last dimensions on, which must be equal, or one of them 1"},
			failure{o.name, []ir.Spec{spec(tensor.F32, 2), spec(tensor.F64, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.build(here(in)[0], in[1])
			},
				"element types float32 and float64, want the same: Cast makes them so"},
			failure{o.name, []ir.Spec{spec(tensor.I8, 2), spec(tensor.I8, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.build(here(in)[0], in[1])
			},
				"element type int8, want float16, bfloat16, float32, float64, int32, int64 or uint32"},
			failure{o.name, []ir.Spec{spec(tensor.Bool, 2), spec(tensor.Bool, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.build(here(in)[0], in[1])
			},
				"element type bool, want float16, bfloat16, float32, float64, int32, int64 or uint32"},
			failure{o.name + " scalar", []ir.Spec{spec(tensor.U8, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.scalar(here(in)[0], 1.5)
			},
				"element type uint8, want float16, bfloat16, float32, float64, int32, int64 or uint32"},
			failure{o.name + " scalar", []ir.Spec{spec(tensor.I32, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.scalar(here(in)[0], 1.5)
			},
				"the number 1.5, want one that int32 can hold"},
			failure{o.name + " scalar", []ir.Spec{spec(tensor.I32, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.scalar(here(in)[0], 1<<31)
			},
				"the number 2.147483648e+09, want one that int32 can hold"},
			failure{o.name + " scalar", []ir.Spec{spec(tensor.I64, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.scalar(here(in)[0], 1<<63)
			},
				"the number 9.223372036854776e+18, want one that int64 can hold"},
			failure{o.name + " scalar", []ir.Spec{spec(tensor.U32, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.scalar(here(in)[0], -1)
			},
				"the number -1, want one that uint32 can hold"},
			failure{o.name + " scalar", []ir.Spec{spec(tensor.F16, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.scalar(here(in)[0], 65520)
			},
				"the number 65520, want one that float16 can hold: it would become infinite"},
			failure{o.name + " scalar", []ir.Spec{spec(tensor.F32, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.scalar(here(in)[0], 1e300)
			},
				"the number 1e+300, want one that float32 can hold: it would become infinite"},
			failure{o.name + " scalar", []ir.Spec{spec(tensor.BF16, 2)}, func(in []*ir.Tensor) *ir.Tensor {
				return o.scalar(here(in)[0], 1e300)
			},
				"the number 1e+300, want one that bfloat16 can hold: it would become infinite"},
		)
	}
	all = append(all,
		failure{"div scalar", []ir.Spec{spec(tensor.I32, 2)}, func(in []*ir.Tensor) *ir.Tensor {
			return ops.DivScalar(here(in)[0], 0)
		},
			"division of integers by the number 0"},
		failure{"add", []ir.Spec{spec(tensor.F32, 2)}, func(in []*ir.Tensor) *ir.Tensor {
			return ops.Add(here(in)[0], nil)
		}, "input 1 is nil"},
	)
	checkFailures(t, all)
}

// TestTooLarge has two tensors that are broadcast to more elements than an int can count.
func TestTooLarge(t *testing.T) {
	p := ir.New(1)
	const n = 1 << (strconv.IntSize/2 - 1)
	p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.Add(ops.Mul(in[0], in[1]), in[2])}
	}, spec(tensor.F32, n, 1, 1), spec(tensor.F32, n, 1), spec(tensor.F32, n))
	if err := p.Err(); err == nil ||
		!strings.Contains(err.Error(), "ir: add at binary_test.go:") &&
			!strings.Contains(err.Error(), "ir: mul at binary_test.go:") {
		t.Errorf("error %v, want one of add or mul", err)
	}
}

// TestIntegerDivision has divisions by 0, which fail the run, and that of the least integer by -1, which wraps.
func TestIntegerDivision(t *testing.T) {
	for _, d := range []tensor.DType{tensor.I32, tensor.I64, tensor.U32} {
		x, _ := tensor.New(d, 2, 3)
		y, _ := tensor.New(d, 3)
		set(y, 0, value{i: 1})
		set(y, 2, value{i: 1})
		_, err := compute(func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Div(in[0], in[1])} }, x, y)
		var e *ir.RunError
		if !errors.As(err, &e) || e.Op != "div" || !strings.Contains(err.Error(), "binary_test.go") ||
			!strings.HasSuffix(err.Error(), ": division by 0: element 1 of the 3 of the divisor") {
			t.Errorf("%v: error %v, want a division by 0 of element 1", d, err)
		}
		set(y, 1, value{i: -1})
		set(x, 1, value{i: -1 << 63})
		if d == tensor.I32 {
			set(x, 1, value{i: -1 << 31})
		}
		got, err := compute(func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Div(in[0], in[1])} }, x, y)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := at(got[0], 1), at(x, 1); d != tensor.U32 && a != b {
			t.Errorf("%v: the least divided by -1 is %v, want %v", d, a, b)
		}
		// Nothing is divided where nothing is.
		none, _ := tensor.New(d, 0, 1)
		zero, _ := tensor.New(d, 1)
		if _, err := compute(func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.Div(in[0], in[1])}
		}, none, zero); err != nil {
			t.Error(err)
		}
	}
}

// TestBinaryGradients holds gradients against differences, with broadcasting of each kind.
func TestBinaryGradients(t *testing.T) {
	shapes := [][2]tensor.Shape{{{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{3}, {2, 3}}, {{2, 3}, {2, 1}}, {{2, 1}, {1, 3}},
		{{2, 3}, {}}, {{2, 1, 2}, {3, 1}}}
	for _, o := range binaryOps {
		for _, s := range shapes {
			irtest.CheckGradient(t, o.name, []*tensor.Tensor{irtest.RandomFloats(s[0]), irtest.RandomFloats(s[1])},
				func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor { return o.build(in[0], in[1]) })
		}
		irtest.CheckGradient(t, o.name+" scalar", []*tensor.Tensor{irtest.RandomFloats(tensor.Shape{2, 3})},
			func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor { return o.scalar(in[0], 3) })
		irtest.CheckGradient(t, o.name+" with itself", []*tensor.Tensor{irtest.RandomFloats(tensor.Shape{3})},
			func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor { return o.build(in[0], in[0]) })
	}
}
