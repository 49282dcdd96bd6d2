package kernel

// LineBytes is a cache line of amd64 and arm64: tensors, and parts of memory that different goroutines write to, begin
// at multiples of it.
const LineBytes = 64

// Lines rounds a number of bytes up to whole cache lines.
func Lines(bytes int) int { return (bytes + LineBytes - 1) / LineBytes * LineBytes }
