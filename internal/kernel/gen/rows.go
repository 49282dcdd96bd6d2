package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// rowsAhead is how many pairs ahead of its own a row's memory is asked for, and rowLines how many cache lines of it; what
// comes after these the processor finds out itself. Measured with popops's BenchmarkMultiUpdateAdd: 4 to 16 are as good.
const (
	rowsAhead = 8
	rowLines  = 4
)

// rowAdder is dst row += scale * src row, of pairs of rows.
type rowAdder struct {
	*elementwise
	add, mul *operator
	wide     bool // src is of 16-bit floats, dst of float32
	scale    vec
}

// emitRows writes the sums of rows, and those of 16-bit rows to float32 ones.
func emitRows(c *build.Context, t *table) {
	muls := map[string]*operator{}
	for _, op := range operators() {
		if op.name == "Mul" {
			muls[op.element.name] = op
		}
	}
	for _, op := range operators() {
		if op.name != "Add" {
			continue
		}
		name := t.function("AddRows", op.code)
		t.single("addRows", op.element.name, name)
		if op.code == op.element.name {
			emitRowAdder(c, t, name, op, muls[op.element.name], false)
		}
		if op.class == half {
			name := t.function("AddWideRows", op.element.name)
			t.single("addWideRows", op.element.name, name)
			emitRowAdder(c, t, name, op, muls[op.element.name], true)
		}
	}
}

func emitRowAdder(c *build.Context, t *table, name string, add, mul *operator, wide bool) {
	e := add.element
	doc := fmt.Sprintf("for _, p := range pairs { for i := range n%s { dst[row p>>32][i] += scale * src[row uint32(p)][i] } }%s", e.per(), e.note())
	g := function(c, t.isa, name, "func(dst, src *byte, pairs *uint64, count, n, dstStride, srcStride int, scale uint64)", doc)
	l := &elementwise{gen: g, e: e, off: g.GP64(), left: g.GP64()}
	a := &rowAdder{elementwise: l, add: add, mul: mul, wide: wide}
	param := func(name string) gp { return g.Load(g.Param(name), g.GP64()).(gp) }
	dst, src, pairs, count, n := param("dst"), param("src"), param("pairs"), param("count"), param("n")
	dstStride, srcStride := param("dstStride"), param("srcStride")
	a.scale = g.vec()
	if e.lane() >= 4 {
		g.broadcast(param("scale"), e.lane(), a.scale)
	} else {
		g.broadcastSmall(param("scale"), e.bytes, a.scale)
	}
	mul.prepare(g)
	add.prepare(g)
	dstRow, srcRow := g.GP64(), g.GP64()
	row := func(disp int, stride, base gp, to gp) {
		g.MOVL(operand.Mem{Base: pairs, Disp: disp}, to.As32())
		g.IMULQ(stride, to)
		g.ADDQ(base, to)
	}

	g.Label("row")
	g.CMPQ(count, operand.I32(rowsAhead))
	g.JLE(operand.LabelRef("near"))
	row(8*rowsAhead+4, dstStride, dst, dstRow)
	row(8*rowsAhead, srcStride, src, srcRow)
	for i := range rowLines {
		g.PREFETCHT0(operand.Mem{Base: dstRow, Disp: 64 * i})
		g.PREFETCHT0(operand.Mem{Base: srcRow, Disp: 64 * i})
	}
	g.Label("near")
	row(4, dstStride, dst, dstRow)
	row(0, srcStride, src, srcRow)
	l.ptrs = append(l.ptrs, dstRow, srcRow)
	g.MOVQ(n, l.left)
	a.columns()
	g.ADDQ(operand.I32(8), pairs)
	g.DECQ(count)
	g.JNE(operand.LabelRef("row"))
	g.end()
}

// columns adds l.left bytes of a row of src.
func (a *rowAdder) columns() {
	span := a.span(a.e)
	a.XORQ(a.off, a.off)
	a.SUBQ(operand.I32(unroll*span), a.left)
	a.JLT(operand.LabelRef("rest"))
	a.Label("main")
	a.registers(unroll)
	a.ADDQ(operand.I32(unroll*span), a.off)
	a.SUBQ(operand.I32(unroll*span), a.left)
	a.JGE(operand.LabelRef("main"))

	a.Label("rest")
	a.ADDQ(operand.I32((unroll-1)*span), a.left) // what is left, less one register
	a.JLT(operand.LabelRef("last"))
	a.Label("single")
	a.registers(1)
	a.ADDQ(operand.I32(span), a.off)
	a.SUBQ(operand.I32(span), a.left)
	a.JGE(operand.LabelRef("single"))
	a.Label("last")
	if a.width != 64 {
		return
	}
	a.ADDQ(operand.I32(span), a.left)
	a.JEQ(operand.LabelRef("done"))
	k := a.mask(a.left)
	acc := a.scaled(a.loadMasked(a.e, a.mem(1, 0), k))
	if a.wide {
		a.ADDQ(a.left, a.left)
		k = a.mask(a.left)
		sum := a.vec()
		a.VMOVDQU8_Z(a.dst(0), k, sum)
		a.sum(acc, sum)
		a.storeMasked(acc, k, a.dst(0))
	} else {
		a.sum(acc, a.add.operand(a.gen, a.loadMasked(a.e, a.dst(0), k)))
		a.e.pack(a.gen, acc)
		a.storeMasked(a.packed(a.e, acc), k, a.dst(0))
	}
	a.Label("done")
}

// registers adds n registers' worth.
func (a *rowAdder) registers(n int) {
	acc := make([]vec, n)
	for i := range acc {
		acc[i] = a.scaled(a.mem(1, i*a.span(a.e)))
	}
	for i := range acc {
		if a.wide {
			a.sum(acc[i], a.dst(i))
		} else {
			a.sum(acc[i], a.add.operand(a.gen, a.dst(i)))
		}
	}
	for i := range acc {
		if a.wide {
			a.store(acc[i], a.dst(i))
		} else {
			a.e.pack(a.gen, acc[i])
			a.store(a.packed(a.e, acc[i]), a.dst(i))
		}
	}
}

// dst is where the i-th register's worth goes.
func (a *rowAdder) dst(i int) operand.Mem {
	m := a.mem(0, i*a.span(a.e))
	if a.wide {
		m.Scale, m.Disp = 2, 2*m.Disp
	}
	return m
}

// scaled is a product with the scale, and sum adds to it.
func (a *rowAdder) scaled(s operand.Op) vec {
	acc := a.e.unpack(a.gen, s)
	a.mul.step(a.gen, acc, a.scale)
	return acc
}

func (a *rowAdder) sum(acc vec, s operand.Op) {
	a.add.step(a.gen, acc, s)
	a.add.finish(a.gen, acc)
}

// broadcastSmall fills v with the lower one or two bytes of r.
func (g *gen) broadcastSmall(r gp, bytes int, v vec) {
	g.VMOVQ(r, v.AsX())
	if bytes == 1 {
		g.VPBROADCASTB(v.AsX(), v)
	} else {
		g.VPBROADCASTW(v.AsX(), v)
	}
}
