package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// operator is an operator of package kernel on one element type.
type operator struct {
	name string // in package kernel
	*element
	code string // the type whose code serves: that of the signed type where signs do not matter
	expr string // on x and y, as Go has it

	prepare func(*gen)
	// acc = acc op s. A NaN in either is one in acc, maybe not the canonical one
	step    func(g *gen, acc vec, s operand.Op)
	exact   bool // the result of step is one of the operands, so needs no rounding
	settled bool // step makes NaNs canonical itself
}

// operators lists every operator on every type that it takes.
func operators() []*operator {
	var all []*operator
	for _, e := range elements {
		if e.class == boolean {
			all = append(all, andBool(e), orBool(e))
			continue
		}
		all = append(all, arithmetic("Add", "x + y", e), arithmetic("Mul", "x * y", e), extreme("Min", e),
			extreme("Max", e))
	}
	return all
}

// andBool: the lesser of two bytes is 0 if either is.
func andBool(e *element) *operator {
	return &operator{name: "And", element: e, code: e.name, expr: "truth(x) & truth(y)", exact: true,
		prepare: e.prepare,
		step:    func(g *gen, acc vec, s operand.Op) { g.VPMINUB(s, acc, acc) }}
}

func orBool(e *element) *operator {
	return &operator{name: "Or", element: e, code: e.name, expr: "truth(x | y)", exact: true,
		prepare: e.prepare,
		step:    func(g *gen, acc vec, s operand.Op) { g.or(s, acc, acc) }}
}

// The instructions by the size of a lane: index 0 for one byte, 3 for eight.
var (
	intAdd = [4]inst{(*build.Context).VPADDB, (*build.Context).VPADDW, (*build.Context).VPADDD,
		(*build.Context).VPADDQ}
	intMul   = [4]inst{nil, (*build.Context).VPMULLW, (*build.Context).VPMULLD, (*build.Context).VPMULLQ}
	floatAdd = [4]inst{2: (*build.Context).VADDPS, 3: (*build.Context).VADDPD}
	floatMul = [4]inst{2: (*build.Context).VMULPS, 3: (*build.Context).VMULPD}
	floatDiv = [4]inst{2: (*build.Context).VDIVPS, 3: (*build.Context).VDIVPD}
	floatMin = [4]inst{2: (*build.Context).VMINPS, 3: (*build.Context).VMINPD}
	floatMax = [4]inst{2: (*build.Context).VMAXPS, 3: (*build.Context).VMAXPD}
	floatAnd = [4]inst{2: (*build.Context).VANDPS, 3: (*build.Context).VANDPD}
	floatOr  = [4]inst{2: (*build.Context).VORPS, 3: (*build.Context).VORPD}
	inRange  = [4]inst{2: (*build.Context).VRANGEPS, 3: (*build.Context).VRANGEPD}

	intExtreme = map[string]map[class][4]inst{
		"Min": {
			signed: {(*build.Context).VPMINSB, (*build.Context).VPMINSW, (*build.Context).VPMINSD,
				(*build.Context).VPMINSQ},
			unsigned: {(*build.Context).VPMINUB, (*build.Context).VPMINUW, (*build.Context).VPMINUD,
				(*build.Context).VPMINUQ},
		},
		"Max": {
			signed: {(*build.Context).VPMAXSB, (*build.Context).VPMAXSW, (*build.Context).VPMAXSD,
				(*build.Context).VPMAXSQ},
			unsigned: {(*build.Context).VPMAXUB, (*build.Context).VPMAXUW, (*build.Context).VPMAXUD,
				(*build.Context).VPMAXUQ},
		},
	}
)

func (e *element) index() int { return bits.TrailingZeros(uint(e.lane())) }

// direct is a step of one instruction.
func direct(i inst) func(*gen, vec, operand.Op) {
	return func(g *gen, acc vec, s operand.Op) { i(g.Context, s, acc, acc) }
}

// arithmetic is Add or Mul.
func arithmetic(name, expr string, e *element) *operator {
	op := &operator{name: name, element: e, code: e.name, expr: expr, prepare: e.prepare}
	if e.class == half || e.class == float {
		i := floatAdd
		if name == "Mul" {
			i = floatMul
		}
		op.step = direct(i[e.index()])
		return op
	}
	if e.class == unsigned {
		op.code = "I" + e.name[len("Ui"):]
	}
	switch {
	case name == "Add":
		op.step = direct(intAdd[e.index()])
	case e.bytes == 1:
		op.prepare = func(g *gen) { g.constant("low bytes", 4, 0x00ff00ff) }
		op.step = mulBytes
	case e.bytes == 8:
		op.step = mulQuads
	default:
		op.step = direct(intMul[e.index()])
	}
	return op
}

// mulBytes multiplies the odd bytes and the even ones as 16-bit lanes: there is no instruction for bytes.
func mulBytes(g *gen, acc vec, s operand.Op) {
	y := g.reg(s)
	hx, hy := g.vec(), g.vec()
	g.VPSRLW(operand.U8(8), acc, hx)
	g.VPSRLW(operand.U8(8), y, hy)
	g.VPMULLW(hx, hy, hx)
	g.VPSLLW(operand.U8(8), hx, hx)
	g.VPMULLW(y, acc, acc)
	g.and(g.constants["low bytes"], acc, acc)
	g.or(hx, acc, acc)
}

// mulQuads has an instruction in AVX-512 only. In AVX2: low*low + (high*low + low*high) << 32.
func mulQuads(g *gen, acc vec, s operand.Op) {
	if g.width == 64 {
		g.VPMULLQ(s, acc, acc)
		return
	}
	y := g.reg(s)
	cross, other := g.vec(), g.vec()
	g.VPSRLQ(operand.U8(32), acc, cross)
	g.VPMULUDQ(y, cross, cross)
	g.VPSRLQ(operand.U8(32), y, other)
	g.VPMULUDQ(acc, other, other)
	g.VPADDQ(other, cross, cross)
	g.VPSLLQ(operand.U8(32), cross, cross)
	g.VPMULUDQ(y, acc, acc)
	g.VPADDQ(cross, acc, acc)
}

// extreme is Min or Max.
func extreme(name string, e *element) *operator {
	lower := map[string]string{"Min": "min", "Max": "max"}[name]
	op := &operator{name: name, element: e, code: e.name, expr: lower + "(x, y)", prepare: e.prepare, exact: true}
	switch {
	case e.class == half || e.class == float:
		op.step = floatExtreme(name, e)
		op.settled = true
	case e.bytes == 8:
		op.prepare = func(g *gen) {
			if e.class == unsigned && g.width == 32 {
				g.constant("sign", 8, 1<<63)
			}
		}
		op.step = func(g *gen, acc vec, s operand.Op) {
			if g.width == 64 {
				intExtreme[name][e.class][3](g.Context, s, acc, acc)
				return
			}
			quadExtreme(g, name, e, acc, g.reg(s))
		}
	default:
		op.step = direct(intExtreme[name][e.class][e.index()])
	}
	return op
}

// quadExtreme compares and blends: AVX2 has no minimum of 64-bit lanes, and compares signed ones only.
func quadExtreme(g *gen, name string, e *element, acc, y vec) {
	x, greater := acc, g.vec()
	z := y
	if e.class == unsigned {
		x, z = g.vec(), g.vec()
		g.xor(g.constants["sign"], acc, x)
		g.xor(g.constants["sign"], y, z)
	}
	g.VPCMPGTQ(z, x, greater) // x > z
	if name == "Min" {
		g.VBLENDVPD(greater, y, acc, acc)
	} else {
		g.VBLENDVPD(greater, acc, y, acc)
	}
}

// floatExtreme is min or max with -0 < +0, and the canonical NaN if either operand is one.
func floatExtreme(name string, e *element) func(*gen, vec, operand.Op) {
	return func(g *gen, acc vec, s operand.Op) {
		y := g.reg(s)
		if g.width == 64 {
			k := g.K()
			e.compare(g, y, acc, k)
			// VRANGEPS orders the zeros, but of a NaN and a number it gives the number.
			code := map[string]operand.U8{"Min": 4, "Max": 5}[name]
			inRange[e.index()](g.Context, code, y, acc, acc)
			e.moveMasked(g, g.constants["nan"], k, acc)
			return
		}
		// VMINPS gives its second operand for two zeros; both ways round, and the bits of both.
		nan, other := g.vec(), g.vec()
		e.compare(g, y, acc, nan)
		i, merge := floatMin[e.index()], floatOr[e.index()]
		if name == "Max" {
			i, merge = floatMax[e.index()], floatAnd[e.index()]
		}
		i(g.Context, y, acc, other)
		i(g.Context, acc, y, acc)
		merge(g.Context, other, acc, acc)
		e.blend(g, nan, g.constants["nan"], acc)
	}
}

// finish makes acc, the result of steps, ready to be packed.
func (op *operator) finish(g *gen, acc vec) {
	switch {
	case op.class == boolean:
		g.VPMINUB(g.constants["ones"], acc, acc)
	case !op.settled:
		op.canonical(g, acc)
	}
}
