package main

import (
	"fmt"
	"path/filepath"
)

// emitNEON writes the files for arm64.
func emitNEON(out string) error {
	t := &table{isa: neon}
	for _, f := range []struct {
		name string
		emit func(*neonFile, *table)
	}{
		{"binary", emitNEONBinary},
		{"fold", emitNEONFolds},
		{"convert", emitNEONConversions},
	} {
		file := newNEONFile()
		f.emit(file, t)
		if err := file.write(filepath.Join(out, f.name+"_neon_arm64")); err != nil {
			return err
		}
	}
	return t.write(filepath.Join(out, "table_neon_arm64.go"))
}

// emitNEONBinary writes dst[i] = a[i] op b[i].
func emitNEONBinary(f *neonFile, t *table) {
	for _, op := range operators() {
		step := op.neonStep()
		if step == nil {
			continue
		}
		name := t.function(op.name, op.code)
		t.binary(op.name, op.element.name, name)
		if op.code != op.element.name {
			continue
		}
		g := f.function(name, neonBinary, op.doc())
		l := g.elementwise(op.element, "a", "b")
		l.emit(func(n int) []vreg {
			acc := op.loadNEON(g, n, l.ptrs[1])
			y := op.loadNEON(g, n, l.ptrs[2])
			step(g, acc, y)
			g.free(y)
			op.finishNEON(g, acc)
			return acc
		})
	}
}

// emitNEONConversions writes divisions, and the ways from a 16-bit float to float32 and back.
func emitNEONConversions(f *neonFile, t *table) {
	for _, e := range elements {
		if e.class == half || e.class == float {
			emitNEONScale(f, t, e, "divide", "/", nFDiv)
			emitNEONScale(f, t, e, "scale", "*", nFMul)
		}
	}
	for _, e := range elements {
		if e.class == half {
			emitNEONWiden(f, t, e)
			emitNEONNarrow(f, t, e)
		}
	}
}

// emitNEONScale writes dst[i] = src[i] / by, or * by.
func emitNEONScale(f *neonFile, t *table, e *element, field, sign string, by neonInst) {
	name := t.function(scaleNames[field], e.name)
	t.single(field, e.name, name)
	g := f.function(name, neonScale, e.scaleDoc(sign))
	l := g.elementwise(e, "src")
	factor := g.vecs(1)[0]
	g.argument("by", scratch)
	g.op("VDUP", scratch, factor.lanes(e.lane()))
	l.emit(func(n int) []vreg {
		acc := e.loadNEON(g, n, l.ptrs[1])
		g.same(by, e.lane(), acc, acc, factor)
		e.finishNEON(g, acc)
		return acc
	})
}

// neonLoop is a loop over n bytes of several arrays of one element type, the first of them written.
type neonLoop struct {
	*neonGen
	e    *element
	ptrs []string
}

// left is the register that counts.
const left = "R8"

// elementwise loads the arguments dst, those named and n, and the constants of the element type.
func (g *neonGen) elementwise(e *element, ptrs ...string) *neonLoop {
	l := &neonLoop{neonGen: g, e: e}
	for i, p := range append([]string{"dst"}, ptrs...) {
		l.ptrs = append(l.ptrs, fmt.Sprintf("R%d", i))
		g.argument(p, l.ptrs[i])
	}
	g.argument("n", left)
	e.prepareNEON(g)
	return l
}

// emit writes the loop. body computes n times 16 bytes of dst from where the pointers are.
//
// The main loop does 64 bytes at a time, what is left over goes in steps of 16; the caller sees to it that n is a
// multiple of that.
func (l *neonLoop) emit(body func(n int) []vreg) {
	turn := func(n int) {
		acc := body(n)
		l.store(l.e.packNEON(l.neonGen, acc), l.ptrs[0])
		l.free(acc)
		for _, p := range l.ptrs {
			l.op("ADD", fmt.Sprintf("$%d", 16*n), p)
		}
		l.op("SUBS", fmt.Sprintf("$%d", 16*n), left)
	}
	l.op("SUBS", fmt.Sprintf("$%d", 16*unroll), left)
	l.op("BLT", "rest")
	l.label("main")
	turn(unroll)
	l.op("BGE", "main")
	l.label("rest")
	l.op("ADDS", fmt.Sprintf("$%d", 16*(unroll-1)), left) // what is left, less one register
	l.op("BLT", "last")
	l.label("single")
	turn(1)
	l.op("BGE", "single")
	l.label("last")
	l.op("RET")
}

// conversion writes a loop over n elements, eight a turn.
func (g *neonGen) conversion(dstBytes, srcBytes int, body func(dst, src string)) {
	const dst, src = "R0", "R1"
	g.argument("dst", dst)
	g.argument("src", src)
	g.argument("n", left)
	g.label("loop")
	body(dst, src)
	g.op("ADD", fmt.Sprintf("$%d", 8*dstBytes), dst)
	g.op("ADD", fmt.Sprintf("$%d", 8*srcBytes), src)
	g.op("SUBS", "$8", left)
	g.op("BNE", "loop")
	g.op("RET")
}

func emitNEONWiden(f *neonFile, t *table, e *element) {
	name := t.function("Widen", e.name)
	t.single("widen", e.name, name)
	g := f.function(name, neonConversion, e.widenDoc())
	e.prepareNEON(g)
	g.conversion(4, 2, func(dst, src string) { g.store(e.loadNEON(g, 1, src), dst) })
}

func emitNEONNarrow(f *neonFile, t *table, e *element) {
	name := t.function("Narrow", e.name)
	t.single("narrow", e.name, name)
	g := f.function(name, neonConversion, e.narrowDoc())
	e.prepareNEON(g)
	if e.name == "BFloat16" {
		g.constant("quiet", 4, 0x00400000)
	}
	g.conversion(2, 4, func(dst, src string) {
		v := g.vecs(2)
		g.load(v, src)
		if e.name == "BFloat16" {
			narrowBFloat16NEON(g, e, v)
			v = lowerOf(v)
		} else {
			v = e.packNEON(g, v)
		}
		g.store(v, dst)
	})
}

// narrowBFloat16NEON rounds numbers, and cuts off NaNs: rounded, one could become an infinity or a zero.
func narrowBFloat16NEON(g *neonGen, e *element, v []vreg) {
	number, nan := g.vecs(len(v)), g.vecs(len(v))
	g.each(nFCmeq, 4, number, v, v)
	g.same(nOr, 4, nan, v, g.constants["quiet"])
	e.nearestNEON(g, v)
	g.each(nBif, 1, v, nan, number)
	upperHalves(g, v)
	g.free(number)
	g.free(nan)
}
