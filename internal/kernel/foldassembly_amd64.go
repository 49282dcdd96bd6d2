//go:build !noasm

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
	asm    foldFunc
	copies foldFunc  // instead, where a fold changes nothing
	rest   foldRange // the rest, in plain Go
	fill   int       // asm takes multiples of so many bytes
	filled int       // copies takes multiples of so many
}

// loop is the loop that Fold.Loop returns.
func (f *foldAssembly) loop(dsts, srcs [][]byte, by int, stream bool) {
	n := foldLength(dsts, srcs)
	run := foldCall{foldAssembly: f, fold: f.asm, fill: f.fill, dsts: dsts, srcs: srcs, by: by}
	switch f.Type {
	case Float16, BFloat16, Float32, Float64:
		if by > 1 {
			run.flags = flagDivide
			scale, exact := divisor(f.Type, by)
			if run.scale = scale; exact {
				run.flags = flagScale
			}
		}
	default:
		run.by = 1
	}
	if f.plainCopy(srcs, run.by) {
		run.fold, run.fill = f.copies, f.filled
	}
	off := 0
	if stream {
		off = min(toLine(dsts[0]), n)
		run.on(0, off)
		run.flags |= flagStream
	}
	piece := pieceBytes(len(dsts) + len(srcs))
	for n-off > piece {
		run.on(off, off+piece)
		off += piece
	}
	run.on(off, n)
}

// foldCall is a call of a foldAssembly, but for the range.
type foldCall struct {
	*foldAssembly
	fold       foldFunc
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
		c.fold(c.dsts, c.srcs, off, whole, c.scale, c.flags)
	}
	if end > whole {
		c.rest(c.dsts, c.srcs, whole, end, c.by)
	}
}
