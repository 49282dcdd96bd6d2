package kernel

import "math"

// The canonical NaNs: quiet, positive, no payload.
const (
	nanF16  = 0x7e00
	nanBF16 = 0x7fc0
	nanF32  = 0x7fc00000
	nanF64  = 0x7ff8000000000000
)

// canonical is s, but the canonical NaN for any NaN. For an integer the compiler leaves nothing of it.
func canonical[T number](s T) T {
	if s != s {
		return T(math.Float64frombits(nanF64))
	}
	return s
}

// The loops take four elements at a time. Four together are tested for a NaN at once, and what is left of the bounds
// checks is two per four.

// maybeNaN reports whether one of four may be a NaN: it misses none, and may err when there are infinities among them.
// Three additions cost less than four comparisons, each of which takes two branches.
func maybeNaN[T number](s0, s1, s2, s3 T) bool {
	t := (s0 + s1) + (s2 + s3)
	return t != t
}
