package kernel

import (
	"math"
	"testing"
)

// TestWidenAll holds every 16-bit float against the definition of its format.
func TestWidenAll(t *testing.T) {
	for typ, widen := range map[Type]func(uint16) float32{Float16: F16ToF32, BFloat16: BF16ToF32} {
		for h := range 1 << 16 {
			got := math.Float32bits(widen(uint16(h)))
			want := uint32(oracleWiden(typ, uint64(h)))
			if got != want {
				t.Fatalf("%v %04x widens to %08x, want %08x", typ, h, got, want)
			}
		}
	}
}

// TestNarrowRoundTrip: what was widened narrows to itself; a signalling NaN to its quiet one.
func TestNarrowRoundTrip(t *testing.T) {
	for h := range 1 << 16 {
		want := uint16(h)
		if h&0x7fff > 0x7c00 {
			want |= 0x0200
		}
		if got := F32ToF16(F16ToF32(uint16(h))); got != want {
			t.Fatalf("float16 %04x comes back as %04x, want %04x", h, got, want)
		}
		want = uint16(h)
		if h&0x7fff > 0x7f80 {
			want |= 0x0040
		}
		if got := F32ToBF16(BF16ToF32(uint16(h))); got != want {
			t.Fatalf("bfloat16 %04x comes back as %04x, want %04x", h, got, want)
		}
	}
}

// TestNarrowKnown holds a few values that everybody can look up.
func TestNarrowKnown(t *testing.T) {
	for _, c := range []struct {
		in        uint32
		f16, bf16 uint16
	}{
		{0x00000000, 0x0000, 0x0000},
		{0x80000000, 0x8000, 0x8000},
		{0x3f800000, 0x3c00, 0x3f80}, // 1
		{0xc0000000, 0xc000, 0xc000}, // -2
		{0x3eaaaaab, 0x3555, 0x3eab}, // 1/3
		{0x477fe000, 0x7bff, 0x4780}, // 65504
		{0x477fefff, 0x7bff, 0x4780}, // just below 65520
		{0x477ff000, 0x7c00, 0x4780}, // 65520
		{0x47800000, 0x7c00, 0x4780}, // 65536
		{0x33000000, 0x0000, 0x3300}, // 2^-25, half the smallest
		{0x33000001, 0x0001, 0x3300},
		{0x33800000, 0x0001, 0x3380}, // 2^-24
		{0x33c00000, 0x0002, 0x33c0}, // 1.5 * 2^-24
		{0x387fe000, 0x0400, 0x3880}, // half way from the largest subnormal to the smallest normal
		{0x7f7fffff, 0x7c00, 0x7f80}, // the largest
		{0x7f7f7fff, 0x7c00, 0x7f7f},
		{0x7f7f8000, 0x7c00, 0x7f80},
		{0x00000001, 0x0000, 0x0000},
		{0x00008000, 0x0000, 0x0000}, // half the smallest BFloat16
		{0x00008001, 0x0000, 0x0001},
		{0x00018000, 0x0000, 0x0002},
		{0x7f800000, 0x7c00, 0x7f80},
		{0xff800000, 0xfc00, 0xff80},
		{0x7fc00000, 0x7e00, 0x7fc0},
		{0x7f800001, 0x7e00, 0x7fc0}, // a signalling NaN whose payload has no room
		{0xffa02000, 0xff01, 0xffe0},
		{0xffffffff, 0xffff, 0xffff},
	} {
		f := math.Float32frombits(c.in)
		if got := F32ToF16(f); got != c.f16 {
			t.Errorf("F32ToF16(%08x) = %04x, want %04x", c.in, got, c.f16)
		}
		if got := F32ToBF16(f); got != c.bf16 {
			t.Errorf("F32ToBF16(%08x) = %04x, want %04x", c.in, got, c.bf16)
		}
	}
}

// TestNarrowNeighbours takes, for every finite 16-bit float and the infinity after the last, the value, the points half
// way to the next and a quarter and three quarters of the way, and the Float32s on either side of each.
func TestNarrowNeighbours(t *testing.T) {
	for _, typ := range []Type{Float16, BFloat16} {
		narrow := narrowOf(typ)
		values := finite16[typ]
		for i, v := range values {
			next := v
			if i+1 < len(values) {
				next = values[i+1]
			}
			for quarter := range 4 {
				at := float32(v + (next-v)*float64(quarter)/4)
				bits := math.Float32bits(at)
				for _, u := range []uint32{bits - 1, bits, bits + 1} {
					for _, sign := range []uint32{0, 1 << 31} {
						f := math.Float32frombits(u&^(1<<31) | sign)
						if got, want := uint64(narrow(f)), oracleNarrow(typ, f); got != want {
							t.Fatalf("%v(%08x = %g) is %04x, want %04x", typ, math.Float32bits(f), f, got, want)
						}
					}
				}
			}
		}
	}
}

// TestNarrowStride goes through all Float32s, NaNs included, in steps of a prime.
func TestNarrowStride(t *testing.T) {
	step := uint64(1009)
	if raceEnabled || testing.Short() {
		step = 65537
	}
	for _, typ := range []Type{Float16, BFloat16} {
		narrow := narrowOf(typ)
		for u := uint64(0); u < 1<<32; u += step {
			f := math.Float32frombits(uint32(u))
			if got, want := uint64(narrow(f)), oracleNarrow(typ, f); got != want {
				t.Fatalf("%v(%08x = %g) is %04x, want %04x", typ, u, f, got, want)
			}
		}
	}
}

func narrowOf(t Type) func(float32) uint16 {
	if t == Float16 {
		return F32ToF16
	}
	return F32ToBF16
}
