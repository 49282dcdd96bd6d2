package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// oracleMatMul is MatMul with each rounding made from float64, which holds a product of float32 exactly, and a sum
// closely enough.
func oracleMatMul(c, a, b []float32, p Product) {
	for i := range p.M {
		for j := range p.N {
			sum := c[i*p.CRow+j]
			for l := range p.K {
				product := float32(float64(a[i*p.ARow+l*p.AColumn]) * float64(b[l*p.BRow+j]))
				sum = float32(float64(sum) + float64(product))
			}
			if sum != sum && p.K > 0 {
				sum = nan32
			}
			c[i*p.CRow+j] = sum
		}
	}
}

// matMulShapes have every remainder of rows and columns, and inner dimensions around a block.
func matMulShapes() (shapes [][3]int) {
	for m := range 18 {
		shapes = append(shapes, [3]int{m, 33, 5})
	}
	for n := range 70 {
		shapes = append(shapes, [3]int{9, n, 3}, [3]int{5, n, 2})
	}
	for _, k := range []int{0, 1, 2, 127, 128, 129, 257} {
		shapes = append(shapes, [3]int{13, 35, k})
	}
	return append(shapes, [3]int{1, 1, 1}, [3]int{64, 192, 64}, [3]int{91, 91, 91})
}

// TestMatMul holds every version against the oracle, a transposed and not, with rows that are longer than the matrices,
// and looks at what is between and behind them.
func TestMatMul(t *testing.T) {
	for _, v := range versions {
		if v.matMul == nil {
			continue
		}
		t.Run("version="+v.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for _, s := range matMulShapes() {
				for _, transposed := range []bool{false, true} {
					for _, special := range []bool{false, true} {
						p := Product{M: s[0], N: s[1], K: s[2], CRow: s[1] + r.IntN(3), ARow: s[2] + r.IntN(3),
							AColumn: 1, BRow: s[1] + r.IntN(3)}
						sizeA := p.M * p.ARow
						if transposed {
							p.ARow, p.AColumn = 1, s[0]+r.IntN(3)
							sizeA = p.K * p.AColumn
						}
						draw := func(n int) []float32 {
							values := make([]float32, n)
							for i := range values {
								values[i] = float32(r.NormFloat64())
								if special && r.IntN(20) == 0 {
									values[i] = float32of(specials(Float32)[r.IntN(len(specials(Float32)))])
								}
							}
							return values
						}
						const guard = 40
						a, b, c := draw(sizeA), draw(p.K*p.BRow), draw(p.M*p.CRow+guard)
						want := append([]float32(nil), c...)
						oracleMatMul(want, a, b, p)
						chosenOnly(v, func() { MatMul(c, a, b, p) })
						for i := range c {
							if math.Float32bits(c[i]) != math.Float32bits(want[i]) {
								t.Fatalf("%+v, special values %v: c[%d] is %v (%08x), want %v (%08x)", p, special, i,
									c[i], math.Float32bits(c[i]), want[i], math.Float32bits(want[i]))
							}
						}
					}
				}
			}
		})
	}
}

// chosenOnly runs f with the products of one version.
func chosenOnly(v *version, f func()) {
	old := chosen.matMul
	defer func() { chosen.matMul = old }()
	chosen.matMul = v.matMul
	f()
}

// TestMatMulBounds: matrices that reach past a slice are found before anything is read or written.
func TestMatMulBounds(t *testing.T) {
	p := Product{M: 3, N: 40, K: 2, CRow: 40, ARow: 2, AColumn: 1, BRow: 40}
	for _, short := range [][3]int{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}} {
		t.Run(fmt.Sprint(short), func(t *testing.T) {
			c, a, b := make([]float32, 120-short[0], 121), make([]float32, 6-short[1], 7),
				make([]float32, 80-short[2], 81)
			c, a, b = c[:len(c):len(c)], a[:len(a):len(a)], b[:len(b):len(b)]
			defer func() {
				if recover() == nil {
					t.Error("nothing was found")
				}
			}()
			MatMul(c, a, b, p)
		})
	}
}

func TestMatMulNoAllocation(t *testing.T) {
	c, a, b := make([]float32, 35*35), make([]float32, 35*35), make([]float32, 35*35)
	for _, v := range versions {
		if v.matMul != nil {
			p := Product{M: 35, N: 35, K: 35, CRow: 35, ARow: 35, AColumn: 1, BRow: 35}
			if n := testing.AllocsPerRun(10, func() { v.matMul(c, a, b, p) }); n != 0 {
				t.Errorf("version %s: %v allocations", v.name, n)
			}
		}
	}
}

// BenchmarkMatMul has products of a transformer's layers and of a perceptron's.
func BenchmarkMatMul(b *testing.B) {
	for _, s := range [][3]int{{64, 16, 64}, {64, 64, 16}, {1024, 64, 64}, {1024, 256, 64}, {64, 256, 1024},
		{16, 128, 64}, {512, 512, 512}} {
		for _, transposed := range []bool{false, true} {
			for _, v := range versions {
				if v.matMul == nil {
					continue
				}
				b.Run(fmt.Sprintf("m=%d/n=%d/k=%d/transposed=%v/version=%s", s[0], s[1], s[2], transposed, v.name),
					func(b *testing.B) {
						p := Product{M: s[0], N: s[1], K: s[2], CRow: s[1], ARow: s[2], AColumn: 1, BRow: s[1]}
						if transposed {
							p.ARow, p.AColumn = 1, s[0]
						}
						c, x, y := make([]float32, s[0]*s[1]), make([]float32, s[0]*s[2]), make([]float32, s[1]*s[2])
						b.ReportAllocs()
						for b.Loop() {
							v.matMul(c, x, y, p)
						}
						b.ReportMetric(2*float64(s[0]*s[1]*s[2])*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gflop/s")
					})
			}
		}
	}
}
