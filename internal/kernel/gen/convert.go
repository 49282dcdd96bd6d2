package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// emitConversions writes divisions, and the ways from a 16-bit float to float32 and back.
func emitConversions(c *build.Context, t *table) {
	for _, e := range elements {
		if e.class == half || e.class == float {
			emitScale(c, t, e, "divide", "/", floatDiv)
			emitScale(c, t, e, "scale", "*", floatMul)
		}
	}
	for _, e := range elements {
		if e.class == half {
			emitWiden(c, t, e)
			emitNarrow(c, t, e)
		}
	}
}

// scaleNames holds, by the field of the table, what functions are called.
var scaleNames = map[string]string{"divide": "Divide", "scale": "Scale"}

// The loops in Go.

func (e *element) scaleDoc(sign string) string {
	return fmt.Sprintf("for i := range n%s { dst[i] = src[i] %s by }%s", e.per(), sign, e.note())
}

func (e *element) widenDoc() string {
	return fmt.Sprintf("for i := range n { dst[i] = %sToF32(src[i]) } // n fills registers and is not 0", e.short())
}

func (e *element) narrowDoc() string {
	return fmt.Sprintf("for i := range n { dst[i] = F32To%s(src[i]) } // n fills registers and is not 0", e.short())
}

// emitScale writes dst[i] = src[i] / by, or * by.
func emitScale(c *build.Context, t *table, e *element, field, sign string, by [4]inst) {
	name := t.function(scaleNames[field], e.name)
	t.single(field, e.name, name)
	g := function(c, t.isa, name, "func(dst, src *byte, n int, by uint64)", e.scaleDoc(sign))
	l := g.elementwise(e, "dst", "src")
	e.prepare(g)
	factor := g.vec()
	g.broadcast(g.Load(g.Param("by"), g.GP64()).(gp), e.lane(), factor)
	l.emit(func(at func(ptr, i int) operand.Op, n int) []vec {
		acc := make([]vec, n)
		for i := range acc {
			acc[i] = e.unpack(g, at(1, i))
			by[e.index()](g.Context, factor, acc[i], acc[i])
			e.canonical(g, acc[i])
			e.pack(g, acc[i])
		}
		return acc
	})
}

const conversionSignature = "func(dst, src *byte, n int)"

// conversion writes a loop over n elements, a register of float32s a turn.
func (g *gen) conversion(dstBytes, srcBytes int, body func(dst, src operand.Mem)) {
	dst, src := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("src"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	lanes := g.width / 4
	g.Label("loop")
	body(operand.Mem{Base: dst}, operand.Mem{Base: src})
	g.ADDQ(operand.I32(lanes*dstBytes), dst)
	g.ADDQ(operand.I32(lanes*srcBytes), src)
	g.SUBQ(operand.I32(lanes), n)
	g.JNE(operand.LabelRef("loop"))
	g.end()
}

func emitWiden(c *build.Context, t *table, e *element) {
	name := t.function("Widen", e.name)
	t.single("widen", e.name, name)
	g := function(c, t.isa, name, conversionSignature, e.widenDoc())
	g.conversion(4, 2, func(dst, src operand.Mem) { g.store(e.unpack(g, src), dst) })
}

func emitNarrow(c *build.Context, t *table, e *element) {
	name := t.function("Narrow", e.name)
	t.single("narrow", e.name, name)
	g := function(c, t.isa, name, conversionSignature, e.narrowDoc())
	e.prepare(g)
	if e.name == "BFloat16" {
		g.constant("quiet", 4, 0x0040)
	}
	g.conversion(2, 4, func(dst, src operand.Mem) {
		v := g.reg(src)
		if e.name == "BFloat16" {
			narrowBFloat16(g, e, v)
		} else {
			e.pack(g, v)
		}
		g.store(g.half(v), dst)
	})
}

// narrowBFloat16 rounds numbers, and cuts off NaNs: rounded, one could become an infinity or a zero.
func narrowBFloat16(g *gen, e *element, v vec) {
	nan := g.vec()
	g.VPSRLD(operand.U8(16), v, nan)
	g.or(g.constants["quiet"], nan, nan)
	if g.width == 64 {
		k := g.K()
		e.compare(g, v, v, k)
		e.nearest(g, v)
		g.VPSRLD(operand.U8(16), v, v)
		e.moveMasked(g, nan, k, v)
	} else {
		is := g.vec()
		e.compare(g, v, v, is)
		e.nearest(g, v)
		g.VPSRLD(operand.U8(16), v, v)
		e.blend(g, is, nan, v)
	}
	g.narrow(v)
}

// short is the type's name in the names of Go's conversions.
func (e *element) short() string {
	if e.name == "Float16" {
		return "F16"
	}
	return "BF16"
}
