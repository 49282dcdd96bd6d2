package kernel

import (
	"flag"
	"fmt"
	"hash/crc32"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"
)

var full = flag.Bool("full", false, "try functions on all float32s, not one in 9973, and on more float64s")

// functionCase is a function that is held to a bound of its error, in units in the last place.
type functionCase struct {
	name             string
	loop             func(t Type) func(dst, src []byte)
	reference        func(x float64) float64 // good enough to tell a Float32's error
	exact            func(x *big.Float) *big.Float
	low, high        float64 // where Float64 is tried
	bound32, bound64 float64
	floor            float64 // what is smaller is measured in its units, in Float64
}

func functionCases() []functionCase {
	two, one := bigNumber(2), bigNumber(1)
	density := func(x *big.Float) *big.Float { return bigExp(bigMul(bigMul(x, x), bigNumber(-0.5))) }
	normal := func(x *big.Float) *big.Float {
		below := bigMul(bigTail(bigNumber(0).Abs(x)), density(x))
		if x.Sign() > 0 {
			return bigSub(one, below)
		}
		return below
	}
	return []functionCase{
		{"exp", Exp.Loop, math.Exp, bigExp, -745, 709.7, 0.5000001, 1.1, 0},
		{"log", NaturalLog.Loop, math.Log, func(x *big.Float) *big.Float {
			f := bigNumber(0)
			k := x.MantExp(f)
			s := bigQuo(bigSub(f, one), bigAdd(f, one))
			return bigAdd(bigMul(bigNumber(float64(k)), bigLog2()), bigMul(two, bigArtanh(s, 1)))
		}, 0, 10, 0.5000001, 2, 0},
		{"tanh", Tanh.Loop, math.Tanh, func(x *big.Float) *big.Float {
			e := bigExp(bigMul(two, x))
			return bigQuo(bigSub(e, one), bigAdd(e, one))
		}, -20, 20, 0.5000001, 3, 0},
		{"sigmoid", Sigmoid.Loop, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
			func(x *big.Float) *big.Float {
				return bigQuo(one, bigAdd(one, bigExp(bigNumber(0).Neg(x))))
			}, -745, 40, 0.5000001, 3, 0},
		{"softplus", Softplus.Loop, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
			func(x *big.Float) *big.Float { // log(1 + e) = 2 artanh(e / (2 + e)), and x more above 0
				e, above := bigExp(bigNumber(0).Neg(bigNumber(0).Abs(x))), bigNumber(0)
				if x.Sign() > 0 {
					above = x
				}
				return bigAdd(above, bigMul(two, bigArtanh(bigQuo(e, bigAdd(two, e)), 1)))
			}, -745, 40, 0.5000001, 3, 0},
		{"gelu", Gelu.Loop, func(x float64) float64 {
			if math.IsInf(x, -1) {
				return 0
			}
			return x * math.Erfc(-x/math.Sqrt2) / 2
		}, func(x *big.Float) *big.Float { return bigMul(x, normal(x)) }, -37, 10, 0.5000001, 6, 0},
		{"gelu slope", func(t Type) func(dst, src []byte) {
			return func(dst, src []byte) { GeluSlope(t)(dst, src, onesLike(t, len(dst))) }
		}, func(x float64) float64 {
			if math.IsInf(x, 0) {
				return math.Max(0, math.Copysign(1, x))
			}
			return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		}, func(x *big.Float) *big.Float {
			return bigAdd(normal(x), bigQuo(bigMul(x, density(x)), rootTwoPi()))
		}, -37, 10, 0.5000001, 3, 1},
	}
}

var onesOf = map[Type][]byte{Float32: ones(Float32, 4*errorBlock), Float64: ones(Float64, 8*errorBlock)}

func onesLike(t Type, n int) []byte { return onesOf[t][:n] }

const errorBlock = 1 << 12

// TestFunctionErrors: no function errs by more than its bound. Without -full it is tried on a part of the float32s.
func TestFunctionErrors(t *testing.T) {
	for _, c := range functionCases() {
		t.Run("function="+c.name+"/type=float32", func(t *testing.T) {
			t.Parallel()
			step := uint64(9973)
			switch {
			case *full:
				step = 1
			case testing.Short():
				step = 99991
			}
			var mu sync.Mutex
			var wg sync.WaitGroup
			worst, at := 0.0, float32(0)
			workers := uint64(runtime.GOMAXPROCS(0))
			for w := range workers {
				wg.Go(func() {
					x, y := make([]float32, errorBlock), make([]float32, errorBlock)
					loop, most, where := c.loop(Float32), 0.0, float32(0)
					for from := w * errorBlock * step; from < 1<<32; from += workers * errorBlock * step {
						for i := range x {
							x[i] = math.Float32frombits(uint32(from + uint64(i)*step))
						}
						loop(bytesOf(y), bytesOf(x))
						for i, v := range x {
							if e := error32(y[i], c.reference(float64(v))); e > most {
								most, where = e, v
							}
						}
					}
					mu.Lock()
					defer mu.Unlock()
					if most > worst {
						worst, at = most, where
					}
				})
			}
			wg.Wait()
			t.Logf("largest error %.9f, at %v", worst, at)
			if worst > c.bound32 {
				t.Errorf("it errs by %v at %v, want %v at most", worst, at, c.bound32)
			}
		})
		t.Run("function="+c.name+"/type=float64", func(t *testing.T) {
			t.Parallel()
			tries := 300
			switch {
			case *full:
				tries = 20_000
			case testing.Short():
				tries = 50
			}
			rng := rand.New(rand.NewPCG(1, 2))
			worst, at := 0.0, 0.0
			for range tries {
				x := c.low + (c.high-c.low)*rng.Float64()
				if rng.IntN(2) == 0 { // a small one
					x = math.Max(c.low, rng.NormFloat64())
					if c.low == 0 {
						x = 1 + x*math.Ldexp(1, -rng.IntN(20))/20
					}
				}
				y := []float64{x}
				c.loop(Float64)(bytesOf(y), bytesOf(y))
				want := c.exact(bigNumber(x))
				near, _ := want.Float64()
				_, exponent := math.Frexp(max(math.Abs(near), c.floor))
				e, _ := bigSub(bigNumber(y[0]), want).Float64()
				if e = math.Abs(e) / math.Ldexp(1, max(exponent-53, -1074)); e > worst {
					worst, at = e, x
				}
			}
			t.Logf("largest error %.3f, at %v", worst, at)
			if worst > c.bound64 {
				t.Errorf("it errs by %v at %v, want %v at most", worst, at, c.bound64)
			}
		})
	}
}

// error32 is how far y is from what it should be, in units of the last place that a float32 near that has.
func error32(y float32, want float64) float64 {
	near := float32(want)
	switch {
	case want != want || y != y || math.IsInf(float64(y), 0) || math.IsInf(float64(near), 0):
		if math.Float32bits(y) == math.Float32bits(near) || want != want && y != y {
			return 0
		}
		return math.Inf(1)
	}
	_, exponent := math.Frexp(want)
	return math.Abs(float64(y)-want) / math.Ldexp(1, max(exponent-24, -149))
}

func bytesOf[T float32 | float64](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// wideBits is the bits of a float64 rounded to an element type.
func wideBits(t Type, v float64) uint64 {
	if v != v {
		return oracleNaN(t)
	}
	return floatBits(t, v)
}

// TestFunctionBits: every version on every machine has the same bits, by a checksum. The last function is GeluSlope. A
// change of a checksum is a change of results, for CHANGELOG.md.
func TestFunctionBits(t *testing.T) {
	want := map[string]uint32{
		"function 0 of float32": 0xb0092f79, "function 0 of float64": 0x35eb0614,
		"function 1 of float32": 0xa1cc83fc, "function 1 of float64": 0xb6e5c781,
		"function 2 of float32": 0xbf8b418a, "function 2 of float64": 0x76ac4cb0,
		"function 3 of float32": 0x2ecce747, "function 3 of float64": 0x45d7bf51,
		"function 4 of float32": 0xee931a27, "function 4 of float64": 0xdf7f6939,
		"function 5 of float32": 0xd238169a, "function 5 of float64": 0x75c1b342,
		"function 6 of float32": 0xd50a202a, "function 6 of float64": 0x219045ea,
	}
	rng := rand.New(rand.NewPCG(5, 6))
	floats, doubles := make([]float32, 1<<16), make([]float64, 1<<16)
	for i := range floats {
		floats[i] = math.Float32frombits(uint32(i)<<16 | uint32(i*40503)&0xffff)
		doubles[i] = math.Float64frombits(rng.Uint64())
		if i%2 == 0 {
			doubles[i] = math.Ldexp(rng.Float64()-0.5, rng.IntN(12)-2) // NormFloat64 is not the same everywhere
		}
	}
	for _, v := range versions {
		for f := range functionEnd + 1 {
			for typ, src := range map[Type][]byte{Float32: bytesOf(floats), Float64: bytesOf(doubles)} {
				dst := aligned(len(src))
				if f == functionEnd {
					if v.geluSlope[typ] == nil {
						continue
					}
					v.geluSlope[typ](dst, src, ones(typ, len(src)))
				} else {
					if v.function[f][typ] == nil {
						continue
					}
					v.function[f][typ](dst, src)
				}
				sum, name := crc32.ChecksumIEEE(dst), fmt.Sprintf("function %d of %v", f, typ)
				if sum != want[name] {
					t.Errorf("version %s: %s has checksum %#x, want %#x", v.name, name, sum, want[name])
				}
			}
		}
	}
}

// TestFunctionsRise: what rises does so in its rounded values. Without -full one float32 in 997 is tried with the next.
func TestFunctionsRise(t *testing.T) {
	step := uint32(997)
	switch {
	case *full:
		step = 1
	case testing.Short():
		step = 9973
	}
	for f, name := range map[Function]string{Exp: "exp", NaturalLog: "log", Tanh: "tanh", Sigmoid: "sigmoid"} {
		t.Run("function="+name, func(t *testing.T) {
			t.Parallel()
			x := make([]float32, 0, 2*errorBlock)
			y := make([]float32, 2*errorBlock)
			check := func() {
				f.Loop(Float32)(bytesOf(y[:len(x)]), bytesOf(x))
				for i := 0; i < len(x); i += 2 {
					if y[i] > y[i+1] {
						t.Fatalf("%v at %v, and %v at %v", y[i], x[i], y[i+1], x[i+1])
					}
				}
				x = x[:0]
			}
			const infinity = 0x7f800000
			for b := uint32(0); b < infinity; b += step {
				low, high := math.Float32frombits(b), math.Float32frombits(b+1)
				x = append(x, low, high, -high, -low)
				if len(x) == cap(x) {
					check()
				}
			}
			if len(x) > 0 {
				check()
			}
		})
	}
}

// TestFunctionLimits has the values that the documentation names.
func TestFunctionLimits(t *testing.T) {
	inf, zero := math.Inf(1), math.Copysign(0, -1)
	for _, c := range []struct {
		f       Function
		x, want float64
	}{
		{Exp, 0, 1}, {Exp, zero, 1}, {Exp, inf, inf}, {Exp, -inf, 0}, {Exp, 709.8, inf}, {Exp, -745.2, 0},
		{Exp, -745.1, 0x1p-1074}, {Exp, math.MaxFloat64, inf},
		{NaturalLog, 0, -inf}, {NaturalLog, zero, -inf}, {NaturalLog, 1, 0}, {NaturalLog, inf, inf},
		{NaturalLog, -1, math.NaN()}, {NaturalLog, -inf, math.NaN()}, {NaturalLog, 0x1p-1074, -1074 * math.Ln2},
		{Tanh, 0, 0}, {Tanh, zero, zero}, {Tanh, inf, 1}, {Tanh, -inf, -1}, {Tanh, 20, 1}, {Tanh, -20, -1},
		{Tanh, 0x1p-1074, 0x1p-1074}, {Tanh, -0x1p-1030, -0x1p-1030}, {Tanh, 1e-10, 1e-10},
		{Sigmoid, 0, 0.5}, {Sigmoid, zero, 0.5}, {Sigmoid, inf, 1}, {Sigmoid, -inf, 0}, {Sigmoid, 40, 1},
		{Sigmoid, -745.1, 0x1p-1074},
		{Gelu, 0, 0}, {Gelu, zero, zero}, {Gelu, inf, inf}, {Gelu, -inf, zero}, {Gelu, 50, 50}, {Gelu, -50, zero},
		{Gelu, math.MaxFloat64, math.MaxFloat64},
	} {
		for _, v := range versions {
			if loop := v.function[c.f][Float64]; loop != nil {
				x := []float64{c.x, c.x, c.x, c.x, c.x}
				loop(bytesOf(x), bytesOf(x))
				for _, got := range x {
					if !sameFloat(got, c.want) {
						t.Errorf("version %s: function %d of %v is %v, want %v", v.name, c.f, c.x, got, c.want)
						break
					}
				}
			}
		}
	}
}

func BenchmarkFunction(b *testing.B) {
	for _, v := range versions {
		for f, name := range map[Function]string{
			Exp: "exp", NaturalLog: "log", Tanh: "tanh", Sigmoid: "sigmoid", Gelu: "gelu", Softplus: "softplus",
		} {
			if loop := v.function[f][Float32]; loop != nil {
				b.Run(fmt.Sprintf("version=%s/function=%s", v.name, name), func(b *testing.B) {
					dst, src := aligned(4*errorBlock), ones(Float32, 4*errorBlock)
					b.SetBytes(4 * errorBlock)
					for b.Loop() {
						loop(dst, src)
					}
				})
			}
		}
	}
}
