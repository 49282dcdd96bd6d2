package tensor

import (
	"math"
	"testing"
)

// TestRoundTrip takes all 65,536 values of both types to float32 and back: the same bits, but that a NaN becomes quiet.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for h := range 1 << 16 {
		f, b := Float16(h), BFloat16(h)
		if f.IsNaN() {
			if got, want := Float16FromFloat32(f.Float32()), f|0x0200; got != want {
				t.Errorf("float16 NaN %04x comes back as %04x", h, uint16(got))
			}
		} else if got := Float16FromFloat32(f.Float32()); got != f {
			t.Errorf("float16 %04x comes back as %04x", h, uint16(got))
		}
		if b.IsNaN() {
			if got, want := BFloat16FromFloat32(b.Float32()), b|0x0040; got != want {
				t.Errorf("bfloat16 NaN %04x comes back as %04x", h, uint16(got))
			}
		} else if got := BFloat16FromFloat32(b.Float32()); got != b {
			t.Errorf("bfloat16 %04x comes back as %04x", h, uint16(got))
		}
		for sign := -1; sign <= 1; sign++ {
			wide := float64(f.Float32())
			if f.IsNaN() != math.IsNaN(wide) || f.IsInf(sign) != math.IsInf(wide, sign) {
				t.Errorf("float16 %04x: IsNaN %v, IsInf(%d) %v", h, f.IsNaN(), sign, f.IsInf(sign))
			}
			wide = float64(b.Float32())
			if b.IsNaN() != math.IsNaN(wide) || b.IsInf(sign) != math.IsInf(wide, sign) {
				t.Errorf("bfloat16 %04x: IsNaN %v, IsInf(%d) %v", h, b.IsNaN(), sign, b.IsInf(sign))
			}
		}
	}
}

func TestFloatStrings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    float32
		f16  string
		bf16 string
	}{
		{0, "0", "0"},
		{float32(math.Copysign(0, -1)), "-0", "-0"},
		{1.5, "1.5", "1.5"},
		{1. / 3, "0.33325195", "0.33398438"},
		{65504, "65504", "65536"},
		{65519.996, "65504", "65536"},
		{65520, "+Inf", "65536"},
		{1e-7, "1.1920929e-07", "1.0011718e-07"},
		{float32(math.Inf(-1)), "-Inf", "-Inf"},
		{float32(math.NaN()), "NaN", "NaN"},
		{math.MaxFloat32, "+Inf", "+Inf"},
	} {
		if got := Float16FromFloat32(c.f).String(); got != c.f16 {
			t.Errorf("%g as float16 is %s, want %s", c.f, got, c.f16)
		}
		if got := BFloat16FromFloat32(c.f).String(); got != c.bf16 {
			t.Errorf("%g as bfloat16 is %s, want %s", c.f, got, c.bf16)
		}
	}
}
