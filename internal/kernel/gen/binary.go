package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const noSplit = attr.NOSPLIT

// unroll is how many registers a turn of the main loops works on.
const unroll = 4

// emitBinary writes dst[i] = a[i] op b[i] for every operator.
func emitBinary(c *build.Context, t *table) {
	for _, op := range operators() {
		name := t.function(op.name, op.code)
		t.binary(op.name, op.element.name, name)
		if op.code != op.element.name {
			continue
		}
		g := function(c, t.isa, name, "func(dst, a, b *byte, n int)", op.doc())
		l := g.elementwise(op.element, "dst", "a", "b")
		op.prepare(g)
		l.emit(func(at func(ptr, i int) operand.Op, n int) []vec {
			acc := make([]vec, n)
			for i := range acc {
				acc[i] = op.unpack(g, at(1, i))
			}
			for i := range acc {
				op.step(g, acc[i], op.operand(g, at(2, i)))
			}
			for i := range acc {
				op.finish(g, acc[i])
				op.pack(g, acc[i])
			}
			return acc
		})
	}
}

// doc is the loop in Go.
func (op *operator) doc() string {
	return fmt.Sprintf("for i := range n%s { x, y := a[i], b[i]; dst[i] = %s }%s", op.per(), op.expr, op.element.note())
}

// per is "/4" for elements of four bytes, and so on.
func (e *element) per() string {
	if e.bytes == 1 {
		return ""
	}
	return fmt.Sprintf("/%d", e.bytes)
}

// note is what a loop's comment adds.
func (e *element) note() string {
	switch e.class {
	case half:
		return " // in float32; a NaN made canonical"
	case float:
		return " // a NaN made canonical"
	}
	return ""
}

// elementwise is a loop over n bytes of several arrays of one element type, the first of them written.
type elementwise struct {
	*gen
	e         *element
	ptrs      []reg.Register
	off, left gp
}

// elementwise loads the arguments: pointers by name, and n.
func (g *gen) elementwise(e *element, ptrs ...string) *elementwise {
	l := &elementwise{gen: g, e: e}
	for _, p := range ptrs {
		l.ptrs = append(l.ptrs, g.Load(g.Param(p), g.GP64()))
	}
	l.left = g.Load(g.Param("n"), g.GP64()).(gp)
	l.off = g.GP64()
	return l
}

// emit writes the loop. body computes n registers' worth of dst; at(p, i) is the i-th register's worth of pointer p.
//
// The main loop does four registers at a time. What is left over goes one at a time, and with AVX-512 the last part of
// a register under a mask (for that only: masks for whole ones cost up to 3 ns a call); with AVX2 the caller sees to
// it that n fills registers.
func (l *elementwise) emit(body func(at func(ptr, i int) operand.Op, n int) []vec) {
	span := l.span(l.e)
	mem := func(ptr, i int) operand.Op { return l.mem(ptr, i*span) }

	l.XORQ(l.off, l.off)
	l.SUBQ(operand.I32(unroll*span), l.left)
	l.JLT(operand.LabelRef("rest"))
	l.Label("main")
	for i, v := range body(mem, unroll) {
		l.store(l.packed(l.e, v), l.mem(0, i*span))
	}
	l.ADDQ(operand.I32(unroll*span), l.off)
	l.SUBQ(operand.I32(unroll*span), l.left)
	l.JGE(operand.LabelRef("main"))

	l.Label("rest")
	l.ADDQ(operand.I32((unroll-1)*span), l.left) // what is left, less one register
	l.JLT(operand.LabelRef("last"))
	l.Label("single")
	l.store(l.packed(l.e, body(mem, 1)[0]), l.mem(0, 0))
	l.ADDQ(operand.I32(span), l.off)
	l.SUBQ(operand.I32(span), l.left)
	l.JGE(operand.LabelRef("single"))
	l.Label("last")
	if l.width == 64 {
		l.ADDQ(operand.I32(span), l.left)
		l.JEQ(operand.LabelRef("done"))
		k := l.mask(l.left)
		masked := func(ptr, i int) operand.Op { return l.loadMasked(l.e, l.mem(ptr, 0), k) }
		l.storeMasked(l.packed(l.e, body(masked, 1)[0]), k, l.mem(0, 0))
		l.Label("done")
	}
	l.end()
}

// mem is where pointer ptr has arrived, plus disp.
func (l *elementwise) mem(ptr, disp int) operand.Mem {
	return operand.Mem{Base: l.ptrs[ptr], Index: l.off, Scale: 1, Disp: disp}
}

// mask is a mask of n bytes.
func (g *gen) mask(n gp) reg.Register {
	ones, k := g.GP64(), g.K()
	g.MOVQ(operand.I32(-1), ones)
	g.BZHIQ(n, ones, ones)
	g.KMOVQ(ones, k)
	return k
}

// loadMasked loads the bytes of the mask, zeros for the others. Nothing else is touched.
func (g *gen) loadMasked(e *element, m operand.Mem, k reg.Register) operand.Op {
	v := g.vec()
	g.VMOVDQU8_Z(m, k, g.packed(e, v))
	return g.packed(e, v)
}

func (g *gen) storeMasked(v, k reg.Register, m operand.Mem) { g.VMOVDQU8(v, k, m) }
