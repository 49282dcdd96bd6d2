package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestExponentials holds every version to the definition, added up in the order that it says: rows of special and of
// ordinary elements, of every small length and of those about a segment, at odd places in memory, in place and not.
func TestExponentials(t *testing.T) {
	for _, v := range versions {
		for _, typ := range []Type{Float32, Float64} {
			if v.shiftedExp[typ] == nil {
				continue
			}
			t.Run(fmt.Sprintf("version=%s/type=%v", v.name, typ), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(uint64(typ), 1))
				loop := v.exponentials(typ)
				for n := range 2*sumSegment + 12 {
					if n > 140 && n%sumSegment > 9 && n%sumSegment < sumSegment-3 {
						continue
					}
					for kind := range 3 {
						row := mixed(typ, n, rng.Uint64())
						for i := range row {
							if kind > 0 {
								row[i] = floatBits(typ, 3*rng.NormFloat64())
							}
							if kind == 2 && rng.IntN(2) == 0 {
								row[i] = floatBits(typ, math.Inf(-1))
							}
						}
						checkExponentials(t, typ, loop, row, rng.IntN(9))
					}
				}
			})
		}
	}
}

// checkExponentials is for a row so many elements from a cache line.
func checkExponentials(t *testing.T, typ Type, loop func(dst, src []byte) (float64, float64), row []uint64, gap int) {
	t.Helper()
	src := pack(typ, append(make([]uint64, gap), row...))[gap*typ.Size():]
	want, wantGreatest, wantSum := oracleExponentials(typ, row)
	before, dst := bytes.Clone(src), aligned(len(src))
	for _, to := range [][]byte{dst, src} {
		if !bytes.Equal(before, src) {
			t.Fatalf("%d elements: src was changed", len(row))
		}
		greatest, sum := loop(to, src)
		if same := bytes.Equal(to, want); !same || !sameFloat(greatest, wantGreatest) || !sameFloat(sum, wantSum) {
			t.Fatalf("%d elements: greatest %v and sum %x, want %v and %x; the same exponentials: %v", len(row), greatest,
				sum, wantGreatest, wantSum, same)
		}
	}
}

// sameFloat takes NaNs for the same.
func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b
}

// oracleExponentials is one element at a time.
func oracleExponentials(typ Type, row []uint64) (dst []byte, greatest, sum float64) {
	greatest = math.Inf(-1)
	for _, bits := range row {
		if x := oracleValue(typ, bits); x > greatest {
			greatest = x
		}
	}
	if greatest == 0 {
		greatest = 0
	}
	out := make([]uint64, len(row))
	for from := 0; from < len(row); from += sumSegment {
		segment := row[from:min(len(row), from+sumSegment)]
		var parts [8]float64
		total, eights := 0.0, len(segment)/8*8
		for i, bits := range segment {
			x := oracleValue(typ, floatBits(typ, oracleValue(typ, bits)-greatest))
			e := formulas[Exp](x)
			out[from+i] = wideBits(typ, e)
			if i < eights {
				parts[i%8] += e
			}
			if i == eights-1 {
				for half := 4; half > 0; half /= 2 {
					for k := range half {
						parts[k] += parts[k+half]
					}
				}
				total = parts[0]
			}
			if i >= eights {
				total += e
			}
		}
		sum += total
	}
	return pack(typ, out), greatest, sum
}

// TestScale: a product in float64 is rounded once.
func TestScale(t *testing.T) {
	for _, v := range versions {
		for _, typ := range []Type{Float32, Float64} {
			if v.scale[typ] == nil {
				continue
			}
			t.Run(fmt.Sprintf("version=%s/type=%v", v.name, typ), func(t *testing.T) {
				for n := range 150 {
					for _, by := range []float64{1, 1.0 / 3, 1e-300, math.Inf(1), math.NaN()} {
						row := mixed(typ, n, uint64(n))
						want := make([]uint64, n)
						for i, bits := range row {
							want[i] = wideBits(typ, oracleValue(typ, bits)*by)
						}
						src := pack(typ, row)
						dst := aligned(len(src))
						v.scale[typ](dst, src, by)
						v.scale[typ](src, src, by)
						if !bytes.Equal(dst, pack(typ, want)) || !bytes.Equal(src, dst) {
							t.Fatalf("%d elements by %v: not the products", n, by)
						}
					}
				}
			})
		}
	}
}

// TestSoftmaxTypes: there are loops for two types and no others.
func TestSoftmaxTypes(t *testing.T) {
	for typ := range Type(255) {
		wide := typ == Float32 || typ == Float64
		if (Exponentials(typ) != nil) != wide || (Scale(typ) != nil) != wide {
			t.Errorf("loops of type %v are there: %v and %v, want %v", typ, Exponentials(typ) != nil, Scale(typ) != nil,
				wide)
		}
	}
}

// TestSoftmaxNoAllocation: a row takes no memory but its own.
func TestSoftmaxNoAllocation(t *testing.T) {
	exponentials, scale := Exponentials(Float32), Scale(Float32)
	row := ones(Float32, 4*77)
	if n := testing.AllocsPerRun(100, func() {
		_, sum := exponentials(row, row)
		scale(row, row, 1/sum)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
