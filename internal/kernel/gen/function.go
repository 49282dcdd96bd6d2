package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The places in package kernel's constants, in its order.
const (
	numLog2e = iota
	numMagic
	numLn2
	numLn2Rest
	numExpLow
	numExpHigh
	numTanhHigh
	numOne
	numMinusHalf
	numSize
	numTailLow
	numTailHigh
	numDensity
	numExp

	expTerms  = 10
	numTail   = numExp + expTerms
	tailTerms = 23
	numLog    = numTail + tailTerms
	logTerms  = 11

	numTiny     = numLog + logTerms
	numScale    = numTiny + 1
	numScaled   = numTiny + 2
	numExponent = numTiny + 3
	numInfinity = numTiny + 4
	numLowest   = numTiny + 5
)

// rootHalf is package kernel's.
const rootHalf = 0x3fe6a09e667f3bcd

// functions are those of one number. A body gets it as float64s, and may change it.
var functions = []struct {
	name string
	body func(c *calculator, x vec) vec
}{
	{"Exp", func(c *calculator, x vec) vec { return c.exp(c.atMost(numExpHigh, x), nil) }},
	{"NaturalLog", (*calculator).log},
	{"Tanh", (*calculator).tanh},
	{"Sigmoid", (*calculator).sigmoid},
	{"Gelu", func(c *calculator, x vec) vec {
		x = c.atLeast(numTailLow, x)
		below, _ := c.normal(c.atMost(numTailHigh, x))
		return c.mul(x, below)
	}},
}

// emitFunctions writes the functions, and the gradient of GELU.
func emitFunctions(c *build.Context, t *table) {
	for _, e := range elements {
		if e.class != float {
			continue
		}
		for _, f := range functions {
			name := t.function(f.name, e.name)
			t.add("function", "t.function[%s][%s] = %s", f.name, e.name, name)
			l := newCalculator(c, t.isa, e, name, "func(dst, src *byte, n int, constants *float64)",
				fmt.Sprintf("for i := range n%s { dst[i] = %s(src[i]) } // in float64; a NaN made canonical", e.per(), f.name),
				"dst", "src")
			l.turns(func(k operand.Op) {
				l.result(f.body(l, l.wide(1, k)), k)
			})
		}
		name := t.function("GeluSlope", e.name)
		t.single("geluSlope", e.name, name)
		l := newCalculator(c, t.isa, e, name, "func(dst, x, grad *byte, n int, constants *float64)",
			fmt.Sprintf("for i := range n%s { dst[i] = grad[i] * geluSlope(x[i]) } // in float64; a NaN made canonical", e.per()),
			"dst", "x", "grad")
		l.turns(func(k operand.Op) {
			x := l.atMost(numTailHigh, l.atLeast(numTailLow, l.wide(1, k)))
			below, bell := l.normal(x)
			slope := l.add(below, l.mul(x, l.mulBy(numDensity, bell)))
			l.result(l.mul(slope, l.wide(2, k)), k)
		})
	}
}

// calculator emits a loop that computes in float64, a register of them at a time. Its methods return a new register.
type calculator struct {
	*elementwise
	numbers gp // where constants are
}

// newCalculator begins a function with those pointers.
func newCalculator(c *build.Context, isa *isa, e *element, name, signature, doc string, ptrs ...string) *calculator {
	g := function(c, isa, name, signature, doc)
	l := &calculator{elementwise: g.elementwise(e, ptrs...), numbers: g.Load(g.Param("constants"), g.GP64()).(gp)}
	g.constant("nan", 8, 0x7ff8000000000000)
	g.constant("magnitude", 8, 1<<63-1)
	g.constant("sign", 8, 1<<63)
	g.constant("first 26 bits", 8, ^uint64(1<<27-1))
	g.constant("bias", 8, 1023<<52)
	g.constant("2^52", 8, 0x433<<52)
	g.constant("bias less root", 8, 1023<<52-rootHalf)
	return l
}

// step is how many bytes of elements one register of float64s is computed from.
func (c *calculator) step() int { return c.width / 8 * c.e.bytes }

// turns goes through n bytes. body gets a mask for what does not fill a register with AVX-512, and else nil.
func (c *calculator) turns(body func(k operand.Op)) {
	c.loop(c.step(), func() { body(nil) })
	if c.width == 64 {
		c.ADDQ(operand.I32(c.step()), c.left)
		c.JEQ(operand.LabelRef("done"))
		body(c.mask(c.left))
		c.Label("done")
	}
	c.end()
}

// loop goes through what fills a step, and leaves what is left less a step.
func (c *calculator) loop(step int, body func()) {
	c.XORQ(c.off, c.off)
	c.SUBQ(operand.I32(step), c.left)
	c.JLT(operand.LabelRef("last"))
	c.Label("main")
	body()
	c.ADDQ(operand.I32(step), c.off)
	c.SUBQ(operand.I32(step), c.left)
	c.JGE(operand.LabelRef("main"))
	c.Label("last")
}

// wide is the elements that pointer ptr is at, as float64s.
func (c *calculator) wide(ptr int, k operand.Op) vec {
	v := c.vec()
	var from operand.Op = c.mem(ptr, 0)
	if k != nil {
		part := c.vec()
		half := operand.Op(part)
		if c.e.bytes == 4 {
			half = c.half(part)
		}
		c.VMOVDQU8_Z(from, k, half)
		from = half
	}
	if c.e.bytes == 4 {
		c.VCVTPS2PD(from, v)
	} else if k != nil {
		return from.(vec)
	} else {
		c.load(from, v)
	}
	return v
}

// result stores float64s as elements.
func (c *calculator) result(v vec, k operand.Op) {
	if k == nil {
		c.resultAt(v, 0)
		return
	}
	c.VMOVDQU8(c.rounded(v), k, c.mem(0, 0))
}

// resultAt stores float64s as elements so many bytes on.
func (c *calculator) resultAt(v vec, disp int) {
	if c.e.bytes == 4 {
		c.VMOVUPS(c.rounded(v), c.mem(0, disp))
	} else {
		c.store(c.rounded(v), c.mem(0, disp))
	}
}

// rounded is v as elements.
func (c *calculator) rounded(v vec) reg.Register {
	c.canonicalWide(v)
	switch {
	case c.e.bytes == 8:
		return v
	case c.width == 64:
		c.VCVTPD2PS(v, c.half(v))
	default:
		c.VCVTPD2PSY(v, c.half(v))
	}
	return c.half(v)
}

// canonicalWide makes NaNs among float64s canonical.
func (c *calculator) canonicalWide(v vec) {
	if c.width == 64 {
		k := c.K()
		c.VCMPPD(unordered, v, v, k)
		c.VMOVAPD(c.constants["nan"], k, v)
		return
	}
	t := c.vec()
	c.VCMPPD(unordered, v, v, t)
	c.VBLENDVPD(t, c.constants["nan"], v, v)
}

// number is one of the constants in memory, and full a register of it.
func (c *calculator) number(i int) operand.Mem { return operand.Mem{Base: c.numbers, Disp: 8 * i} }

func (c *calculator) full(i int) vec {
	v := c.vec()
	c.VBROADCASTSD(c.number(i), v)
	return v
}

// with is op of a and a constant, the constant being the second.
func (c *calculator) with(op, broadcast inst, i int, a vec) vec {
	v := c.vec()
	if c.width == 64 {
		broadcast(c.Context, c.number(i), a, v)
	} else {
		op(c.Context, c.full(i), a, v)
	}
	return v
}

func (c *calculator) mulBy(i int, a vec) vec {
	return c.with((*build.Context).VMULPD, (*build.Context).VMULPD_BCST, i, a)
}

func (c *calculator) plus(i int, a vec) vec {
	return c.with((*build.Context).VADDPD, (*build.Context).VADDPD_BCST, i, a)
}

func (c *calculator) minus(i int, a vec) vec {
	return c.with((*build.Context).VSUBPD, (*build.Context).VSUBPD_BCST, i, a)
}

func (c *calculator) mul(a, b vec) vec { v := c.vec(); c.VMULPD(b, a, v); return v }
func (c *calculator) add(a, b vec) vec { v := c.vec(); c.VADDPD(b, a, v); return v }
func (c *calculator) sub(a, b vec) vec { v := c.vec(); c.VSUBPD(b, a, v); return v }
func (c *calculator) div(a, b vec) vec { v := c.vec(); c.VDIVPD(b, a, v); return v }

// masked is the bits of a that a constant of the function has.
func (c *calculator) masked(name string, a vec) vec {
	v := c.vec()
	c.and(c.constants[name], a, v)
	return v
}

// atMost and atLeast are package kernel's min2 and max2: the second operand where one is a NaN.
func (c *calculator) atMost(i int, x vec) vec { v := c.full(i); c.VMINPD(x, v, v); return v }

func (c *calculator) atLeast(i int, x vec) vec { v := c.full(i); c.VMAXPD(x, v, v); return v }

// negative is a where x has the sign bit, and else b.
func (c *calculator) negative(x, a, b vec) vec {
	v := c.vec()
	if c.width == 64 {
		k := c.K()
		c.VPMOVQ2M(x, k)
		c.VBLENDMPD(a, b, k, v)
		return v
	}
	c.VBLENDVPD(x, a, b, v)
	return v
}

// polynomial has terms coefficients from at on, its steps as those of package kernel.
func (c *calculator) polynomial(at, terms int, x vec) vec {
	z := c.mul(x, x)
	last := terms - 1
	a, b := c.full(at+last), c.full(at+last-1)
	for i := last - 2; i >= 0; i -= 2 {
		a = c.plus(at+i, c.mul(a, z))
		if i > 0 {
			b = c.plus(at+i-1, c.mul(b, z))
		}
	}
	if last%2 == 0 {
		return c.add(a, c.mul(b, x))
	}
	return c.add(b, c.mul(a, x))
}

// split is package kernel's. A rest of nil is 0.
func (c *calculator) split(x, rest vec) (k, q vec) {
	k = c.plus(numMagic, c.mulBy(numLog2e, x))
	whole := c.minus(numMagic, k)
	r := c.sub(x, c.mulBy(numLn2, whole))
	r = c.sub(r, c.mulBy(numLn2Rest, whole))
	if rest != nil {
		r = c.add(r, rest)
	}
	return k, c.add(r, c.mul(c.mul(r, r), c.polynomial(numExp, expTerms, r)))
}

// exp is package kernel's, of numbers that are not too large.
func (c *calculator) exp(x, rest vec) vec {
	k, q := c.split(c.atLeast(numExpLow, x), rest)
	q = c.plus(numOne, q)
	half, exponent := c.vec(), c.vec()
	c.VPSRLQ(operand.U8(1), k, half)
	c.VPSLLQ(operand.U8(52), half, exponent)
	q = c.mul(q, exponent)
	c.VPSUBQ(half, k, exponent)
	c.VPSLLQ(operand.U8(52), exponent, exponent)
	return c.mul(q, exponent)
}

func (c *calculator) tanh(x vec) vec {
	a := c.masked("magnitude", x)
	k, q := c.split(c.atMost(numTanhHigh, c.add(a, a)), nil)
	s := c.vec()
	c.VPSLLQ(operand.U8(52), k, s)
	c.VPSUBQ(c.constants["bias"], s, s)
	q = c.mul(s, q)
	y := c.div(c.add(c.minus(numOne, s), q), c.add(c.plus(numOne, s), q))
	c.or(c.masked("sign", x), y, y)
	return y
}

func (c *calculator) sigmoid(x vec) vec {
	down := c.vec()
	c.or(c.constants["sign"], x, down)
	e := c.exp(down, nil)
	return c.div(c.negative(x, e, c.full(numOne)), c.plus(numOne, e))
}

// normal is package kernel's. The square of a float32 is exact and leaves no rest.
func (c *calculator) normal(x vec) (below, bell vec) {
	a := c.masked("magnitude", x)
	if c.e.bytes == 4 {
		bell = c.exp(c.mulBy(numMinusHalf, c.mul(a, a)), nil)
	} else {
		high := c.masked("first 26 bits", a)
		rest := c.mul(c.sub(a, high), c.add(a, high))
		bell = c.exp(c.mulBy(numMinusHalf, c.mul(high, high)), c.mulBy(numMinusHalf, rest))
	}
	u := c.div(c.full(numSize), c.plus(numSize, a))
	t := c.sub(c.full(numOne), c.add(u, u))
	under := c.mul(bell, c.mul(u, c.polynomial(numTail, tailTerms, t)))
	return c.negative(x, under, c.sub(c.full(numOne), under)), bell
}

// log is package kernel's. It computes with what is not above 0 and not finite too, and then has their results instead.
func (c *calculator) log(x vec) vec {
	tiny := c.compared(less, x, c.full(numTiny))
	y := c.pick(tiny, c.mulBy(numScale, x), x)
	zero := c.vec()
	c.xor(zero, zero, zero)
	shift := c.pick(tiny, c.full(numScaled), zero)

	e, f, k := c.vec(), c.vec(), c.vec()
	c.VPADDQ(c.constants["bias less root"], y, e)
	c.VPSRLQ(operand.U8(52), e, e) // the exponent and its bias
	c.VPSLLQ(operand.U8(52), e, f)
	c.VPSUBQ(f, y, f)
	c.VPADDQ(c.constants["bias"], f, f)
	c.or(c.constants["2^52"], e, k)
	k = c.sub(c.minus(numExponent, k), shift)

	s := c.div(c.minus(numOne, f), c.plus(numOne, f))
	z := c.mul(s, s)
	low := c.add(c.mul(c.mul(s, z), c.polynomial(numLog, logTerms, z)), c.mulBy(numLn2Rest, k))
	r := c.add(c.mulBy(numLn2, k), c.add(c.add(s, s), low))

	r = c.pick(c.compared(notLess, x, c.full(numInfinity)), x, r)
	r = c.pick(c.compared(less, x, zero), c.constants["nan"], r)
	return c.pick(c.compared(equal, x, zero), c.full(numLowest), r)
}

const (
	less  = operand.U8(0x11)
	equal = operand.U8(0)
)

// compared is where a relation holds, for pick: a is less than b, and so on.
func (c *calculator) compared(relation operand.U8, a, b vec) reg.Register {
	var to reg.Register = c.vec()
	if c.width == 64 {
		to = c.K()
	}
	c.VCMPPD(relation, b, a, to)
	return to
}

// pick is a where a relation holds, and else b.
func (c *calculator) pick(where reg.Register, a, b vec) vec {
	v := c.vec()
	if c.width == 64 {
		c.VBLENDMPD(a, b, where, v)
	} else {
		c.VBLENDVPD(where, a, b, v)
	}
	return v
}
