package memory

import "unsafe"

// Grow returns buf with a length of at least n bytes, keeping it if it is large enough. New memory begins a cache line.
func Grow(buf []byte, n int) []byte {
	if n <= cap(buf) {
		return buf[:cap(buf)]
	}
	n += n / 8
	fresh := make([]byte, n+LineBytes)
	return fresh[-Address(fresh)%LineBytes:][:n:n]
}

// RoundUp is the least multiple of unit that is at least n.
func RoundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// Address is where b begins.
func Address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Overlap reports whether two buffers share memory.
func Overlap(a, b []byte) bool {
	x, y := Address(a), Address(b)
	return len(a) > 0 && len(b) > 0 && x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}

// LineBytes is the granularity of pieces, so that no two replicas write one cache line of aligned buffers.
const LineBytes = 64

// MaxPieceBytes is the most bytes of each buffer in a piece of work. What all the buffers of a piece need stays in the
// second-level cache, and an abort is noticed within some ten microseconds.
const MaxPieceBytes = 32 << 10
