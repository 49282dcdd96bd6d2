package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestUpdates holds every version of every update against the formulas, in which each step is computed in float64 and
// rounded to the type: on special and random elements, of every small length and of one that is cut into pieces, at odd
// places in memory, from another parameter and in place.
func TestUpdates(t *testing.T) {
	eachUpdate(t, func(t *testing.T, u Update, typ Type, loop updateLoop) {
		rng := rand.New(rand.NewPCG(uint64(typ), uint64(u)))
		for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 130, 255, 1000, 40000} {
			operand := func() []byte {
				gap := typ.Size() * rng.IntN(3)
				return pack(typ, mixed(typ, n+gap/typ.Size(), rng.Uint64()))[gap:]
			}
			o := Operands{operand(), operand(), operand(), operand(), operand()}
			if rng.IntN(2) == 0 {
				o.From = o.Param
			}
			numbers := Numbers{rng.Float64() / 8, rng.Float64() / 8, rng.Float64(), 1 + rng.Float64(), 1e-8}
			if rng.IntN(8) == 0 {
				numbers[rng.IntN(5)] = math.Inf(1)
			}
			want := Operands{bytes.Clone(o.Param), bytes.Clone(o.From), o.Grad, bytes.Clone(o.First),
				bytes.Clone(o.Second)}
			for i := range n {
				oracleUpdate(u, typ, want, numbers, i)
			}
			loop(o, numbers)
			for name, lists := range map[string][2][]byte{
				"param": {o.Param, want.Param}, "first": {o.First, want.First}, "second": {o.Second, want.Second},
			} {
				if !bytes.Equal(lists[0], lists[1]) {
					t.Fatalf("%d elements, %v: %s is not what the formula gives", n, numbers, name)
				}
			}
		}
	})
}

// oracleUpdate is an update of element i.
func oracleUpdate(u Update, typ Type, o Operands, n Numbers, i int) {
	r := func(x float64) float64 { // rounds
		if typ == Float32 {
			return float64(float32(x))
		}
		return x
	}
	tiny := map[Type]float64{Float32: 0x1p-100, Float64: 0x1p-900}[typ]
	flush := func(x float64) float64 {
		if math.Abs(x) < tiny {
			return 0
		}
		return x
	}
	read := func(b []byte) float64 { return oracleValue(typ, load(typ, b, i)) }
	write := func(b []byte, x float64) {
		bits := floatBits(typ, x)
		if x != x {
			bits = oracleNaN(typ)
		}
		store(typ, b, i, bits)
	}
	p, g, m, s := read(o.From), read(o.Grad), read(o.First), read(o.Second)
	a, b, c, d, e := r(n[0]), r(n[1]), r(n[2]), r(n[3]), r(n[4])
	var down float64
	switch u {
	case Descend:
		down = r(a * g)
	case Momentum:
		m = flush(r(r(b*m) + g))
		down = r(a * m)
	case Nesterov:
		m = flush(r(r(b*m) + g))
		down = r(a * r(g+r(b*m)))
	case Adam:
		m = flush(r(m + r(a*r(g-m))))
		s = flush(r(s + r(b*r(r(g*g)-s))))
		down = r(r(c*m) / r(r(r(math.Sqrt(s))*d)+e))
	}
	write(o.Param, r(p-down))
	if u != Descend {
		write(o.First, m)
	}
	if u == Adam {
		write(o.Second, s)
	}
}

// eachUpdate runs a test on every update of every version that has it.
func eachUpdate(t *testing.T, test func(t *testing.T, u Update, typ Type, loop updateLoop)) {
	for _, v := range versions {
		for u := range updateEnd {
			for typ, loop := range v.update[u] {
				if loop != nil {
					t.Run(fmt.Sprintf("version=%s/update=%d/type=%v", v.name, u, Type(typ)), func(t *testing.T) {
						t.Parallel()
						test(t, u, Type(typ), loop)
					})
				}
			}
		}
	}
}

// TestUpdatesEnd: means of gradients that stay zero come to be zeros, and no step is subnormal on the way.
func TestUpdatesEnd(t *testing.T) {
	eachUpdate(t, func(t *testing.T, u Update, typ Type, loop updateLoop) {
		if u == Descend || typ != Float32 {
			return
		}
		const n = 20
		o := Operands{Param: ones(typ, 4*n), Grad: make([]byte, 4*n), First: ones(typ, 4*n), Second: ones(typ, 4*n)}
		o.From = o.Param
		numbers := Numbers{0.1, 0.1, 1, 1, 1e-8}
		for range 2000 {
			loop(o, numbers)
		}
		if zero := make([]byte, 4*n); !bytes.Equal(o.First, zero) || u == Adam && !bytes.Equal(o.Second, zero) {
			t.Errorf("m %x, s %x after 2,000 steps, want zeros", o.First, o.Second)
		}
	})
}

// TestUpdateLengths: an operand that is shorter than the parameter panics, and writes nothing.
func TestUpdateLengths(t *testing.T) {
	eachUpdate(t, func(t *testing.T, u Update, typ Type, loop updateLoop) {
		const n = 100
		for short := range 2 + u.states() {
			lists := [5][]byte{}
			for i := range lists {
				lists[i] = ones(typ, n*typ.Size())
			}
			lists[1+short] = lists[1+short][:typ.Size():typ.Size()]
			o := Operands{lists[0], lists[1], lists[2], lists[3], lists[4]}
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("operand %d is short: no panic", 1+short)
					}
				}()
				loop(o, Numbers{1, 1, 1, 1, 1})
			}()
			if !bytes.Equal(o.Param, ones(typ, n*typ.Size())) {
				t.Errorf("operand %d is short: something was written", 1+short)
			}
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	for _, v := range versions {
		for u, name := range map[Update]string{Descend: "descend", Momentum: "momentum", Adam: "adam"} {
			b.Run(fmt.Sprintf("version=%s/update=%s", v.name, name), func(b *testing.B) {
				const n = 64 << 10
				o := Operands{ones(Float32, 4*n), nil, ones(Float32, 4*n), ones(Float32, 4*n), ones(Float32, 4*n)}
				o.From = o.Param
				b.SetBytes(4 * n)
				for b.Loop() {
					v.update[u][Float32](o, Numbers{0.1, 0.001, 1e-3, 1, 1e-8})
				}
			})
		}
	}
}
