package measure

import (
	"bytes"

	"gogcl.dev/tensor"
)

// fill repeats a block through dst, which begins with element first of the buffer that the block stands for.
func fill(dst, block []byte, elemSize, first int) {
	at := first * elemSize % len(block)
	n := copy(dst, block[at:])
	for n < len(dst) {
		n += copy(dst[n:], block)
	}
}

// spoil makes every element of dst another one than block has there.
func spoil(dst, block []byte, dtype tensor.DType, first int) {
	flip := byte(0xff)
	if dtype == tensor.Bool {
		flip = 1
	}
	other := make([]byte, len(block))
	for i, b := range block {
		other[i] = b ^ flip
	}
	fill(dst, other, dtype.Size(), first)
}

// compare counts the elements of got that are not as block has them, got beginning with element first. where is the
// first such element of got.
func compare(got, block []byte, elemSize, first int) (wrong, where int) {
	at := first * elemSize % len(block)
	for n := 0; n < len(got); at = 0 {
		want := block[at:min(len(block), at+len(got)-n)]
		have := got[n : n+len(want)]
		if !bytes.Equal(have, want) {
			for i := 0; i < len(want); i += elemSize {
				if !bytes.Equal(have[i:i+elemSize], want[i:i+elemSize]) {
					if wrong == 0 {
						where = (n + i) / elemSize
					}
					wrong++
				}
			}
		}
		n += len(want)
	}
	return wrong, where
}
