package main

// registers is how many registers the elements of 16 bytes of memory take: 16-bit floats are float32s there.
func (e *element) registers() int {
	if e.class == half {
		return 2
	}
	return 1
}

// prepareNEON makes ready what the functions below need.
func (e *element) prepareNEON(g *neonGen) {
	switch {
	case e.class == boolean:
		g.constant("ones", 4, 0x01010101)
	case e.class == half || e.name == "Float32":
		g.constant("nan", 4, 0x7fc00000)
	case e.class == float:
		g.constant("nan", 8, 0x7ff8000000000000)
	}
	if e.name == "BFloat16" {
		g.constant("zero", 4, 0)
		g.constant("one", 4, 1)
		g.constant("below half", 4, 0x7fff)
		g.constant("upper", 4, 0xffff0000)
	}
}

// loadNEON is n times 16 bytes of memory at ptr, as elements in registers.
func (e *element) loadNEON(g *neonGen, n int, ptr string) []vreg {
	all := g.vecs(n * e.registers())
	if e.class != half {
		g.load(all, ptr)
		return all
	}
	g.load(lowerOf(all), ptr)
	for i := 0; i < len(all); i += 2 {
		lower, upper := all[i], all[i+1]
		if e.name == "Float16" {
			g.convert(nFCvtl2, upper, lower)
			g.convert(nFCvtl, lower, lower)
		} else {
			g.do(nZip2, 2, upper, g.constants["zero"], lower)
			g.do(nZip1, 2, lower, g.constants["zero"], lower)
		}
	}
	return all
}

// packNEON is v as it lies in memory, rounding 16-bit floats to nearest even; it spoils v. A NaN in v must be one that
// a BFloat16 has the bits for.
func (e *element) packNEON(g *neonGen, v []vreg) []vreg {
	switch e.name {
	case "Float16":
		for i := 0; i < len(v); i += 2 {
			g.convert(nFCvtn, v[i], v[i])
			g.convert(nFCvtn2, v[i], v[i+1])
		}
		return lowerOf(v)
	case "BFloat16":
		e.nearestNEON(g, v)
		upperHalves(g, v)
		return lowerOf(v)
	}
	return v
}

// lowerOf is the first register of each two.
func lowerOf(v []vreg) []vreg {
	var lower []vreg
	for i := 0; i < len(v); i += 2 {
		lower = append(lower, v[i])
	}
	return lower
}

// upperHalves gathers the upper halves of the 32-bit lanes of two registers in the first of them.
func upperHalves(g *neonGen, v []vreg) {
	for i := 0; i < len(v); i += 2 {
		g.do(nUzp2, 2, v[i], v[i], v[i+1])
	}
}

// nearestNEON adds to a float32 what makes its upper half the nearest BFloat16, to nearest even: 0x7fff, and 1 if that
// half is odd.
func (e *element) nearestNEON(g *neonGen, v []vreg) {
	odd := g.vecs(len(v))
	g.shiftRight(16, odd, v)
	g.same(nAnd, 4, odd, odd, g.constants["one"])
	g.same(nAdd, 4, v, v, g.constants["below half"])
	g.each(nAdd, 4, v, v, odd)
	g.free(odd)
}

// roundNEON makes each element of v one that the type has, as if it had been stored and loaded.
func (e *element) roundNEON(g *neonGen, v []vreg) {
	switch e.name {
	case "Float16":
		for _, x := range v {
			g.convert(nFCvtn, x, x)
		}
		for _, x := range v {
			g.convert(nFCvtl, x, x)
		}
	case "BFloat16":
		e.nearestNEON(g, v)
		g.same(nAnd, 4, v, v, g.constants["upper"])
	}
}

// finishNEON makes v, the result of steps, ready to be packed: every NaN becomes the canonical one, every true 1.
func (e *element) finishNEON(g *neonGen, v []vreg) {
	switch e.class {
	case boolean:
		g.same(nUMin, 1, v, v, g.constants["ones"])
	case half, float:
		number := g.vecs(len(v))
		g.each(nFCmeq, e.lane(), number, v, v)
		for i := range v {
			g.do(nBif, 1, v[i], g.constants["nan"], number[i])
		}
		g.free(number)
	}
}

// neonStep is acc = acc op y on all registers, or nil where NEON has nothing that beats Go's loop: it does not multiply
// 64-bit lanes. A NaN in either is one in acc, maybe not the canonical one.
func (op *operator) neonStep() func(g *neonGen, acc, y []vreg) {
	var i neonInst
	switch {
	case op.name == "And":
		i = nUMin // the lesser of two bytes is 0 if either is
	case op.name == "Or":
		i = nOr
	case op.class == half || op.class == float:
		// FMIN and FMAX order the zeros, and give a NaN if an operand is one.
		i = map[string]neonInst{"Add": nFAdd, "Mul": nFMul, "Min": nFMin, "Max": nFMax}[op.name]
	case op.name == "Add":
		i = nAdd
	case op.name == "Mul" && op.bytes == 8:
		return nil
	case op.name == "Mul":
		i = nMul
	case op.bytes == 8:
		return op.quadExtremeNEON
	case op.class == signed:
		i = map[string]neonInst{"Min": nSMin, "Max": nSMax}[op.name]
	default:
		i = map[string]neonInst{"Min": nUMin, "Max": nUMax}[op.name]
	}
	return func(g *neonGen, acc, y []vreg) { g.each(i, op.lane(), acc, acc, y) }
}

// quadExtremeNEON compares and picks: there is no minimum of 64-bit lanes.
func (op *operator) quadExtremeNEON(g *neonGen, acc, y []vreg) {
	greater := g.vecs(len(acc))
	compare, pick := nCmgt, nBit // acc = y where acc is greater
	if op.class == unsigned {
		compare = nCmhi
	}
	if op.name == "Max" {
		pick = nBif
	}
	g.each(compare, 8, greater, acc, y)
	g.each(pick, 1, acc, y, greater)
	g.free(greater)
}
