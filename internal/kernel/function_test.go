package kernel

import (
	"flag"
	"fmt"
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
		{"exp", Exp.Loop, math.Exp, bigExp, -745, 709.7, 0.5000001, 1, 0},
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
			if *full {
				step = 1
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
			if *full {
				tries = 100_000
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

func BenchmarkFunction(b *testing.B) {
	for _, v := range versions {
		for f, name := range map[Function]string{Exp: "exp", Tanh: "tanh", Sigmoid: "sigmoid", Gelu: "gelu"} {
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
