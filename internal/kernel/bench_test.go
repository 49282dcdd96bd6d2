package kernel

import (
	"fmt"
	"testing"
	"unsafe"
)

// benchSizes are bytes of dst: a small message, what fits the first-level cache, the second, and none.
var benchSizes = []struct {
	name  string
	bytes int
}{{"64B", 64}, {"4KiB", 4 << 10}, {"64KiB", 64 << 10}, {"1MiB", 1 << 20}, {"64MiB", 64 << 20}}

// BenchmarkBinary measures bytes of dst per second, see sample. It works in place, dst[i] = dst[i] op src[i],
// on ones: no NaN, no overflow.
func BenchmarkBinary(b *testing.B) {
	for op := Op(1); op < opEnd; op++ {
		for typ := Type(1); typ < typeEnd; typ++ {
			if Binary(op, typ) == nil {
				continue
			}
			for _, size := range benchSizes {
				for _, v := range versions {
					loop := v.binary[op][typ]
					if loop == nil {
						continue
					}
					b.Run(fmt.Sprintf("op=%v/type=%v/size=%s/version=%s", op, typ, size.name, v.name),
						func(b *testing.B) {
							dst, src := ones(typ, size.bytes), ones(typ, size.bytes)
							b.ReportAllocs()
							sample(b, size.bytes, func() { loop(dst, dst, src) })
						})
				}
			}
		}
	}
}

// BenchmarkUnary measures bytes of dst per second, see sample.
func BenchmarkUnary(b *testing.B) {
	const bytes = 64 << 10
	for _, v := range versions {
		for typ := Type(1); typ < typeEnd; typ++ {
			run := func(op string, to, from Type, loop func(dst, src []byte)) {
				b.Run(fmt.Sprintf("op=%s/type=%v/size=64KiB/version=%s", op, typ, v.name), func(b *testing.B) {
					dst, src := aligned(bytes), ones(from, bytes/to.Size()*from.Size())
					b.ReportAllocs()
					sample(b, bytes, func() { loop(dst, src) })
				})
			}
			if loop := v.square[typ]; loop != nil {
				run("square", typ, typ, loop)
			}
			if loop := v.divide[typ]; loop != nil {
				run("divide", typ, typ, func(dst, src []byte) { loop(dst, src, 3) })
			}
			if loop := v.widen[typ]; loop != nil {
				run("widen", Float32, typ, loop)
			}
			if loop := v.narrow[typ]; loop != nil {
				run("narrow", typ, Float32, loop)
			}
		}
	}
}

// aligned is n zero bytes that start at a cache line.
func aligned(n int) []byte {
	b := make([]byte, n+63)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63
	return b[skip : int(skip)+n : int(skip)+n]
}

// ones is n bytes of ones of type t.
func ones(t Type, n int) []byte {
	b := aligned(n)
	for i := range n / t.Size() {
		switch t {
		case Float16:
			view[uint16](b)[i] = F32ToF16(1)
		case BFloat16:
			view[uint16](b)[i] = F32ToBF16(1)
		case Float32:
			view[float32](b)[i] = 1
		case Float64:
			view[float64](b)[i] = 1
		default:
			b[i*t.Size()] = 1
		}
	}
	return b
}
