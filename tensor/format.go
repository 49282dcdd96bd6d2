package tensor

import (
	"fmt"
	"slices"
	"strings"
)

// printed is how many elements String prints before it leaves them all out: what fits a line or a few.
const printed = 64

// String is "float32(2, 3)[[1 2 3] [4 5 6]]", and of more than 64 elements "float32(100,)[...]"; of nil, "no tensor".
func (t *Tensor) String() string {
	if t == nil {
		return "no tensor"
	}
	var b strings.Builder
	b.WriteString(t.dtype.String() + t.shape.String())
	if t.Len() > printed {
		b.WriteString("[...]")
		return b.String()
	}
	at := t.printer()
	if t.Len() == 0 {
		b.WriteString("[]")
		return b.String()
	}
	if len(t.shape) == 0 {
		b.WriteString("[" + at(0) + "]")
		return b.String()
	}
	for i := range t.Len() {
		if i > 0 {
			b.WriteByte(' ')
		}
		// A bracket for each dimension that begins or ends at this element.
		b.WriteString(strings.Repeat("[", t.edges(i)))
		b.WriteString(at(i))
		b.WriteString(strings.Repeat("]", t.edges(i+1)))
	}
	return b.String()
}

// edges is the number of dimensions whose run of elements starts, or has just ended, at element i.
func (t *Tensor) edges(i int) int {
	n, run := 0, 1
	for _, v := range slices.Backward(t.shape) {
		run *= v
		if i%run != 0 {
			break
		}
		n++
	}
	return n
}

// printer is a function that prints one element.
func (t *Tensor) printer() func(i int) string {
	switch t.dtype {
	case Bool:
		return sprint[bool](t)
	case I8:
		return sprint[int8](t)
	case I16:
		return sprint[int16](t)
	case I32:
		return sprint[int32](t)
	case I64:
		return sprint[int64](t)
	case U8:
		return sprint[uint8](t)
	case U16:
		return sprint[uint16](t)
	case U32:
		return sprint[uint32](t)
	case U64:
		return sprint[uint64](t)
	case F16:
		return sprint[Float16](t)
	case BF16:
		return sprint[BFloat16](t)
	case F32:
		return sprint[float32](t)
	}
	return sprint[float64](t)
}

func sprint[T Element](t *Tensor) func(i int) string {
	s := elements[T](t.data)
	return func(i int) string { return fmt.Sprint(s[i]) }
}
