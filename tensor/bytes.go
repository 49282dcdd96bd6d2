package tensor

import (
	"fmt"
	"unsafe"
)

// Bytes is the memory of s as bytes, in the host's byte order, with no room to append.
func Bytes[T Element](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

// FromBytes is b seen as elements, in the host's byte order, with no room to append. It is an error when b is not a
// whole number of elements, does not start at an address that Go wants for a T, or, with T bool, holds a byte other
// than 0 and 1; only the last takes time, a look at each byte.
func FromBytes[T Element](b []byte) ([]T, error) {
	dtype := DTypeOf[T]()
	if len(b)%dtype.Size() != 0 {
		return nil, fmt.Errorf("tensor: %d bytes are not a whole number of %v, %d bytes each",
			len(b), dtype, dtype.Size())
	}
	if len(b) == 0 {
		return []T{}, nil
	}
	var t T
	if off := uintptr(unsafe.Pointer(unsafe.SliceData(b))) % unsafe.Alignof(t); off != 0 {
		return nil, fmt.Errorf("tensor: bytes start %d past a multiple of %d, the alignment of %v",
			off, unsafe.Alignof(t), dtype)
	}
	if err := checkBools(dtype, b); err != nil {
		return nil, err
	}
	return elements[T](b), nil
}

// elements is FromBytes of bytes that are known to be good.
func elements[T Element](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// checkBools is an error when bytes that are to be bools are neither 0 nor 1: Go leaves open what such a bool does.
func checkBools(dtype DType, b []byte) error {
	if dtype != Bool {
		return nil
	}
	for i, v := range b {
		if v > 1 {
			return fmt.Errorf("tensor: byte %d is %d, a bool is 0 or 1", i, v)
		}
	}
	return nil
}

// alignment is where the memory of a new tensor starts: at a cache line, which is also the widest vector.
const alignment = 64

// zeros is n zero bytes that start at a multiple of alignment.
func zeros(n int) []byte {
	b := make([]byte, n+alignment-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % alignment)
	return b[skip : skip+n : skip+n]
}

// dtypeAlign is the alignment that Go wants for a type: its size, but on some 32-bit machines less for 8 bytes.
func dtypeAlign(d DType) uintptr {
	if d.Size() == 8 {
		return unsafe.Alignof(uint64(0))
	}
	return uintptr(d.Size())
}
