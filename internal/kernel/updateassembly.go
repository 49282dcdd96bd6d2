//go:build (amd64 || arm64) && !noasm

package kernel

import "unsafe"

// updateFunc is an Update in assembly. n is bytes, and a to e are the bits of the numbers.
type updateFunc func(param, from, grad, first, second *byte, n int, a, b, c, d, e uint64)

// updatePieces cuts a call into pieces.
func updatePieces(asm updateFunc, rest updateLoop, u Update, t Type, fill int) updateLoop {
	const buffers = 5
	return func(o Operands, n Numbers) {
		o = o.checked(u.states())
		x := n.bits(t)
		for len(o.Param) >= fill {
			size := min(len(o.Param)&^(fill-1), pieceBytes(buffers))
			asm(unsafe.SliceData(o.Param), unsafe.SliceData(o.From), unsafe.SliceData(o.Grad),
				unsafe.SliceData(o.First), unsafe.SliceData(o.Second), size, x[0], x[1], x[2], x[3], x[4])
			o = o.from(size)
		}
		if len(o.Param) > 0 {
			rest(o, n)
		}
	}
}
