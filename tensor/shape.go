package tensor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Shape is the extent of each dimension, the outermost first. A scalar's is empty; a dimension may be 0.
type Shape []int

// Elements is the product of the dimensions, 1 for a scalar. A negative dimension is an error, and so is a product
// that no int can hold (unless a dimension is 0).
func (s Shape) Elements() (int, error) {
	n, overflow := 1, false
	for i, d := range s {
		if d < 0 {
			return 0, fmt.Errorf("tensor: shape %v: dimension %d is negative", s, i)
		}
		if d > 0 && n > math.MaxInt/d {
			overflow = true
			continue
		}
		n *= d
	}
	if overflow && n != 0 {
		return 0, fmt.Errorf("tensor: shape %v has more than %d elements", s, math.MaxInt)
	}
	return n, nil
}

// Validate is the error of Elements.
func (s Shape) Validate() error {
	_, err := s.Elements()
	return err
}

// bytes is the number of bytes that elements of size bytes take in this shape. It leaves room to align them.
func (s Shape) bytes(size int) (int, error) {
	n, err := s.Elements()
	if err != nil {
		return 0, err
	}
	if n > (math.MaxInt-alignment)/size {
		return 0, fmt.Errorf("tensor: shape %v of %d-byte elements takes more than %d bytes",
			s, size, math.MaxInt-alignment)
	}
	return n * size, nil
}

// Equal reports whether both have the same dimensions. nil and an empty Shape are the same.
func (s Shape) Equal(t Shape) bool { return slices.Equal(s, t) }

// Clone is a copy that shares no memory with s.
func (s Shape) Clone() Shape { return slices.Clone(s) }

// String is "(2, 3)", "(2,)" for one dimension, "()" for none.
func (s Shape) String() string {
	if len(s) == 1 {
		return "(" + strconv.Itoa(s[0]) + ",)"
	}
	dims := make([]string, len(s))
	for i, d := range s {
		dims[i] = strconv.Itoa(d)
	}
	return "(" + strings.Join(dims, ", ") + ")"
}
