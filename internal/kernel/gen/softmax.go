package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitSoftmax writes the greatest of a row, the exponentials of one with their sum, and the product with a number.
func emitSoftmax(c *build.Context, t *table) {
	for _, e := range elements {
		if e.class != float {
			continue
		}
		name := t.function("Greatest", e.name)
		t.single("greatest", e.name, name)
		emitGreatest(c, t, name, e)

		name = t.function("ShiftedExp", e.name)
		t.single("shiftedExp", e.name, name)
		emitShiftedExp(c, t, name, e)

		name = t.function("ScaleWide", e.name)
		t.single("scaleBy", e.name, name)
		l := newCalculator(c, t.isa, e, name, "func(dst, src *byte, n int, by uint64, constants *float64)",
			fmt.Sprintf("for i := range n%s { dst[i] = src[i] * by } // in float64; a NaN made canonical", e.per()),
			"dst", "src")
		by := l.vec()
		l.broadcast(l.Load(l.Param("by"), l.GP64()).(gp), 8, by)
		l.turns(func(k operand.Op) { l.result(l.mul(l.wide(1, k), by), k) })
	}
}

// emitGreatest has NaNs passed over: the maximum is its second operand where one of them is a NaN.
func emitGreatest(c *build.Context, t *table, name string, e *element) {
	g := function(c, t.isa, name, "func(src *byte, n int) uint64",
		fmt.Sprintf("g := -inf; for i := range n%s { if src[i] > g { g = src[i] } }; return bits of g", e.per()))
	l := g.elementwise(e, "src")
	low := g.vec()
	bits := uint64(math.Float32bits(float32(math.Inf(-1))))
	if e.bytes == 8 {
		bits = math.Float64bits(math.Inf(-1))
	}
	g.constant("lowest", e.bytes, bits)
	var accs [unroll]vec
	for i := range accs {
		accs[i] = g.vec()
		g.load(g.constants["lowest"], accs[i])
	}
	most := func(s operand.Op, acc reg.Register) { // avo's order of operands is the reverse of the manual's
		v := g.vec()
		switch x := s.(type) {
		case operand.Mem:
			g.load(x, v)
		case vec:
			v = x
		}
		floatMax[e.index()](c, acc, v, acc)
	}
	l.turns(func(n int) {
		for i := range n {
			most(l.mem(0, i*g.width), accs[i])
		}
	}, func() {
		g.load(g.constants["lowest"], low)
		k := g.mask(l.left)
		g.VMOVDQU8(l.mem(0, 0), k, low)
		most(low, accs[0])
	})
	for i := 1; i < len(accs); i++ {
		most(accs[i], accs[0])
	}
	acc := accs[0]
	if g.width == 64 {
		upper := g.YMM()
		g.VEXTRACTF64X4(operand.U8(1), acc, upper)
		floatMax[e.index()](c, upper, acc.AsY(), acc.AsY())
	}
	x, upper := acc.AsX(), g.XMM()
	g.VEXTRACTF128(operand.U8(1), acc.AsY(), upper)
	floatMax[e.index()](c, upper, x, x)
	g.VPERMILPD(operand.U8(1), x, upper)
	floatMax[e.index()](c, upper, x, x)
	out := g.GP64()
	if e.bytes == 4 {
		g.VPERMILPS(operand.U8(1), x, upper)
		floatMax[e.index()](c, upper, x, x)
		g.VMOVD(x, out.As32())
	} else {
		g.VMOVQ(x, out)
	}
	g.Store(out, g.ReturnIndex(0))
	l.end()
}

// emitShiftedExp takes eights of elements.
func emitShiftedExp(c *build.Context, t *table, name string, e *element) {
	l := newCalculator(c, t.isa, e, name, "func(dst, src *byte, n int, shift uint64, constants *float64) float64",
		fmt.Sprintf("for i := range n%s { dst[i] = exp(src[i] - shift); sums[i%%8] += it }; return their sum", e.per()),
		"dst", "src")
	shift := l.vec()
	l.broadcast(l.Load(l.Param("shift"), l.GP64()).(gp), e.bytes, shift)
	sums := make([]vec, 64/l.width)
	for i := range sums {
		sums[i] = l.vec()
		l.xor(sums[i], sums[i], sums[i])
	}
	l.loop(8*e.bytes, func() {
		for i, sum := range sums {
			x := l.vec()
			from := l.mem(1, i*l.step())
			if e.bytes == 4 {
				l.VMOVUPS(from, l.half(x))
				l.VSUBPS(l.half(shift), l.half(x), l.half(x))
				l.VCVTPS2PD(l.half(x), x)
			} else {
				l.load(from, x)
				l.VSUBPD(shift, x, x)
			}
			y := l.exp(x, nil)
			l.VADDPD(y, sum, sum)
			l.resultAt(y, i*l.step())
		}
	})
	upper := l.YMM()
	if l.width == 64 {
		l.VEXTRACTF64X4(operand.U8(1), sums[0], upper)
	} else {
		l.load(sums[1], upper)
	}
	sum, half := sums[0].AsX(), l.XMM()
	l.VADDPD(upper, sums[0].AsY(), sums[0].AsY())
	l.VEXTRACTF128(operand.U8(1), sums[0].AsY(), half)
	l.VADDPD(half, sum, sum)
	l.VPERMILPD(operand.U8(1), sum, half)
	l.VADDSD(half, sum, sum)
	l.Store(sum, l.ReturnIndex(0))
	l.end()
}
