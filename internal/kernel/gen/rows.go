package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// rowsAhead is how many pairs ahead of its own a row's memory is asked for, and rowLines how many cache lines of it;
// what comes after these the processor finds out itself. Measured with popops's BenchmarkMultiUpdateAdd: 4 to 16 are as
// good.
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

// emitRows writes the copy of rows, the sums of rows, and those of 16-bit rows to float32 ones.
func emitRows(c *build.Context, t *table) {
	emitCopyRows(c, t)
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
	doc := fmt.Sprintf("for _, p := range pairs { for i := range n%s { dst[row p>>32][i] += scale * src[row "+
		"uint32(p)][i] } }%s", e.per(), e.note())
	g := function(c, t.isa, name, "func(dst, src *byte, pairs *uint64, count, n, dstStride, srcStride int, scale "+
		"uint64)", doc)
	l := &elementwise{gen: g, e: e, off: g.GP64(), left: g.GP64()}
	a := &rowAdder{elementwise: l, add: add, mul: mul, wide: wide, scale: g.vec()}
	scale := g.Load(g.Param("scale"), g.GP64()).(gp)
	if e.lane() >= 4 {
		g.broadcast(scale, e.lane(), a.scale)
	} else {
		g.broadcastSmall(scale, e.bytes, a.scale)
	}
	mul.prepare(g)
	add.prepare(g)
	l.eachPair(a.columns)
}

// emitCopyRows writes the copy of rows.
func emitCopyRows(c *build.Context, t *table) {
	name := t.function("CopyRows", "")
	t.add("addWideRows", "t.copyRows = %s", name)
	doc := "for _, p := range pairs { for i := range n { dst[row p>>32][i] = src[row uint32(p)][i] } }"
	g := function(c, t.isa, name, "func(dst, src *byte, pairs *uint64, count, n, dstStride, srcStride int)", doc)
	bytes := &element{"Uint8", 1, unsigned}
	l := &elementwise{gen: g, e: bytes, off: g.GP64(), left: g.GP64()}
	l.eachPair(func() {
		l.turns(func(n int) {
			vs := make([]vec, n)
			for i := range vs {
				vs[i] = g.reg(l.mem(1, i*g.width))
			}
			for i, v := range vs {
				g.store(v, l.mem(0, i*g.width))
			}
		}, func() {
			k := g.mask(l.left)
			g.storeMasked(l.loadMasked(bytes, l.mem(1, 0), k).(vec), k, l.mem(0, 0))
		})
	})
}

// eachPair loops over the pairs: the arguments are dst, src, pairs, count, n, dstStride and srcStride. columns does one
// pair of rows, which the pointers 0 and 1 are at, of left bytes.
func (l *elementwise) eachPair(columns func()) {
	param := func(name string) gp { return l.Load(l.Param(name), l.GP64()).(gp) }
	dst, src, pairs, count, n := param("dst"), param("src"), param("pairs"), param("count"), param("n")
	dstStride, srcStride := param("dstStride"), param("srcStride")
	dstRow, srcRow := l.GP64(), l.GP64()
	row := func(disp int, stride, base gp, to gp) {
		l.MOVL(operand.Mem{Base: pairs, Disp: disp}, to.As32())
		l.IMULQ(stride, to)
		l.ADDQ(base, to)
	}

	l.Label("row")
	l.CMPQ(count, operand.I32(rowsAhead))
	l.JLE(operand.LabelRef("near"))
	row(8*rowsAhead+4, dstStride, dst, dstRow)
	row(8*rowsAhead, srcStride, src, srcRow)
	for i := range rowLines {
		l.PREFETCHT0(operand.Mem{Base: dstRow, Disp: 64 * i})
		l.PREFETCHT0(operand.Mem{Base: srcRow, Disp: 64 * i})
	}
	l.Label("near")
	row(4, dstStride, dst, dstRow)
	row(0, srcStride, src, srcRow)
	l.ptrs = append(l.ptrs, dstRow, srcRow)
	l.MOVQ(n, l.left)
	columns()
	l.ADDQ(operand.I32(8), pairs)
	l.DECQ(count)
	l.JNE(operand.LabelRef("row"))
	l.end()
}

// turns goes through left bytes: registers does n registers' worth, masked what does not fill one, with AVX-512.
func (l *elementwise) turns(registers func(n int), masked func()) {
	span := l.span(l.e)
	l.XORQ(l.off, l.off)
	l.SUBQ(operand.I32(unroll*span), l.left)
	l.JLT(operand.LabelRef("rest"))
	l.Label("main")
	registers(unroll)
	l.ADDQ(operand.I32(unroll*span), l.off)
	l.SUBQ(operand.I32(unroll*span), l.left)
	l.JGE(operand.LabelRef("main"))

	l.Label("rest")
	l.ADDQ(operand.I32((unroll-1)*span), l.left) // what is left, less one register
	l.JLT(operand.LabelRef("last"))
	l.Label("single")
	registers(1)
	l.ADDQ(operand.I32(span), l.off)
	l.SUBQ(operand.I32(span), l.left)
	l.JGE(operand.LabelRef("single"))
	l.Label("last")
	if l.width == 64 {
		l.ADDQ(operand.I32(span), l.left)
		l.JEQ(operand.LabelRef("done"))
		masked()
		l.Label("done")
	}
}

// columns adds l.left bytes of a row of src.
func (a *rowAdder) columns() { a.turns(a.registers, a.masked) }

// masked adds what does not fill a register.
func (a *rowAdder) masked() {
	k := a.mask(a.left)
	acc := a.scaled(a.loadMasked(a.e, a.mem(1, 0), k))
	if a.wide {
		a.ADDQ(a.left, a.left)
		k = a.mask(a.left)
		sum := a.vec()
		a.VMOVDQU8_Z(a.dst(0), k, sum)
		a.sum(acc, sum)
		a.storeMasked(acc, k, a.dst(0))
		return
	}
	a.sum(acc, a.add.operand(a.gen, a.loadMasked(a.e, a.dst(0), k)))
	a.e.pack(a.gen, acc)
	a.storeMasked(a.packed(a.e, acc), k, a.dst(0))
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
