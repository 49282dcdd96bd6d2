package main

import "fmt"

// emitNEONFolds writes the loops that fold several sources and store to several destinations, and plain copies.
func emitNEONFolds(f *neonFile, t *table) {
	foldVariants(t, func(v variant) bool {
		return v.neonStep() != nil && (!v.square || arithmetic("Mul", "", v.element).neonStep() != nil)
	}, func(name string, v variant) { emitNEONFold(f, name, v) })

	g := f.function(t.function("Copies", ""), neonFolding, copiesDoc)
	fold := g.fold(&element{bytes: 1}, 2*unroll)
	fold.emit(func(_ string, n int) []vreg {
		fold.first()
		return fold.e.loadNEON(g, n, foldPtr)
	})
}

// neonFold is a loop over columns: as much of each source as fills a few registers is folded, then stored everywhere.
type neonFold struct {
	*neonGen
	e      *element
	column int // how many times 16 bytes are folded at a time
}

// The registers of a fold.
const (
	foldDst, foldDstEnd = "R0", "R1" // the headers of the destinations
	foldSrc, foldSrcEnd = "R2", "R3" // and of the sources
	foldOff, foldEnd    = "R4", "R5"
	foldFlags           = "R6"
	foldHeader, foldPtr = "R7", "R8" // where the inner loops are
)

// fold loads the arguments.
func (g *neonGen) fold(e *element, column int) *neonFold {
	f := &neonFold{g, e, column}
	headers := func(name, first, end string) {
		g.argument(name+"_base", first)
		g.argument(name+"_len", end)
		g.op("ADD", end+"<<1", end)        // a header is of three words
		g.op("ADD", end+"<<3", first, end) // of eight bytes
	}
	headers("dsts", foldDst, foldDstEnd)
	headers("srcs", foldSrc, foldSrcEnd)
	g.argument("off", foldOff)
	g.argument("end", foldEnd)
	g.argument("flags", foldFlags)
	return f
}

func emitNEONFold(file *neonFile, name string, v variant) {
	g := file.function(name, neonFolding, v.doc())
	// Eight registers of elements, either way.
	f := g.fold(v.element, 2*unroll/v.registers())
	v.prepareNEON(g)
	step, square := v.neonStep(), arithmetic("Mul", "", v.element).neonStep()
	rounds := v.class == half && !v.wide
	divides := v.class == half || v.class == float
	var by vreg
	if divides {
		by = g.vecs(1)[0]
		g.argument("scale", scratch)
		g.op("VDUP", scratch, by.lanes(v.lane()))
	}
	load := func(n int) []vreg {
		x := v.loadNEON(g, n, foldPtr)
		if v.square {
			square(g, x, x)
			if rounds {
				v.roundNEON(g, x)
			}
		}
		return x
	}
	f.emit(func(label string, n int) []vreg {
		f.first()
		acc := load(n)
		f.op("ADD", fmt.Sprintf("$%d", headerBytes), foldSrc, foldHeader)
		f.op("CMP", foldSrcEnd, foldHeader)
		f.op("BEQ", "folded"+label)
		f.eachHeader("source"+label, foldSrcEnd, func() {
			y := load(n)
			step(g, acc, y)
			g.free(y)
			if rounds && !v.exact {
				v.roundNEON(g, acc)
			}
		})
		f.label("folded" + label)
		if divides {
			f.divide(label, acc, by)
		}
		v.finishNEON(g, acc)
		return acc
	})
}

// first has foldPtr point into the first source.
func (f *neonFold) first() {
	f.op("MOVD", at(0, foldSrc), foldPtr)
	f.op("ADD", foldOff, foldPtr)
}

// divide divides by the divisor, or multiplies with its reciprocal, or does neither, as flags have it.
func (f *neonFold) divide(label string, acc []vreg, by vreg) {
	f.op("TBNZ", fmt.Sprintf("$%d", laneIndex(flagScale)), foldFlags, "scale"+label)
	f.op("TBZ", fmt.Sprintf("$%d", laneIndex(flagDivide)), foldFlags, "whole"+label)
	f.same(nFDiv, f.e.lane(), acc, acc, by)
	f.op("JMP", "whole"+label)
	f.label("scale" + label)
	f.same(nFMul, f.e.lane(), acc, acc, by)
	f.label("whole" + label)
}

// eachHeader runs body with foldPtr pointing into what each header from foldHeader to end is of; there is one at least.
func (f *neonFold) eachHeader(label, end string, body func()) {
	f.label(label)
	f.op("MOVD.P", at(headerBytes, foldHeader), foldPtr)
	f.op("ADD", foldOff, foldPtr)
	body()
	f.op("CMP", end, foldHeader)
	f.op("BNE", label)
}

// emit writes the loop over columns. body folds n times 16 bytes.
//
// What is left over after whole columns goes in steps of 16 bytes; the caller sees to it that off to end is a multiple.
// There are no stores past the caches: nobody has measured whether they pay on an arm64.
func (f *neonFold) emit(body func(label string, n int) []vreg) {
	turn := func(label string, n int) {
		acc := body(label, n)
		packed := f.e.packNEON(f.neonGen, acc)
		f.op("MOVD", foldDst, foldHeader)
		f.eachHeader("store"+label, foldDstEnd, func() { f.store(packed, foldPtr) })
		f.free(acc)
		f.op("ADD", fmt.Sprintf("$%d", 16*n), foldOff)
		f.op("CMP", foldEnd, foldOff)
	}
	f.op("SUB", fmt.Sprintf("$%d", 16*f.column), foldEnd)
	f.op("CMP", foldEnd, foldOff)
	f.op("BGT", "rest")
	f.label("column")
	turn("", f.column)
	f.op("BLE", "column")
	f.label("rest")
	f.op("ADD", fmt.Sprintf("$%d", 16*(f.column-1)), foldEnd) // the end, less one register
	f.op("CMP", foldEnd, foldOff)
	f.op("BGT", "last")
	f.label("single")
	turn("single", 1)
	f.op("BLE", "single")
	f.label("last")
	f.op("RET")
}
