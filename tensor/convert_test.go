package tensor_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

// newOf is a tensor of n elements.
func newOf(t *testing.T, d tensor.DType, n int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(d, n)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// exactly is element i as a rational number; nil if it is NaN or infinite, which wide is then.
func exactly(t *testing.T, x *tensor.Tensor, i int) (value *big.Rat, wide float64) {
	t.Helper()
	whole := func(v int64) (*big.Rat, float64) { return new(big.Rat).SetInt64(v), 0 }
	switch d := x.DType(); d {
	case tensor.Bool, tensor.U8:
		return whole(int64(x.Bytes()[i]))
	case tensor.I8:
		return whole(int64(viewOf[int8](t, x)[i]))
	case tensor.I16:
		return whole(int64(viewOf[int16](t, x)[i]))
	case tensor.I32:
		return whole(int64(viewOf[int32](t, x)[i]))
	case tensor.I64:
		return whole(viewOf[int64](t, x)[i])
	case tensor.U16:
		return whole(int64(viewOf[uint16](t, x)[i]))
	case tensor.U32:
		return whole(int64(viewOf[uint32](t, x)[i]))
	case tensor.U64:
		return new(big.Rat).SetUint64(viewOf[uint64](t, x)[i]), 0
	case tensor.F16:
		wide = float64(viewOf[tensor.Float16](t, x)[i].Float32())
	case tensor.BF16:
		wide = float64(viewOf[tensor.BFloat16](t, x)[i].Float32())
	case tensor.F32:
		wide = float64(viewOf[float32](t, x)[i])
	default:
		wide = viewOf[float64](t, x)[i]
	}
	return new(big.Rat).SetFloat64(wide), wide // nil of what is not finite
}

func viewOf[T tensor.Element](t *testing.T, x *tensor.Tensor) []T {
	t.Helper()
	v, err := tensor.Of[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// halves are the finite 16-bit floats of a type that are not negative, in order, which is that of their bits.
func halves(d tensor.DType) []float64 {
	var all []float64
	for bits := range uint16(0x8000) {
		v := float64(tensor.BFloat16(bits).Float32())
		if d == tensor.F16 {
			v = float64(tensor.Float16(bits).Float32())
		}
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	return all
}

// rounded is a rational number as a float of a type, to nearest even, by looking at those on both sides of it.
func rounded(d tensor.DType, of []float64, v *big.Rat) float64 {
	switch d {
	case tensor.F64:
		f, _ := v.Float64()
		return f
	case tensor.F32:
		f, _ := v.Float32()
		return float64(f)
	}
	size := new(big.Rat).Abs(v)
	rat := func(k int) *big.Rat {
		if k == len(of) { // what infinity stands for when it is rounded to: a step beyond the largest
			return new(big.Rat).SetFloat64(2*of[k-1] - of[k-2])
		}
		return new(big.Rat).SetFloat64(of[k])
	}
	k := sort.Search(len(of), func(k int) bool { return rat(k).Cmp(size) >= 0 }) // the first that is not below
	if k > 0 {
		up, down := new(big.Rat).Sub(rat(k), size), new(big.Rat).Sub(size, rat(k-1))
		if c := down.Cmp(up); c < 0 || c == 0 && (k-1)%2 == 0 {
			k--
		}
	}
	out := math.Inf(1)
	if k < len(of) {
		out = of[k]
	}
	return math.Copysign(out, float64(v.Sign()))
}

// wantOf is what a number becomes: as a float64 of a float, else as an integer of its lower bits.
func wantOf(to tensor.DType, of []float64, v *big.Rat, wide float64, fromFloat bool) (float64, *big.Int) {
	switch {
	case to.IsFloat() && v == nil:
		return wide, nil
	case to.IsFloat() && v.Sign() == 0: // -0 stays
		return wide, nil
	case to.IsFloat():
		return rounded(to, of, v), nil
	case to == tensor.Bool && (v == nil || v.Sign() != 0):
		return 0, big.NewInt(1)
	case to == tensor.Bool:
		return 0, new(big.Int)
	}
	bits := uint(8 * to.Size())
	lo, hi := new(big.Int), new(big.Int).Lsh(big.NewInt(1), bits)
	modulus := new(big.Int).Set(hi)
	if to.IsSigned() {
		hi.Rsh(hi, 1)
		lo.Neg(hi)
	}
	hi.Sub(hi, big.NewInt(1))
	switch {
	case v == nil && math.IsNaN(wide):
		return 0, new(big.Int)
	case v == nil && wide > 0:
		return 0, hi
	case v == nil:
		return 0, lo
	}
	n := new(big.Int).Quo(v.Num(), v.Denom()) // toward zero
	switch {
	case fromFloat && n.Cmp(lo) < 0:
		return 0, lo
	case fromFloat && n.Cmp(hi) > 0:
		return 0, hi
	}
	n.Mod(n, modulus)
	if n.Cmp(hi) > 0 {
		n.Sub(n, modulus)
	}
	return 0, n
}

// TestConvert holds every pair of types against rational numbers: of any bits, of edges, and of what lies halfway
// between two floats of fewer bits or a little off.
func TestConvert(t *testing.T) {
	const n = 3000 // three blocks, the last one short
	rng := rand.New(rand.NewPCG(7, 7))
	of := map[tensor.DType][]float64{tensor.F16: halves(tensor.F16), tensor.BF16: halves(tensor.BF16)}
	for _, from := range tensor.DTypes() {
		src := newOf(t, from, n)
		for i := range src.Bytes() {
			src.Bytes()[i] = byte(rng.Uint32())
			if from == tensor.Bool {
				src.Bytes()[i] &= 1
			}
		}
		special := newOf(t, tensor.F64, n)
		s := viewOf[float64](t, special)
		for i := range s {
			off := math.Ldexp(float64(rng.IntN(3)-1), -40)
			s[i] = math.Ldexp(float64(rng.Int64N(1<<12)), rng.IntN(40)-30) * (1 + off)
		}
		copy(s, []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1 << 63, -1 << 63, 1 << 64,
			1 << 31, -1 << 31, 65519, 65520, 0.5, -0.5, 1.5, 255, 256, -129, math.MaxFloat32, 0x1.ffffffp127, 0x1p-149,
			0x1p-150, 0x1p-24, 0x1p-25})
		for _, what := range []string{"bits", "edges"} {
			if what == "edges" {
				if err := tensor.Convert(src, special); err != nil { // which is right by the rows of float64
					t.Fatal(err)
				}
			}
			for _, to := range tensor.DTypes() {
				dst := newOf(t, to, n)
				for i := range dst.Bytes() {
					dst.Bytes()[i] = 1
				}
				if err := tensor.Convert(dst, src); err != nil {
					t.Fatal(err)
				}
				unheld := ""
				for i := range n {
					v, wide := exactly(t, src, i)
					float, whole := wantOf(to, of[to], v, wide, from.IsFloat())
					got, gotWide := exactly(t, dst, i)
					bothNaN := math.IsNaN(gotWide) && math.IsNaN(float)
					if to.IsFloat() && math.Float64bits(gotWide) != math.Float64bits(float) && !bothNaN {
						t.Fatalf("%v to %v, %s: %v became %v, want %v", from, to, what, elementText(v, wide), gotWide,
							float)
					}
					if whole != nil && (got == nil || !got.IsInt() || got.Num().Cmp(whole) != 0) {
						t.Fatalf("%v to %v, %s: %v became %v, want %v", from, to, what, elementText(v, wide), got,
							whole)
					}
					lost := to.IsFloat() && v != nil && got == nil || !to.IsFloat() && (v == nil || v.Cmp(got) != 0)
					lost = lost && to != from
					if lost && unheld == "" {
						unheld = fmt.Sprintf("element %d, ", i)
					}
					if size := from.Size(); i < 40 {
						one, err := tensor.View(from, tensor.Shape{1}, src.Bytes()[i*size:(i+1)*size])
						if err != nil {
							t.Fatal(err)
						}
						if err := tensor.ConvertChecked(newOf(t, to, 1), one); (err != nil) != lost {
							t.Errorf("%v to %v: ConvertChecked of %v gives %v", from, to, elementText(v, wide), err)
						}
					}
				}
				err := tensor.ConvertChecked(newOf(t, to, n), src)
				if (err == nil) != (unheld == "") || err != nil && !strings.Contains(err.Error(), unheld) {
					t.Errorf("%v to %v, %s: ConvertChecked gives %v, want an error that names %q", from, to, what, err, unheld)
				}
			}
		}
	}
}

func elementText(v *big.Rat, wide float64) string {
	if v == nil {
		return fmt.Sprint(wide)
	}
	return v.RatString()
}

// TestConvertErrors: what is no tensor, and shapes that differ.
func TestConvertErrors(t *testing.T) {
	for name, convert := range map[string]func(dst, src *tensor.Tensor) error{
		"Convert": tensor.Convert, "ConvertChecked": tensor.ConvertChecked,
	} {
		one := tensor.Scalar(1.5)
		for _, c := range []struct {
			dst, src *tensor.Tensor
			want     string
		}{
			{nil, one, "convert from or to no tensor"},
			{one, nil, "convert from or to no tensor"},
			{&tensor.Tensor{}, one, "convert from or to no tensor"},
			{newOf(t, tensor.F32, 1), one, "convert float64 of shape () to shape (1,), want one shape"},
		} {
			if err := convert(c.dst, c.src); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want one with %q", name, err, c.want)
			}
		}
	}
}

// TestConvertAllocations: Convert has none, of any two types.
func TestConvertAllocations(t *testing.T) {
	for _, from := range tensor.DTypes() {
		for _, to := range tensor.DTypes() {
			src, dst := newOf(t, from, 3000), newOf(t, to, 3000)
			if n := testing.AllocsPerRun(10, func() { _ = tensor.Convert(dst, src) }); n > 0 {
				t.Errorf("Convert of %v to %v: %v allocations", from, to, n)
			}
		}
	}
}
