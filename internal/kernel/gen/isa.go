package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set that there is a version for.
type isa struct {
	name  string
	width int // bytes of a register
}

// isas are those that avo makes.
var isas = []*isa{avx2, avx512}

var (
	avx2   = &isa{"avx2", 32}
	avx512 = &isa{"avx512", 64}
)

// vec is a vector register of the full width.
type vec = reg.VecVirtual

// gp is a general register.
type gp = reg.GPVirtual

// gen emits one function for one instruction set.
type gen struct {
	*build.Context
	*isa
	constants map[string]vec // by name, made ready before the loops
}

// function begins a function. doc is the loop that it runs.
func function(c *build.Context, isa *isa, name, signature, doc string) *gen {
	c.Function(name)
	c.Attributes(noSplit)
	c.Pragma("noescape")
	c.SignatureExpr(signature)
	c.Doc(name+" is", "", "\t"+doc)
	return &gen{c, isa, map[string]vec{}}
}

// end returns; the upper halves of the registers are cleared, or SSE code that follows would crawl.
func (g *gen) end() {
	g.VZEROUPPER()
	g.RET()
}

// vec is a fresh register.
func (g *gen) vec() vec {
	if g.width == 64 {
		return g.ZMM()
	}
	return g.YMM()
}

// half is the lower half of a register.
func (g *gen) half(v vec) reg.Register {
	if g.width == 64 {
		return v.AsY()
	}
	return v.AsX()
}

// constant makes a register full of copies of bits, of 4 or 8 bytes, once for a name. It must be called before the
// loops.
func (g *gen) constant(name string, bytes int, bits uint64) {
	if g.constants[name] != nil {
		return
	}
	r := g.GP64()
	v := g.vec()
	if bytes == 4 {
		g.MOVL(operand.U32(bits), r.As32())
	} else {
		g.MOVQ(operand.U64(bits), r)
	}
	g.broadcast(r, bytes, v)
	g.constants[name] = v
}

// broadcast fills v with the lower bytes of r.
func (g *gen) broadcast(r gp, bytes int, v vec) {
	switch {
	case g.width == 64 && bytes == 4:
		g.VPBROADCASTD(r.As32(), v)
	case g.width == 64:
		g.VPBROADCASTQ(r, v)
	case bytes == 4:
		g.VMOVD(r.As32(), v.AsX())
		g.VPBROADCASTD(v.AsX(), v)
	default:
		g.VMOVQ(r, v.AsX())
		g.VPBROADCASTQ(v.AsX(), v)
	}
}

// reg is s in a register: s itself if it is one, else loaded.
func (g *gen) reg(s operand.Op) vec {
	if v, ok := s.(vec); ok {
		return v
	}
	v := g.vec()
	g.load(s, v)
	return v
}

// load and store move a whole register of bytes, wherever it lies.
func (g *gen) load(m operand.Op, v reg.Register) {
	if g.width == 64 {
		g.VMOVDQU64(m, v)
	} else {
		g.VMOVDQU(m, v)
	}
}

func (g *gen) store(v reg.Register, m operand.Op) {
	if g.width == 64 {
		g.VMOVDQU64(v, m)
	} else {
		g.VMOVDQU(v, m)
	}
}

// bitwise instructions have one name each in AVX2 and, for a masked lane's width, several in AVX-512.
func (g *gen) and(a, b operand.Op, dst vec) { g.pick(g.VPAND, g.VPANDD)(a, b, dst) }
func (g *gen) or(a, b operand.Op, dst vec)  { g.pick(g.VPOR, g.VPORD)(a, b, dst) }
func (g *gen) xor(a, b operand.Op, dst vec) { g.pick(g.VPXOR, g.VPXORD)(a, b, dst) }

func (g *gen) pick(two func(a, b, c operand.Op), five func(...operand.Op)) func(...operand.Op) {
	if g.width == 64 {
		return five
	}
	return func(ops ...operand.Op) { two(ops[0], ops[1], ops[2]) }
}

// function is a function's name: "avx2", operator, type.
func (i *isa) function(op, typ string) string { return fmt.Sprintf("%s%s%s", i.name, op, typ) }

// inst is an instruction with any number of operands.
type inst func(*build.Context, ...operand.Op)
