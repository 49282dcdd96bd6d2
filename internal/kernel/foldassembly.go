//go:build (amd64 || arm64) && !noasm

package kernel

// foldFunc folds the bytes from off to end. scale is the bits of the divisor or of its reciprocal, see flags.
type foldFunc func(dsts, srcs [][]byte, off, end int, scale uint64, flags int)

// The bits of flags, as the generator has them.
const (
	flagStream = 1 << iota // store past the caches, and fence
	flagDivide
	flagScale // multiply with the reciprocal instead
)

// foldAssembly is a Fold in assembly.
type foldAssembly struct {
	Fold
	divides bool      // by counts
	streams bool      // asm has stores that go past the caches
	asm     foldFunc  //
	fill    int       // asm takes multiples of so many bytes
	copies  foldFunc  // instead of asm, where a fold changes nothing
	filled  int       // copies takes multiples of so many
	rest    foldRange // in plain Go, what is not a multiple
}

// loop is the loop that Fold.Loop returns.
func (f *foldAssembly) loop(dsts, srcs [][]byte, by int, stream bool) {
	n := foldLength(dsts, srcs)
	if !f.divides {
		by = 1
	}
	stream = stream && f.streams
	var scale uint64
	flags := 0
	if by > 1 {
		exact := false
		flags = flagDivide
		if scale, exact = divisor(f.Type, by); exact {
			flags = flagScale
		}
	}
	asm, fill := f.asm, f.fill
	if f.plainCopy(srcs, by) {
		asm, fill = f.copies, f.filled
	}
	operands := len(dsts) + len(srcs)
	if !stream && n&(fill-1) == 0 && n*operands <= pieceTouched && n > 0 {
		asm(dsts, srcs, 0, n, scale, flags) // most calls for small messages; 10 ns less than by way of a foldCall
		return
	}
	run := foldCall{asm, f.rest, fill, dsts, srcs, by, scale, flags}
	off := 0
	if stream {
		off = min(toLine(dsts[0]), n)
		run.on(0, off)
		run.flags |= flagStream
	}
	piece := pieceBytes(operands)
	for n-off > piece {
		run.on(off, off+piece)
		off += piece
	}
	run.on(off, n)
}

// foldCall is a call of a foldAssembly's loop, but for the range.
type foldCall struct {
	asm        foldFunc
	rest       foldRange
	fill       int
	dsts, srcs [][]byte
	by         int
	scale      uint64
	flags      int
}

// on folds a range.
func (c *foldCall) on(off, end int) {
	whole := off + (end-off)&^(c.fill-1)
	if whole > off {
		c.asm(c.dsts, c.srcs, off, whole, c.scale, c.flags)
	}
	if end > whole {
		c.rest(c.dsts, c.srcs, whole, end, c.by)
	}
}
