package oracle

import (
	"math"
	"testing"

	"gogcl.dev/tensor"
)

func TestReduceByHand(t *testing.T) {
	a, b := []float32{1, 2, 3, 4}, []float32{5, 6, 7, 8}
	for op, want := range map[Operator][]float32{
		Add: {6, 8, 10, 12}, Mul: {5, 12, 21, 32}, Mean: {3, 4, 5, 6}, Min: a, Max: b, SquareAdd: {26, 40, 58, 80},
	} {
		if err := Check(string(op), Reduce(op, [][]float32{a, b}), want); err != nil {
			t.Error(err)
		}
	}
	if err := Check("wraps", Reduce(Add, [][]int8{{100}, {100}}), []int8{-56}); err != nil {
		t.Error(err)
	}
	if err := Check("unsigned", Reduce(Max, [][]uint8{{200}, {100}}), []uint8{200}); err != nil {
		t.Error(err)
	}
	for op, want := range map[Operator][]bool{LogicalAnd: {true, false, false}, LogicalOr: {true, true, false}} {
		if err := Check(string(op), Reduce(op, [][]bool{{true, true, false}, {true, false, false}}), want); err != nil {
			t.Error(err)
		}
	}
	// One input alone is copied: no square, no canonical NaN.
	odd := math.Float32frombits(0xffc00001)
	if err := Check("alone", Reduce(SquareAdd, [][]float32{{3, odd}}), []float32{3, odd}); err != nil {
		t.Error(err)
	}
}

// TestReduceRounds: 16-bit elements are rounded once, from float32; the others after each rank. A Mean divides once.
func TestReduceRounds(t *testing.T) {
	half := func(v float32) tensor.Float16 { return tensor.Float16FromFloat32(v) }
	// 2048+1 rounds to 2048 in float16: rounded twice the sum would be 2048.
	sum := Reduce(Add, [][]tensor.Float16{{half(2048)}, {half(1)}, {half(1)}})
	if err := Check("float16", sum, []tensor.Float16{half(2050)}); err != nil {
		t.Error(err)
	}
	in := [][]float32{{1e8}, {1}, {-1e8}, {1}}
	if err := Check("float32", Reduce(Add, in), []float32{1}); err != nil {
		t.Error(err)
	}
	if err := Check("mean", Reduce(Mean, [][]float32{{1}, {0}, {0}}), []float32{1 / float32(3)}); err != nil {
		t.Error(err)
	}
	var first, last float32 = 1e-4, 5 // the sum of their squares rounds otherwise when it is fused
	for range 100 {
		first += 1e-4
		want := float32(first*first) + float32(last*last)
		if err := Check("squares", Reduce(SquareAdd, [][]float32{{first}, {last}}), []float32{want}); err != nil {
			t.Error(err)
		}
	}
}

// TestReduceNaN: any NaN gives the canonical one, and -0 is less than 0.
func TestReduceNaN(t *testing.T) {
	odd, minus := math.Float32frombits(0xff800001), float32(math.Copysign(0, -1))
	canonical := math.Float32frombits(0x7fc00000)
	for _, op := range []Operator{Add, Mean, Mul, Min, Max, SquareAdd} {
		if err := Check(string(op), Reduce(op, [][]float32{{odd}, {1}}), []float32{canonical}); err != nil {
			t.Error(err)
		}
		if err := Check(string(op), Reduce(op, [][]float32{{1}, {odd}}), []float32{canonical}); err != nil {
			t.Error(err)
		}
		if got := Reduce(op, [][]tensor.Float16{{0x7d01}, {0}}); got[0] != 0x7e00 {
			t.Errorf("%s: %#x", op, uint16(got[0]))
		}
		if got := Reduce(op, [][]tensor.BFloat16{{0xff81}, {0}}); got[0] != 0x7fc0 {
			t.Errorf("%s: %#x", op, uint16(got[0]))
		}
		double := Reduce(op, [][]float64{{math.Float64frombits(0xfff8000000000001)}, {0}})
		if bits := math.Float64bits(double[0]); bits != 0x7ff8000000000000 {
			t.Errorf("%s: %#x", op, bits)
		}
	}
	if err := Check("min", Reduce(Min, [][]float32{{0}, {minus}}), []float32{minus}); err != nil {
		t.Error(err)
	}
	if err := Check("max", Reduce(Max, [][]float32{{minus}, {0}}), []float32{0}); err != nil {
		t.Error(err)
	}
}

// TestReducePanics: an operator on a dtype that it does not take is a mistake of the caller.
func TestReducePanics(t *testing.T) {
	for name, f := range map[string]func(){
		"mean of integers": func() { Reduce(Mean, [][]int32{{1}, {2}}) },
		"sum of bools":     func() { Reduce(Add, [][]bool{{true}, {false}}) },
		"local":            func() { Reduce(Local, [][]int32{{1}, {2}}) },
		"unknown":          func() { Reduce("SUB", [][]int32{{1}, {2}}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}
