//go:build (amd64 || arm64) && !noasm

package kernel

import "unsafe"

// functionBytes is how many bytes of an operand a call of a function takes. GELU by AVX2 takes 6 ns for a float32, so a
// call takes 50 microseconds at most.
const functionBytes = pieceTouched / 8

type (
	functionFunc func(dst, src *byte, n int, constants *float64)
	slopeFunc    func(dst, x, grad *byte, n int, constants *float64)
)

// functionPieces cuts a call into pieces.
func functionPieces(asm functionFunc, rest func(dst, src []byte), fill int) func(dst, src []byte) {
	return func(dst, src []byte) {
		src = src[:len(dst)]
		for len(dst) >= fill {
			n := min(len(dst)&^(fill-1), functionBytes)
			asm(unsafe.SliceData(dst), unsafe.SliceData(src), n, &constants[0])
			dst, src = dst[n:], src[n:]
		}
		if len(dst) > 0 {
			rest(dst, src)
		}
	}
}

// slopePieces is functionPieces for two operands.
func slopePieces(asm slopeFunc, rest func(dst, x, g []byte), fill int) func(dst, x, g []byte) {
	return func(dst, x, g []byte) {
		x, g = x[:len(dst)], g[:len(dst)]
		for len(dst) >= fill {
			n := min(len(dst)&^(fill-1), functionBytes)
			asm(unsafe.SliceData(dst), unsafe.SliceData(x), unsafe.SliceData(g), n, &constants[0])
			dst, x, g = dst[n:], x[n:], g[n:]
		}
		if len(dst) > 0 {
			rest(dst, x, g)
		}
	}
}
