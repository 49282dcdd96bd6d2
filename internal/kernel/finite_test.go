package kernel

import (
	"math"
	"testing"
)

// TestNotFinite: every type, length and place.
func TestNotFinite(t *testing.T) {
	type bits struct {
		good, bad []uint64
	}
	for d, b := range map[Type]bits{
		Float16:  {[]uint64{0, 0x8000, 0x7bff, 0xfbff, 0x03ff}, []uint64{0x7c00, 0xfc00, 0x7c01, 0xffff}},
		BFloat16: {[]uint64{0, 0x8000, 0x7f7f, 0xff7f, 0x007f}, []uint64{0x7f80, 0xff80, 0x7f81, 0xffff}},
		Float32: {[]uint64{0, 0x80000000, 0x7f7fffff, 0xff7fffff, 0x007fffff},
			[]uint64{0x7f800000, 0xff800000, 0x7f800001, 0xffffffff}},
		Float64: {[]uint64{0, 1 << 63, math.Float64bits(math.MaxFloat64), math.Float64bits(-math.MaxFloat64),
			1<<52 - 1},
			[]uint64{math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), 0x7ff0000000000001,
				math.MaxUint64}},
	} {
		for n := range 40 {
			for at := -1; at < n; at++ {
				x := make([]byte, n*d.Size())
				for i := range n {
					store(d, x, i, b.good[(i+at+n)%len(b.good)])
				}
				if at >= 0 {
					store(d, x, at, b.bad[(at+n)%len(b.bad)])
				}
				if got := NotFinite(d, x); got != at {
					t.Fatalf("%v: of %d elements the first is %d, want %d", d, n, got, at)
				}
			}
		}
	}
	for d := range typeEnd {
		x := make([]byte, 100*d.Size())
		for i := range x {
			x[i] = 0xff
		}
		want := -1
		if d >= Float16 {
			want = 0
		}
		if got := NotFinite(d, x); got != want {
			t.Errorf("%v: of all bits set the first is %d, want %d", d, got, want)
		}
	}
}
