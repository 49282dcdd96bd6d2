package gcl

import (
	"fmt"
	"math"

	"gogcl.dev/tensor"
)

// maxBytes is how many bytes a buffer may have: 16 TiB, as in package tensor, or what an int counts where it is of 32
// bits. Go panics on more than it can address, 2^48 bytes on amd64 and arm64.
const maxBytes = min(1<<44, math.MaxInt)

// checkSize returns an error if a buffer of n elements for each rank would have more than maxBytes.
func checkSize(n, ranks int, dtype tensor.DType) error {
	if fits(n, ranks, dtype.Size()) {
		return nil
	}
	return fmt.Errorf("%d elements of %v for each of %d ranks take more than %d bytes, the most that a buffer may have",
		n, dtype, ranks, int64(maxBytes))
}

// fits reports whether n elements for each rank, of size bytes each, are at most maxBytes.
func fits(n, ranks, size int) bool { return n <= maxBytes/size/ranks }

// gatheredLength is that of an all-gather's output, or 0 where that is more than a buffer can have, which is refused.
func gatheredLength[T tensor.Element](n, ranks int) int {
	if !fits(n, ranks, tensor.DTypeOf[T]().Size()) {
		return 0
	}
	return n * ranks
}
