//go:build (amd64 || arm64) && !noasm

package kernel

import (
	"math"
	"unsafe"
)

// assembly is what the generator (folder gen) has made for one instruction set: functions on pointers that assume much
// and check nothing. Entries may share a function.
type assembly struct {
	name  string
	width int // bytes of a register

	binary [opEnd][typeEnd]func(dst, a, b *byte, n int)
	divide [typeEnd]func(dst, src *byte, n int, by uint64)
	scale  [typeEnd]func(dst, src *byte, n int, by uint64) // divide with by's reciprocal
	widen  [typeEnd]func(dst, src *byte, n int)
	narrow [typeEnd]func(dst, src *byte, n int)
	fold   [foldEnd]foldFunc
	copies foldFunc // a fold of one source that changes nothing

	addRows     [typeEnd]rowsFunc
	addWideRows [typeEnd]rowsFunc
	update      [updateEnd][typeEnd]updateFunc
	function    [functionEnd][typeEnd]functionFunc
	geluSlope   [typeEnd]slopeFunc
	greatest    [typeEnd]func(src *byte, n int) uint64
	shiftedExp  [typeEnd]func(dst, src *byte, n int, shift uint64, constants *float64) float64
	scaleBy     [typeEnd]func(dst, src *byte, n int, by uint64, constants *float64)
	copyRows    func(dst, src *byte, pairs *uint64, count, n, dstStride, srcStride int)

	copy func(dst, src *byte, n int) // past the caches; nil where folds have no such stores either

	tiles []tile // of matrix products, the tallest first
}

// version wraps it all in Go that checks lengths, cuts long calls into pieces, and has plain Go do what does not fill a
// register.
func (t *assembly) version() *version {
	v, plain := &version{name: t.name}, versions[0]
	for typ := Type(1); typ < typeEnd; typ++ {
		for op := Op(1); op < opEnd; op++ {
			if f := t.binary[op][typ]; f != nil {
				v.binary[op][typ] = binaryPieces(f, plain.binary[op][typ], t.fill(typ))
			}
		}
		if f := t.binary[Mul][typ]; f != nil {
			v.square[typ] = squarePieces(f, plain.square[typ], t.fill(typ))
		}
		if t.divide[typ] != nil {
			v.divide[typ] = t.dividePieces(typ, plain.divide[typ])
		}
		if f := t.widen[typ]; f != nil {
			v.widen[typ] = conversionPieces(f, plain.widen[typ], 4, 2, t.lanes())
		}
		if f := t.narrow[typ]; f != nil {
			v.narrow[typ] = conversionPieces(f, plain.narrow[typ], 2, 4, t.lanes())
		}
	}
	for typ := Type(1); typ < typeEnd; typ++ {
		if f := t.addRows[typ]; f != nil {
			v.addRows[typ] = rowsPieces(f, plain.addRows[typ], t.fill(typ), 1)
		}
		if f := t.addWideRows[typ]; f != nil {
			v.addWideRows[typ] = rowsPieces(f, plain.addWideRows[typ], t.fill(typ), 2)
		}
	}
	for _, f := range everyFold() {
		if asm := t.fold[f.index()]; asm != nil {
			k := &foldAssembly{
				Fold: f, divides: t.divide[f.Type] != nil, streams: t.copy != nil, asm: asm, fill: t.fill(f.Type),
				copies: t.copies, filled: t.fill(Uint8), rest: goFold(f),
			}
			v.fold[f.index()] = k.loop
		}
	}
	for u := range t.update {
		for typ, f := range t.update[u] {
			if f != nil {
				v.update[u][typ] = updatePieces(f, plain.update[u][typ], Update(u), Type(typ), t.fill(Type(typ)))
			}
		}
	}
	for typ := range typeEnd {
		for f := range t.function {
			if asm := t.function[f][typ]; asm != nil {
				v.function[f][typ] = functionPieces(asm, plain.function[f][typ], t.fill(typ))
			}
		}
		if asm := t.geluSlope[typ]; asm != nil {
			v.geluSlope[typ] = slopePieces(asm, plain.geluSlope[typ], t.fill(typ))
		}
		if asm := t.scaleBy[typ]; asm != nil {
			v.scale[typ] = scalePieces(asm, plain.scale[typ], t.fill(typ))
		}
	}
	if t.greatest[Float32] != nil {
		softmaxPieces[float32](t, v, Float32)
		softmaxPieces[float64](t, v, Float64)
	}
	if len(t.tiles) > 0 {
		v.matMul = t.matMul
	}
	if t.copyRows != nil {
		v.copyRows = copyPieces(t.copyRows, t.fill(Uint8))
	}
	if t.copy != nil {
		v.stream = streamPieces(t.copy)
	}
	return v
}

// fill is what the length in bytes must be a multiple of: AVX-512 has masks for what does not fill a register, and
// needs whole elements only. Of 16-bit floats AVX2 loads half a register, which fills one with float32s; NEON loads a
// whole one, which fills two.
func (t *assembly) fill(typ Type) int {
	switch {
	case t.width == 64:
		return typ.Size()
	case typ == Float16 || typ == BFloat16:
		return 16
	}
	return t.width
}

// lanes is what the number of elements of a conversion must be a multiple of: as many float32s as fill a register, or
// two with NEON.
func (t *assembly) lanes() int { return max(t.width/4, 8) }

func binaryPieces(asm func(dst, a, b *byte, n int), rest func(dst, a, b []byte), fill int) func(dst, a, b []byte) {
	return func(dst, a, b []byte) {
		a, b = a[:len(dst)], b[:len(dst)]
		for len(dst) >= fill {
			n := min(len(dst)&^(fill-1), pieceBytes(3))
			asm(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), n)
			dst, a, b = dst[n:], a[n:], b[n:]
		}
		if len(dst) > 0 {
			rest(dst, a, b)
		}
	}
}

// squarePieces is a product with itself.
func squarePieces(mul func(dst, a, b *byte, n int), rest func(dst, src []byte), fill int) func(dst, src []byte) {
	return func(dst, src []byte) {
		src = src[:len(dst)]
		for len(dst) >= fill {
			n := min(len(dst)&^(fill-1), pieceBytes(2))
			mul(unsafe.SliceData(dst), unsafe.SliceData(src), unsafe.SliceData(src), n)
			dst, src = dst[n:], src[n:]
		}
		if len(dst) > 0 {
			rest(dst, src)
		}
	}
}

func (t *assembly) dividePieces(typ Type, rest func(dst, src []byte, by int)) func(dst, src []byte, by int) {
	divide, scale, fill := t.divide[typ], t.scale[typ], t.fill(typ)
	return func(dst, src []byte, by int) {
		src = src[:len(dst)]
		asm := divide
		factor, exact := divisor(typ, by)
		if exact {
			asm = scale
		}
		for len(dst) >= fill {
			n := min(len(dst)&^(fill-1), pieceBytes(2))
			asm(unsafe.SliceData(dst), unsafe.SliceData(src), n, factor)
			dst, src = dst[n:], src[n:]
		}
		if len(dst) > 0 {
			rest(dst, src, by)
		}
	}
}

// divisor is the bits of by, or if exact those of its reciprocal: for a power of two a product with that is the
// quotient, to the bit, and several times as fast.
func divisor(t Type, by int) (bits uint64, exact bool) {
	exact = by > 0 && by&(by-1) == 0
	switch {
	case t == Float64 && exact:
		return math.Float64bits(1 / float64(by)), true
	case t == Float64:
		return math.Float64bits(float64(by)), false
	case exact:
		return uint64(math.Float32bits(1 / float32(by))), true
	}
	return uint64(math.Float32bits(float32(by))), false
}

// conversionPieces takes elements of different sizes; a call takes a multiple of lanes.
func conversionPieces(
	asm func(dst, src *byte, n int), rest func(dst, src []byte), dstSize, srcSize, lanes int,
) func(dst, src []byte) {
	return func(dst, src []byte) {
		src = src[:len(dst)/dstSize*srcSize]
		for len(dst) >= lanes*dstSize {
			n := min(len(dst)/dstSize&^(lanes-1), pieceBytes(2)/4)
			asm(unsafe.SliceData(dst), unsafe.SliceData(src), n)
			dst, src = dst[n*dstSize:], src[n*srcSize:]
		}
		if len(dst) > 0 {
			rest(dst, src)
		}
	}
}

// streamPieces copies past the caches what fills lines of dst.
func streamPieces(asm func(dst, src *byte, n int)) func(dst, src []byte) {
	return func(dst, src []byte) {
		head := min(toLine(dst), len(dst))
		copy(dst[:head], src)
		dst, src = dst[head:], src[head:]
		for len(dst) >= 256 {
			n := min(len(dst)&^255, pieceBytes(2))
			asm(unsafe.SliceData(dst), unsafe.SliceData(src), n)
			dst, src = dst[n:], src[n:]
		}
		copy(dst, src)
	}
}

// toLine is how many bytes there are from b's start to that of a cache line.
func toLine(b []byte) int { return int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63) }
