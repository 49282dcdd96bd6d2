package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The bits of the argument flags, as package kernel has them.
const (
	flagStream = 1 << iota
	flagDivide
	flagScale
)

const headerBytes = 24 // of a slice header: pointer, length, capacity

const foldSignature = "func(dsts, srcs [][]byte, off, end int, scale uint64, flags int)"

// variant is one way to fold with an operator.
type variant struct {
	*operator
	square bool // each source is squared first
	wide   bool // 16-bit floats: rounded once, at the end
}

// emitFolds writes the loops that fold several sources and store to several destinations, and plain copies.
func emitFolds(c *build.Context, t *table) {
	foldVariants(t, func(variant) bool { return true }, func(name string, v variant) { emitFold(c, t.isa, name, v) })
	emitCopies(c, t.isa)
	emitCopy(c, t)
}

// foldVariants enters in the table every fold that there is code for, and calls emit for those that need code of their
// own.
func foldVariants(t *table, there func(variant) bool, emit func(name string, v variant)) {
	for _, op := range operators() {
		for _, v := range []variant{{op, false, false}, {op, false, true}, {op, true, false}, {op, true, true}} {
			if v.square && op.name != "Add" || v.wide && op.class != half || !there(v) {
				continue
			}
			name := t.function(v.name(), op.code)
			if v.wide && op.exact {
				name = t.function("Fold"+op.name, op.code)
			}
			t.fold(op.name, op.element.name, v.square, v.wide, name)
			if op.code == op.element.name && !(v.wide && op.exact) {
				emit(name, v)
			}
		}
	}
}

func (v variant) name() string {
	name := "Fold"
	if v.wide {
		name += "Wide"
	}
	if v.square {
		name += "Square"
	}
	return name + v.operator.name
}

// doc is the loop in Go.
func (v variant) doc() string {
	first, next := "x", v.expr
	load := func(s string) string {
		if v.square {
			return s + " * " + s
		}
		return s
	}
	return fmt.Sprintf("for i := range dsts[0][off:end] { x := %s; for _, s := range srcs[1:] { y := %s; x = %s }; "+
		"x /= by; for _, d := range dsts { d[off+i] = %s } }%s",
		load("srcs[0][off+i]"), load("s[off+i]"), next, first, v.element.note())
}

// fold is a loop over columns: as much of each source as fills a few registers is folded, then stored everywhere.
type fold struct {
	*gen
	e                      *element
	dst, dstEnd            reg.Register // the headers of the destinations
	src, srcEnd            reg.Register // and of the sources
	off, end, flags, scale gp
	header, ptr            gp // where the inner loops are
}

// fold loads the arguments.
func (g *gen) fold(e *element) *fold {
	f := &fold{gen: g, e: e}
	headers := func(name string) (first, end reg.Register) {
		first = g.Load(g.Param(name).Base(), g.GP64())
		n := g.Load(g.Param(name).Len(), g.GP64())
		end = g.GP64()
		g.LEAQ(operand.Mem{Base: n, Index: n, Scale: 2}, end)
		g.LEAQ(operand.Mem{Base: first, Index: end, Scale: 8}, end)
		return first, end
	}
	f.dst, f.dstEnd = headers("dsts")
	f.src, f.srcEnd = headers("srcs")
	for _, a := range []struct {
		name string
		to   *gp
	}{{"off", &f.off}, {"end", &f.end}, {"flags", &f.flags}, {"scale", &f.scale}} {
		*a.to = g.Load(g.Param(a.name), g.GP64()).(gp)
	}
	f.header, f.ptr = g.GP64(), g.GP64()
	return f
}

func emitFold(c *build.Context, isa *isa, name string, v variant) {
	g := function(c, isa, name, foldSignature, v.doc())
	f := g.fold(v.element)
	v.prepare(g)
	square := arithmetic("Mul", "", v.element)
	if v.square {
		square.prepare(g)
	}
	rounds := v.class == half && !v.wide
	divides := v.class == half || v.class == float
	var by vec
	if divides {
		by = g.vec()
		g.broadcast(f.scale, v.lane(), by)
	}
	load := func(s operand.Op) vec {
		x := v.unpack(g, s)
		if v.square {
			square.step(g, x, x)
			if rounds {
				v.round(g, x)
			}
		}
		return x
	}
	f.emit(func(label string, at func(i int) operand.Op, n int) []vec {
		acc := make([]vec, n)
		f.MOVQ(operand.Mem{Base: f.src}, f.ptr)
		for i := range acc {
			acc[i] = load(at(i))
		}
		f.eachHeader("source"+label, f.src, f.srcEnd, headerBytes, func() {
			for i := range acc {
				if v.square {
					v.step(g, acc[i], load(at(i)))
				} else {
					v.step(g, acc[i], v.element.operand(g, at(i)))
				}
				if rounds && !v.exact {
					v.round(g, acc[i])
				}
			}
		})
		if divides {
			f.divide(label, acc, by)
		}
		for i := range acc {
			v.finish(g, acc[i])
			if v.settled {
				v.canonical(g, acc[i]) // a single source has seen no step
			}
			v.pack(g, acc[i])
		}
		return acc
	})
}

// divide divides by the divisor, or multiplies with its reciprocal, or does neither, as flags have it.
func (f *fold) divide(label string, acc []vec, by vec) {
	f.TESTQ(operand.I32(flagDivide|flagScale), f.flags)
	f.JEQ(operand.LabelRef("whole" + label))
	f.TESTQ(operand.I32(flagScale), f.flags)
	f.JNE(operand.LabelRef("scale" + label))
	for i := range acc {
		floatDiv[f.e.index()](f.Context, by, acc[i], acc[i])
	}
	f.JMP(operand.LabelRef("whole" + label))
	f.Label("scale" + label)
	for i := range acc {
		floatMul[f.e.index()](f.Context, by, acc[i], acc[i])
	}
	f.Label("whole" + label)
}

// eachHeader runs body with ptr being the pointer of each header from first+skip to end.
func (f *fold) eachHeader(label string, first, end reg.Register, skip int, body func()) {
	f.LEAQ(operand.Mem{Base: first, Disp: skip}, f.header)
	f.CMPQ(f.header, end)
	f.JEQ(operand.LabelRef(label + "done"))
	f.Label(label)
	f.MOVQ(operand.Mem{Base: f.header}, f.ptr)
	f.ADDQ(operand.I32(headerBytes), f.header)
	body()
	f.CMPQ(f.header, end)
	f.JNE(operand.LabelRef(label))
	f.Label(label + "done")
}

// at is where ptr has arrived, plus disp.
func (f *fold) at(disp int) operand.Mem {
	return operand.Mem{Base: f.ptr, Index: f.off, Scale: 1, Disp: disp}
}

// emit writes the loop over columns. body folds n registers; at(i) is the i-th register's worth at ptr.
//
// Main columns are of several registers. What is left over goes one register at a time, and with AVX-512 the last part
// of one under a mask; with AVX2 the caller sees to it that off to end fills registers.
func (f *fold) emit(body func(label string, at func(i int) operand.Op, n int) []vec) {
	span := f.span(f.e)
	n := f.columnRegisters()
	column := operand.I32(n * span)
	f.SUBQ(column, f.end)
	f.CMPQ(f.off, f.end)
	f.JGT(operand.LabelRef("rest"))
	f.Label("column")
	acc := body("", func(i int) operand.Op { return f.at(i * span) }, n)
	f.TESTQ(operand.I32(flagStream), f.flags)
	f.JNE(operand.LabelRef("stream"))
	store := func() {
		for i, v := range acc {
			f.store(f.packed(f.e, v), f.at(i*span))
		}
	}
	f.eachHeader("store", f.dst, f.dstEnd, 0, store)
	f.Label("next")
	f.ADDQ(column, f.off)
	f.CMPQ(f.off, f.end)
	f.JLE(operand.LabelRef("column"))

	f.Label("rest")
	f.ADDQ(operand.I32((n-1)*span), f.end) // the end, less one register
	f.CMPQ(f.off, f.end)
	f.JGT(operand.LabelRef("last"))
	f.Label("single")
	one := body("single", func(int) operand.Op { return f.at(0) }, 1)
	f.eachHeader("storesingle", f.dst, f.dstEnd, 0, func() { f.store(f.packed(f.e, one[0]), f.at(0)) })
	f.ADDQ(operand.I32(span), f.off)
	f.CMPQ(f.off, f.end)
	f.JLE(operand.LabelRef("single"))
	f.Label("last")
	if f.width == 64 {
		f.ADDQ(operand.I32(span), f.end)
		f.SUBQ(f.off, f.end) // now what is left
		f.JEQ(operand.LabelRef("done"))
		k := f.mask(f.end)
		part := body("last", func(int) operand.Op { return f.loadMasked(f.e, f.at(0), k) }, 1)
		f.eachHeader("storelast", f.dst, f.dstEnd, 0, func() { f.storeMasked(f.packed(f.e, part[0]), k, f.at(0)) })
		f.Label("done")
	}
	f.TESTQ(operand.I32(flagStream), f.flags)
	f.JEQ(operand.LabelRef("return"))
	f.SFENCE()
	f.Label("return")
	f.gen.end()

	// Past the caches, where a destination starts at a cache line; an ordinary store where not.
	f.Label("stream")
	f.eachHeader("streaming", f.dst, f.dstEnd, 0, func() {
		line := f.GP64()
		f.LEAQ(f.at(0), line)
		f.TESTQ(operand.I32(63), line)
		f.JNE(operand.LabelRef("unaligned"))
		for i, v := range acc {
			f.VMOVNTDQ(f.packed(f.e, v), f.at(i*span))
		}
		f.JMP(operand.LabelRef("streamed"))
		f.Label("unaligned")
		store()
		f.Label("streamed")
	})
	f.JMP(operand.LabelRef("next"))
}

// columnRegisters is how many registers make a column: 256 bytes of each source where there are registers enough.
func (f *fold) columnRegisters() int {
	if f.e.class == half && f.width == 64 {
		return 2 * unroll
	}
	return unroll
}

const copiesDoc = "for _, d := range dsts { copy(d[off:end], srcs[0][off:end]) }"

// emitCopies writes a fold of one source: it is stored to all destinations as it is.
func emitCopies(c *build.Context, isa *isa) {
	g := function(c, isa, isa.function("Copies", ""), foldSignature, copiesDoc)
	f := g.fold(&element{bytes: 1})
	f.emit(func(_ string, at func(i int) operand.Op, n int) []vec {
		acc := make([]vec, n)
		f.MOVQ(operand.Mem{Base: f.src}, f.ptr)
		for i := range acc {
			acc[i] = f.e.unpack(g, at(i))
		}
		return acc
	})
}

// emitCopy writes a copy past the caches.
func emitCopy(c *build.Context, t *table) {
	name := t.function("Copy", "")
	t.add("copy", "t.copy = %s", name)
	g := function(c, t.isa, name, "func(dst, src *byte, n int)",
		"copy(dst[:n], src[:n]) // dst starts at a cache line, n is a multiple of 256 and not 0")
	dst, src := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("src"), g.GP64())
	n := g.Load(g.Param("n"), g.GP64())
	off := g.GP64()
	g.XORQ(off, off)
	g.Label("line")
	var lines []vec
	for i := 0; i < 256; i += g.width {
		v := g.vec()
		g.load(operand.Mem{Base: src, Index: off, Scale: 1, Disp: i}, v)
		lines = append(lines, v)
	}
	for i, v := range lines {
		g.VMOVNTDQ(v, operand.Mem{Base: dst, Index: off, Scale: 1, Disp: i * g.width})
	}
	g.ADDQ(operand.I32(256), off)
	g.CMPQ(off, n)
	g.JNE(operand.LabelRef("line"))
	g.SFENCE()
	g.end()
}
