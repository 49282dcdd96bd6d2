//go:build (amd64 || arm64) && !noasm

package kernel

import "unsafe"

// rowsFunc is AddRows in assembly: count is at least 1, n and the strides are bytes.
type rowsFunc func(dst, src *byte, pairs *uint64, count, n, dstStride, srcStride int, scale uint64)

// rowsPieces cuts a call into pieces: columns of rows that are too long for one call, and pairs. wide is how many times
// as long dst's rows are.
func rowsPieces(asm rowsFunc, rest rowsLoop, fill, wide int) rowsLoop {
	return func(dst, src []byte, pairs []uint64, at Rows, scale uint64) {
		at.check(dst, src, pairs, wide)
		if len(pairs) == 0 {
			return
		}
		left := at.Bytes
		for left >= fill {
			n := min(left&^(fill-1), pieceBytes(2*wide+1))
			atOnce := max(1, pieceTouched/((2*wide+1)*n))
			for from := 0; from < len(pairs); from += atOnce {
				count := min(atOnce, len(pairs)-from)
				asm(unsafe.SliceData(dst), unsafe.SliceData(src), &pairs[from], count, n, at.DstStride, at.SrcStride,
					scale)
			}
			dst, src, left = dst[wide*n:], src[n:], left-n
		}
		if left > 0 {
			at.Bytes = left
			rest(dst, src, pairs, at, scale)
		}
	}
}

// copyPieces is rowsPieces for a copy, of which the last bytes of a row may be fewer than fill.
func copyPieces(asm func(dst, src *byte, pairs *uint64, count, n, dstStride, srcStride int), fill int) func(dst,
	src []byte, pairs []uint64, at Rows) {
	return func(dst, src []byte, pairs []uint64, at Rows) {
		at.check(dst, src, pairs, 1)
		if len(pairs) == 0 {
			return
		}
		left := at.Bytes
		for left >= fill {
			n := min(left&^(fill-1), pieceBytes(2))
			atOnce := max(1, pieceTouched/(2*n))
			for from := 0; from < len(pairs); from += atOnce {
				count := min(atOnce, len(pairs)-from)
				asm(unsafe.SliceData(dst), unsafe.SliceData(src), &pairs[from], count, n, at.DstStride, at.SrcStride)
			}
			dst, src, left = dst[n:], src[n:], left-n
		}
		if left > 0 {
			at.Bytes = left
			goCopyRows(dst, src, pairs, at)
		}
	}
}
