package popops

import (
	"errors"
	"fmt"
	"unsafe"

	"gogcl.dev/tensor"
)

// checkThere returns an error for a tensor that was not made by package tensor.
func checkThere(name string, t *tensor.Tensor) error {
	if t == nil {
		return fmt.Errorf("%s is nil, want a tensor", name)
	}
	if !t.DType().Valid() {
		return fmt.Errorf("%s is the zero Tensor, want one of a type", name)
	}
	return nil
}

// checkApart returns an error when what is written shares memory with what is read.
func checkApart(written, read *tensor.Tensor, offsets []byte) error {
	if overlap(written.Bytes(), read.Bytes()) || overlap(written.Bytes(), offsets) {
		return errShared
	}
	return nil
}

// errShared is for a table that shares memory with slices or offsets.
var errShared = errors.New("what is written shares memory with what is read, want them apart")

// overlap reports whether two pieces of memory have a byte in common.
func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}
