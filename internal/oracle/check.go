package oracle

import (
	"bytes"
	"fmt"

	"gogcl.dev/tensor"
)

// Differ counts the elements of two slices of one length whose bits differ. first is the first of them, or -1.
func Differ[T tensor.Element](a, b []T) (count, first int) {
	return differ(tensor.Bytes(a), tensor.Bytes(b), tensor.DTypeOf[T]().Size())
}

func differ(a, b []byte, elemSize int) (count, first int) {
	first = -1
	if bytes.Equal(a, b) {
		return 0, first
	}
	for i := 0; i < len(a); i += elemSize {
		if !bytes.Equal(a[i:i+elemSize], b[i:i+elemSize]) {
			if count == 0 {
				first = i / elemSize
			}
			count++
		}
	}
	return count, first
}

// Check returns an error unless got has the length and the bits of want. what begins its text.
func Check[T tensor.Element](what string, got, want []T) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
	}
	count, i := Differ(got, want)
	if count == 0 {
		return nil
	}
	have, need := fmt.Sprint(got[i]), fmt.Sprint(want[i])
	if have == need { // NaNs
		have, need = bits(have, got[i]), bits(need, want[i])
	}
	return fmt.Errorf("%s: element %d is %s, want %s (%d of %d differ)", what, i, have, need, count, len(got))
}

// bits is a value's text with its bytes in memory.
func bits[T tensor.Element](text string, v T) string {
	return fmt.Sprintf("%s [% x]", text, tensor.Bytes([]T{v}))
}
