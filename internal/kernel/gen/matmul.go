package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileRows are the rows that tiles of a matrix product have. With two registers of columns and one of b for each, the
// sums of the tallest leave some registers over: AVX-512 has 32, AVX2 16.
func (i *isa) tileRows() []int {
	if i.width == 64 {
		return []int{8, 4, 1}
	}
	return []int{4, 1}
}

const tileSignature = "func(c *float32, cRow int, a *float32, aRow, aColumn int, b *float32, bRow int, n, k int)"

// emitMatMul writes tiles of c += a b for so many rows, and columns that fill two registers, or one.
func emitMatMul(c *build.Context, t *table) {
	for _, rows := range t.tileRows() {
		var names []string
		for _, registers := range []int{1, 2} {
			name := fmt.Sprintf("%sMatMul%dx%d", t.name, rows, registers)
			names = append(names, name)
			emitTile(c, t, name, rows, registers)
		}
		t.add("tiles", "t.tiles = append(t.tiles, tile{rows: %d, one: %s, two: %s})", rows, names[0], names[1])
	}
}

// emitTile writes one tile. Strides are in bytes; n columns fill the registers, but with AVX-512 the last of them needs
// no more than one.
func emitTile(c *build.Context, t *table, name string, rows, registers int) {
	g := function(c, t.isa, name, tileSignature, fmt.Sprintf(
		"for l := range k { for i := range %d { for j := range n { c[i*cRow+j] += a[i*aRow+l*aColumn] * b[l*bRow+j] "+
			"} } } // then NaNs canonical",
		rows))
	e := elements[len(elements)-2]
	if e.name != "Float32" {
		panic("gen: float32 has another place")
	}
	e.prepare(g)
	cPtr, cRow := g.Load(g.Param("c"), g.GP64()), g.Load(g.Param("cRow"), g.GP64())
	aPtr, aRow, aColumn := g.Load(g.Param("a"), g.GP64()), g.Load(g.Param("aRow"), g.GP64()),
		g.Load(g.Param("aColumn"), g.GP64())
	bPtr, bRow := g.Load(g.Param("b"), g.GP64()), g.Load(g.Param("bRow"), g.GP64())
	n, k := g.Load(g.Param("n"), g.GP64()).(gp), g.Load(g.Param("k"), g.GP64())

	lanes := g.width / 4
	var mask reg.Register // of the last register
	if g.width == 64 {
		ones := g.GP32()
		mask = g.K()
		if registers == 2 {
			g.SUBQ(operand.I32(lanes), n)
		}
		g.MOVL(operand.I32(-1), ones)
		g.BZHIL(n.As32(), ones, ones)
		g.KMOVW(ones, mask)
	}
	load := func(m operand.Mem, r int) vec {
		v := g.vec()
		m.Disp += r * g.width
		if mask != nil && r == registers-1 {
			g.VMOVUPS_Z(m, mask, v)
		} else {
			g.VMOVUPS(m, v)
		}
		return v
	}

	sums := make([][]vec, rows)
	p := g.GP64()
	g.MOVQ(cPtr, p)
	for i := range sums {
		if i > 0 {
			g.ADDQ(cRow, p)
		}
		for r := range registers {
			sums[i] = append(sums[i], load(operand.Mem{Base: p}, r))
		}
	}
	// Of the rows of a, those from 4 on begin where addresses reach from row 0 or 3.
	bases := []reg.Register{aPtr}
	var third reg.Register // three strides
	if rows > 3 {
		third = g.GP64()
		g.LEAQ(operand.Mem{Base: aRow, Index: aRow, Scale: 2}, third)
		fourth := g.GP64()
		g.LEAQ(operand.Mem{Base: aPtr, Index: third, Scale: 1}, fourth)
		bases = append(bases, fourth)
	}
	aAt := func(i int) operand.Mem {
		switch i {
		case 0:
			return operand.Mem{Base: aPtr}
		case 1, 2, 4:
			return operand.Mem{Base: aPtr, Index: aRow, Scale: uint8(i)}
		case 3:
			return operand.Mem{Base: bases[1]}
		case 5, 7:
			return operand.Mem{Base: bases[1], Index: aRow, Scale: uint8(i - 3)}
		}
		return operand.Mem{Base: aPtr, Index: third, Scale: 2} // 6
	}

	g.Label("inner")
	var bs []vec
	for r := range registers {
		bs = append(bs, load(operand.Mem{Base: bPtr}, r))
	}
	for i := range sums {
		product := g.vec()
		if g.width == 64 && registers == 1 {
			g.VMULPS_BCST(aAt(i), bs[0], product)
			g.VADDPS(product, sums[i][0], sums[i][0])
			continue
		}
		factor := g.vec()
		g.VBROADCASTSS(aAt(i), factor)
		for r := range registers {
			if r > 0 {
				product = g.vec()
			}
			g.VMULPS(bs[r], factor, product)
			g.VADDPS(product, sums[i][r], sums[i][r])
		}
	}
	g.ADDQ(bRow, bPtr)
	for _, base := range bases {
		g.ADDQ(aColumn, base)
	}
	g.DECQ(k)
	g.JNE(operand.LabelRef("inner"))

	for i := range sums {
		for r := range registers {
			e.canonical(g, sums[i][r])
			m := operand.Mem{Base: cPtr, Disp: r * g.width}
			if mask != nil && r == registers-1 {
				g.VMOVUPS(sums[i][r], mask, m)
			} else {
				g.VMOVUPS(sums[i][r], m)
			}
		}
		if i+1 < rows {
			g.ADDQ(cRow, cPtr)
		}
	}
	g.end()
}
