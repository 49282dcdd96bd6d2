package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// eachRows runs a test on AddRows and AddWideRows of every version. wide is how many times as long dst's rows are.
func eachRows(t *testing.T, test func(t *testing.T, typ Type, wide int, loop, plain rowsLoop)) {
	for _, v := range versions {
		for typ := Type(1); typ < typeEnd; typ++ {
			for wide, loops := range map[int]struct{ of, plain *[typeEnd]rowsLoop }{
				1: {&v.addRows, &versions[0].addRows}, 2: {&v.addWideRows, &versions[0].addWideRows},
			} {
				if loop := loops.of[typ]; loop != nil {
					t.Run(fmt.Sprintf("version=%s/type=%v/wide=%d", v.name, typ, wide), func(t *testing.T) {
						test(t, typ, wide, loop, loops.plain[typ])
					})
				}
			}
		}
	}
}

// scaleBits are the scales that a type is tried with.
func scaleBits(typ Type, rng *rand.Rand) uint64 {
	of := typ
	if typ == Float16 || typ == BFloat16 {
		of = Float32
	}
	all := mixed(of, 8, rng.Uint64())
	return all[rng.IntN(len(all))]
}

// TestAddRows holds every version against Binary and Mul of the plain one, row by row, on special and random elements:
// rows of every small length and of some that are long, with gaps between them, pairs with the same row again.
func TestAddRows(t *testing.T) {
	lengths := []int{0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 255, 1000, 40000}
	eachRows(t, func(t *testing.T, typ Type, wide int, loop, plain rowsLoop) {
		rng := rand.New(rand.NewPCG(uint64(typ), uint64(wide)))
		for _, n := range lengths {
			if n > 1000 && typ != Float32 && typ != Float16 {
				continue // long rows are cut alike
			}
			const dstRows, srcRows = 3, 4
			at := Rows{Bytes: n * typ.Size()}
			at.DstStride = wide*at.Bytes + wide*typ.Size()*rng.IntN(3)
			at.SrcStride = at.Bytes + typ.Size()*rng.IntN(3)
			dstType := typ
			if wide == 2 {
				dstType = Float32
			}
			dst := pack(dstType, mixed(dstType, dstRows*at.DstStride/dstType.Size(), rng.Uint64()))
			src := pack(typ, mixed(typ, srcRows*at.SrcStride/typ.Size(), rng.Uint64()))
			pairs := make([]uint64, rng.IntN(20))
			for i := range pairs {
				pairs[i] = uint64(rng.IntN(dstRows))<<32 | uint64(rng.IntN(srcRows))
			}
			scale := scaleBits(typ, rng)
			want := bytes.Clone(dst)
			for _, p := range pairs {
				d := want[int(p>>32)*at.DstStride:][:wide*at.Bytes]
				rowOracle(typ, wide, d, src[int(p&0xffffffff)*at.SrcStride:][:at.Bytes], scale)
			}
			loop(dst, src, pairs, at, scale)
			if !bytes.Equal(dst, want) {
				t.Fatalf("n=%d scale %#x pairs %x: differs from Mul and Add", n, scale, pairs)
			}
		}
	})
}

// rowOracle is dst += scale * src by the plain version's Mul and Add.
func rowOracle(typ Type, wide int, dst, src []byte, scale uint64) {
	v, of := versions[0], typ
	if typ == Float16 || typ == BFloat16 {
		of = Float32
		wider := aligned(2 * len(src))
		v.widen[typ](wider, src)
		src = wider
	}
	by := make([]uint64, len(src)/of.Size())
	for i := range by {
		by[i] = scale
	}
	product := aligned(len(src))
	v.binary[Mul][of](product, src, pack(of, by))
	if of == typ || wide == 2 {
		v.binary[Add][of](dst, dst, product)
		return
	}
	sum := aligned(len(product))
	v.widen[typ](sum, dst)
	v.binary[Add][of](sum, sum, product)
	v.narrow[typ](dst, sum)
}

// TestAddRowsOutside: a pair of a row that is not there panics, and writes nothing.
func TestAddRowsOutside(t *testing.T) {
	eachRows(t, func(t *testing.T, typ Type, wide int, loop, _ rowsLoop) {
		row := 16 * typ.Size()
		for _, pair := range []uint64{3 << 32, 2, 1 << 63, 0xffffffff} {
			dst, src := aligned(3*wide*row), ones(typ, 2*row)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("pair %#x: no panic", pair)
					}
				}()
				loop(dst, src, []uint64{0, pair}, Rows{row, wide * row, row}, scaleOne(typ))
			}()
			if !bytes.Equal(dst, make([]byte, len(dst))) {
				t.Errorf("pair %#x: written to", pair)
			}
		}
	})
}

// TestCopyRows holds every version against copy, on rows of all small lengths and some long ones.
func TestCopyRows(t *testing.T) {
	for _, v := range versions {
		if v.copyRows == nil {
			continue
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for n := range 600 {
			if n >= 300 {
				n = 1<<17 + n
			}
			if n > 1<<17+310 {
				break
			}
			const dstRows, srcRows = 3, 4
			at := Rows{n, n + rng.IntN(3), n + rng.IntN(3)}
			dst, src := aligned(dstRows*at.DstStride), pack(Uint8, mixed(Uint8, srcRows*at.SrcStride, uint64(n)))
			pairs := make([]uint64, rng.IntN(20))
			for i := range pairs {
				pairs[i] = uint64(rng.IntN(dstRows))<<32 | uint64(rng.IntN(srcRows))
			}
			want := bytes.Clone(dst)
			for _, p := range pairs {
				copy(want[int(p>>32)*at.DstStride:][:n], src[int(p&0xffffffff)*at.SrcStride:])
			}
			v.copyRows(dst, src, pairs, at)
			if !bytes.Equal(dst, want) {
				t.Fatalf("version %s, %+v, pairs %x: differs from copy", v.name, at, pairs)
			}
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("version %s: no panic for a row that is not there", v.name)
				}
			}()
			v.copyRows(aligned(64), aligned(64), []uint64{0, 1}, Rows{64, 64, 64})
		}()
	}
}

// scaleOne is the bits of 1.
func scaleOne(typ Type) uint64 {
	switch typ {
	case Float32, Float16, BFloat16:
		return 0x3f800000
	case Float64:
		return 0x3ff0000000000000
	}
	return 1
}

// BenchmarkAddRows measures bytes of src per second: rows of 64 elements that are in the first-level cache.
func BenchmarkAddRows(b *testing.B) {
	for _, v := range versions {
		for _, typ := range []Type{Float16, Float32, Int32} {
			loop := v.addRows[typ]
			if loop == nil {
				continue
			}
			b.Run(fmt.Sprintf("type=%v/version=%s", typ, v.name), func(b *testing.B) {
				row := 64 * typ.Size()
				dst, src := ones(typ, 32*row), ones(typ, 32*row)
				pairs := make([]uint64, 256)
				for i := range pairs {
					pairs[i] = uint64(i*7%32)<<32 | uint64(i%32)
				}
				b.ReportAllocs()
				sample(b, row*len(pairs), func() { loop(dst, src, pairs, Rows{row, row, row}, 0) })
			})
		}
	}
}
