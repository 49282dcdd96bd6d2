package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// class is what kind of arithmetic an element type has.
type class int

const (
	boolean class = iota
	signed
	unsigned
	half // 16-bit floats: in a register they are float32
	float
)

// element is an element type of package kernel.
type element struct {
	name  string
	bytes int
	class
}

var elements = []*element{
	{"Bool", 1, boolean},
	{"Int8", 1, signed}, {"Int16", 2, signed}, {"Int32", 4, signed}, {"Int64", 8, signed},
	{"Uint8", 1, unsigned}, {"Uint16", 2, unsigned}, {"Uint32", 4, unsigned}, {"Uint64", 8, unsigned},
	{"Float16", 2, half}, {"BFloat16", 2, half},
	{"Float32", 4, float}, {"Float64", 8, float},
}

// lane is how many bytes an element has in a register.
func (e *element) lane() int {
	if e.class == half {
		return 4
	}
	return e.bytes
}

// span is how many bytes of memory fill a register.
func (g *gen) span(e *element) int { return g.width / e.lane() * e.bytes }

// packed is v's register as wide as the memory that fills it.
func (g *gen) packed(e *element, v vec) reg.Register {
	if e.class == half {
		return g.half(v)
	}
	return v
}

// prepare makes ready what the functions below need.
func (e *element) prepare(g *gen) {
	switch {
	case e.class == boolean:
		g.constant("ones", 4, 0x01010101)
	case e.class == half || e.name == "Float32":
		g.constant("nan", 4, 0x7fc00000)
	case e.class == float:
		g.constant("nan", 8, 0x7ff8000000000000)
	}
	if e.name == "BFloat16" {
		g.constant("one", 4, 1)
		g.constant("below half", 4, 0x7fff)
		g.constant("upper", 4, 0xffff0000)
	}
}

// unpack is what lies at s (memory, or a packed register), as elements in a register.
func (e *element) unpack(g *gen, s operand.Op) vec {
	switch e.name {
	case "Float16":
		v := g.vec()
		g.VCVTPH2PS(s, v)
		return v
	case "BFloat16":
		v := g.vec()
		g.VPMOVZXWD(s, v)
		g.VPSLLD(operand.U8(16), v, v)
		return v
	}
	if m, ok := s.(operand.Mem); ok {
		v := g.vec()
		g.load(m, v)
		return v
	}
	return s.(vec)
}

// operand is s in the form that an instruction takes: memory as it is, where elements need not be unpacked.
func (e *element) operand(g *gen, s operand.Op) operand.Op {
	if e.class == half {
		return e.unpack(g, s)
	}
	return s
}

// pack makes v ready to be stored, rounding a 16-bit float to nearest even. The lower half of v is the result. A NaN
// in v must be one that a BFloat16 has the bits for.
func (e *element) pack(g *gen, v vec) {
	switch e.name {
	case "Float16":
		g.VCVTPS2PH(operand.U8(0), v, g.half(v)) // 0: to nearest even
	case "BFloat16":
		e.nearest(g, v)
		g.VPSRLD(operand.U8(16), v, v)
		g.narrow(v)
	}
}

// narrow moves the lower half of each 32-bit lane of v, whose upper half is zero, to the lower half of v.
func (g *gen) narrow(v vec) {
	if g.width == 64 {
		g.VPMOVDW(v, v.AsY())
		return
	}
	t := g.XMM()
	g.VEXTRACTI128(operand.U8(1), v, t)
	g.VPACKUSDW(t, v.AsX(), v.AsX())
}

// nearest adds to a float32 what makes its upper half the nearest BFloat16, to nearest even: 0x7fff, and 1 if that
// half is odd.
func (e *element) nearest(g *gen, v vec) {
	odd := g.vec()
	g.VPSRLD(operand.U8(16), v, odd)
	g.and(odd, g.constants["one"], odd)
	g.VPADDD(g.constants["below half"], odd, odd)
	g.VPADDD(odd, v, v)
}

// round makes each element of v one that the type has, as if it had been stored and loaded.
func (e *element) round(g *gen, v vec) {
	switch e.name {
	case "Float16":
		g.VCVTPS2PH(operand.U8(0), v, g.half(v))
		g.VCVTPH2PS(g.half(v), v)
	case "BFloat16":
		e.nearest(g, v)
		g.and(v, g.constants["upper"], v)
	}
}

// canonical makes every NaN in v the canonical one.
func (e *element) canonical(g *gen, v vec) {
	switch {
	case e.class != half && e.class != float:
	case g.width == 64:
		k := g.K()
		e.compare(g, v, v, k)
		e.moveMasked(g, g.constants["nan"], k, v)
	default:
		t := g.vec()
		e.compare(g, v, v, t)
		e.blend(g, t, g.constants["nan"], v)
	}
}

const unordered = operand.U8(3)

// compare sets to where a or b is a NaN.
func (e *element) compare(g *gen, a, b operand.Op, to operand.Op) {
	if e.lane() == 4 {
		g.VCMPPS(unordered, a, b, to)
	} else {
		g.VCMPPD(unordered, a, b, to)
	}
}

func (e *element) moveMasked(g *gen, s vec, k reg.Register, v vec) {
	if e.lane() == 4 {
		g.VMOVAPS(s, k, v)
	} else {
		g.VMOVAPD(s, k, v)
	}
}

// blend is v = s where mask says so.
func (e *element) blend(g *gen, mask, s, v vec) {
	if e.lane() == 4 {
		g.VBLENDVPS(mask, s, v, v)
	} else {
		g.VBLENDVPD(mask, s, v, v)
	}
}
