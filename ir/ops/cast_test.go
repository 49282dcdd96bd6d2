package ops_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// exactly is what an element is, not NaN nor infinite, to the last bit.
func exactly(x *tensor.Tensor, i int) *big.Float {
	if x.DType() == tensor.I64 {
		return new(big.Float).SetPrec(2000).SetInt64(at(x, i).i)
	}
	return new(big.Float).SetPrec(2000).SetFloat64(at(x, i).f)
}

// floatBits is the float whose bits, without the sign, are b. An infinity has the value that would come after the
// largest, which rounding takes it for.
func floatBits(d tensor.DType, b uint64) *big.Float {
	var f float64
	switch d {
	case tensor.F16:
		if b == 0x7c00 {
			return big.NewFloat(65536)
		}
		f = float64(tensor.Float16(b).Float32())
	case tensor.BF16:
		if b == 0x7f80 {
			return big.NewFloat(0x1p128)
		}
		f = float64(tensor.BFloat16(b).Float32())
	case tensor.F32:
		if b == 0x7f800000 {
			return big.NewFloat(0x1p128)
		}
		f = float64(math.Float32frombits(uint32(b)))
	default:
		f = math.Float64frombits(b)
	}
	return big.NewFloat(f)
}

// nearest is the bits, without the sign, of the float nearest to a number that is not negative, of two the even one,
// found by halving.
func nearest(d tensor.DType, v *big.Float) uint64 {
	lo, hi := uint64(0), map[tensor.DType]uint64{tensor.F16: 0x7c00, tensor.BF16: 0x7f80, tensor.F32: 0x7f800000,
		tensor.F64: 0x7fefffffffffffff}[d]
	if v.Cmp(floatBits(d, hi)) >= 0 {
		return hi
	}
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; v.Cmp(floatBits(d, mid)) >= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	exact := func() *big.Float { return new(big.Float).SetPrec(2000) }
	switch below, above := exact().Sub(v, floatBits(d, lo)), exact().Sub(floatBits(d, hi), v); below.Cmp(above) {
	case -1:
		return lo
	case 1:
		return hi
	}
	return lo + lo&1
}

// castNaive is what an element is to be in another type.
func castNaive(x *tensor.Tensor, i int, out *tensor.Tensor) {
	from, to := x.DType(), out.DType()
	v := at(x, i)
	switch {
	case from == to:
		copy(out.Bytes()[i*to.Size():], x.Bytes()[i*to.Size():(i+1)*to.Size()])
	case to == tensor.Bool:
		set(out, i, truth(v.f != 0 || v.i != 0))
	case to.IsFloat():
		if from.IsFloat() && (v.f != v.f || math.IsInf(v.f, 0)) {
			set(out, i, v)
			return
		}
		e := exactly(x, i)
		bits := nearest(to, new(big.Float).Abs(e))
		if e.Signbit() {
			bits |= 1 << (8*to.Size() - 1)
		}
		switch to {
		case tensor.F16:
			of[tensor.Float16](out)[i] = tensor.Float16(bits)
		case tensor.BF16:
			of[tensor.BFloat16](out)[i] = tensor.BFloat16(bits)
		case tensor.F32:
			of[float32](out)[i] = math.Float32frombits(uint32(bits))
		default:
			of[float64](out)[i] = math.Float64frombits(bits)
		}
	case from.IsFloat():
		lo := map[tensor.DType]int64{tensor.I32: math.MinInt32, tensor.I64: math.MinInt64}[to]
		hi := map[tensor.DType]int64{tensor.I32: math.MaxInt32, tensor.I64: math.MaxInt64,
			tensor.U32: math.MaxUint32}[to]
		if v.f != v.f {
			return
		}
		if math.IsInf(v.f, 0) {
			v.f = math.Copysign(1e30, v.f)
		}
		n, _ := new(big.Float).SetFloat64(v.f).Int(nil)
		switch {
		case n.Cmp(big.NewInt(lo)) < 0:
			set(out, i, value{i: lo})
		case n.Cmp(big.NewInt(hi)) > 0:
			set(out, i, value{i: hi})
		default:
			set(out, i, value{i: n.Int64()})
		}
	default:
		set(out, i, v)
	}
}

// TestCast holds all casts against exact arithmetic, among them numbers that float32 would make ties of.
func TestCast(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 20))
	types := append([]tensor.DType{tensor.Bool}, numbers...)
	special := []float64{1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-40, 1 + 3*0x1p-11 - 0x1p-40, 1 + 0x1p-8 + 0x1p-40,
		1 + 3*0x1p-8 - 0x1p-40, 65519.99999999, 65520,
		0x1p-25, 0x1p-25 + 0x1p-70, 0x1p-134, 0x1p-134 + 0x1p-170, 0x1p-150 + 0x1p-190, math.MaxFloat64,
		math.SmallestNonzeroFloat64,
		math.MaxFloat32, 0x1.ffffffp127, 0x1.fefp127, 0x1.ffp127, 0x1p128, 2147483647.5, 2147483648, -2147483648.5,
		-2147483649, 0x1p63, -0x1p63, 4294967295.5, 0x1p32, -0.5, -1,
		math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1)}
	integers := []int64{1<<24 + 1, 1<<25 - 1, 1<<32 - 1, 1 << 32, math.MinInt64, math.MaxInt64, math.MinInt32,
		math.MaxInt32, 65519, 65520,
		1<<40 + 1<<32, 1<<40 + 1<<32 + 1, 1<<40 + 3<<32 - 1, 1<<24 + 1<<16, 1<<30 + 1<<22, 1<<30 + 1<<22 + 1,
		1<<30 + 3<<22 - 1, -1<<30 - 1<<22 - 1, 1<<53 + 1}
	for _, from := range types {
		for _, to := range types {
			x := random(r, from, 1200)
			for i := range min(len(special), len(integers), x.Len()) {
				set(x, i, value{i: integers[i] & map[bool]int64{true: 1, false: -1}[from == tensor.Bool],
					f: special[i]})
			}
			for i, v := range special {
				if from.IsFloat() {
					set(x, 100+2*i, value{f: v})
					set(x, 101+2*i, value{f: -v})
				}
			}
			got, err := compute(func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Cast(in[0], to)} }, x)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := tensor.New(to, x.Len())
			for i := range x.Len() {
				castNaive(x, i, want)
				if from.IsFloat() && to.IsFloat() && at(x, i).f != at(x, i).f { // any NaN will do
					if v := at(got[0], i).f; v == v {
						t.Errorf("%v to %v: NaN becomes %v", from, to, v)
					}
					copy(want.Bytes()[i*to.Size():], got[0].Bytes()[i*to.Size():(i+1)*to.Size()])
				}
			}
			same(t, from.String()+" to "+to.String(), got[0], want)
		}
	}
}

// TestCastCopies has a cast to the same type, which is not to change with what it was made of.
func TestCastCopies(t *testing.T) {
	x, _ := tensor.FromSlice([]float32{1, 2})
	got, err := compute(func(in []*ir.Tensor) []*ir.Tensor {
		same := ops.Cast(in[0], tensor.F32)
		return []*ir.Tensor{ops.Accumulate(in[0], same), same}
	}, x)
	if err != nil {
		t.Fatal(err)
	}
	twice, _ := tensor.FromSlice([]float32{2, 4})
	same(t, "accumulate", got[0], twice)
	same(t, "cast", got[1], x)
}

func TestCastFailures(t *testing.T) {
	const want = "want float16, bfloat16, float32, float64, int32, int64, uint32 or bool"
	checkFailures(t, []failure{
		{"cast", []ir.Spec{spec(tensor.I8, 2)}, func(in []*ir.Tensor) *ir.Tensor { return ops.Cast(here(in)[0], tensor.F32) }, "element type int8, " + want},
		{"cast", []ir.Spec{spec(tensor.F32, 2)}, func(in []*ir.Tensor) *ir.Tensor { return ops.Cast(here(in)[0], tensor.U64) }, "the result: element type uint64, " + want},
		{"cast", []ir.Spec{spec(tensor.F32, 2)}, func(in []*ir.Tensor) *ir.Tensor { return ops.Cast(here(in)[0], 0) }, "the result: element type DType(0), " + want},
	})
}

// TestCastGradients has the gradient of a cast cast back, and none of one to integers.
func TestCastGradients(t *testing.T) {
	for _, from := range floats {
		for _, to := range floats {
			x, _ := tensor.New(from, 3)
			grad, _ := tensor.New(to, 3)
			change(grad, func(value) value { return value{f: 1.0 / 3} })
			want, _ := tensor.New(from, 3)
			for i := range 3 {
				set(want, i, at(grad, i))
			}
			got := gradient(t, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor { return ops.Cast(in[0], to) }, grad, x)
			same(t, "gradient of cast", got[0], want)
		}
		x, _ := tensor.New(from, 3)
		grad, _ := tensor.New(tensor.F32, 3)
		change(grad, func(value) value { return value{f: 1} })
		got := gradient(t, func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor {
			return ops.Cast(ops.Cast(in[0], tensor.I32), tensor.F32)
		}, grad, x)
		same(t, "gradient of cast to int32", got[0], x)
	}
	irtest.CheckGradient(t, "cast", []*tensor.Tensor{irtest.RandomFloats(tensor.Shape{3})},
		func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor { return ops.Cast(in[0], tensor.F64) })
}
