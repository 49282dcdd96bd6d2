package tensor

import (
	"bytes"
	"fmt"
	"unsafe"
)

// Tensor is elements of one type in a shape, in row-major order. Its dtype, shape and the memory it refers to never
// change; what is in the memory does. Tensors come from New, FromSlice, Scalar, View and the methods here; the zero
// Tensor and a nil one have no element type, no dimensions and no elements, and are of no use.
type Tensor struct {
	dtype DType
	shape Shape
	data  []byte
}

// New is a tensor of zeros in memory of its own, which starts at a cache line (64 bytes). Errors: an invalid dtype, a
// negative dimension, more bytes than an int can count, or than 16 TiB.
func New(dtype DType, shape ...int) (*Tensor, error) {
	n, err := sizeOf(dtype, shape)
	if err != nil {
		return nil, err
	}
	if int64(n) > maxBytes {
		return nil, fmt.Errorf("tensor: shape %v of %v takes %d bytes, want at most %d",
			Shape(shape), dtype, n, int64(maxBytes))
	}
	return &Tensor{dtype, Shape(shape).Clone(), zeros(n)}, nil
}

// maxBytes is how many bytes New makes at most: 16 TiB. What Go's address space has no room for, 2^48 bytes on amd64
// and arm64, would be a panic; what the machine has no memory for, Go finds out by itself and ends the process.
const maxBytes = 1 << 44

// FromSlice is data as a tensor of that shape, a view that copies nothing. Without a shape it has one dimension, the
// length of data. A shape of another number of elements is an error.
func FromSlice[T Element](data []T, shape ...int) (*Tensor, error) {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	n, err := Shape(shape).Elements()
	if err != nil {
		return nil, err
	}
	if n != len(data) {
		return nil, fmt.Errorf("tensor: shape %v has %d elements, the slice has %d", Shape(shape), n, len(data))
	}
	return &Tensor{DTypeOf[T](), Shape(shape).Clone(), Bytes(data)}, nil
}

// MustFromSlice is FromSlice for values and a shape that a program or a test has written down. It panics where
// FromSlice returns an error, with that error.
//
//	x := tensor.MustFromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
func MustFromSlice[T Element](data []T, shape ...int) *Tensor {
	t, err := FromSlice(data, shape...)
	if err != nil {
		panic(err)
	}
	return t
}

// Scalar is a tensor of no dimensions that holds v, in memory of its own.
func Scalar[T Element](v T) *Tensor {
	data := zeros(DTypeOf[T]().Size())
	elements[T](data)[0] = v
	return &Tensor{DTypeOf[T](), nil, data}
}

// View is data, bytes in the host's order, as a tensor, without copying. It is an error when data is not exactly as
// long as dtype and shape want, does not start where Go would let such elements start, or holds bools other than 0 and
// 1.
func View(dtype DType, shape Shape, data []byte) (*Tensor, error) {
	n, err := sizeOf(dtype, shape)
	if err != nil {
		return nil, err
	}
	if n != len(data) {
		return nil, fmt.Errorf("tensor: %v of shape %v takes %d bytes, there are %d", dtype, shape, n, len(data))
	}
	if n > 0 {
		align := dtypeAlign(dtype)
		if off := uintptr(unsafe.Pointer(unsafe.SliceData(data))) % align; off != 0 {
			return nil, fmt.Errorf("tensor: bytes start %d past a multiple of %d, the alignment of %v",
				off, align, dtype)
		}
	}
	if err := checkBools(dtype, data); err != nil {
		return nil, err
	}
	return &Tensor{dtype, shape.Clone(), data[:n:n]}, nil
}

// Of is the elements of t, a view that copies nothing. T must be the type of t's elements.
func Of[T Element](t *Tensor) ([]T, error) {
	want := DTypeOf[T]()
	switch {
	case t == nil:
		return nil, fmt.Errorf("tensor: no tensor, want one of %v", want)
	case want != t.dtype:
		return nil, fmt.Errorf("tensor: elements are %v, not %v", t.dtype, want)
	}
	return elements[T](t.data), nil
}

// maxEmptyRows bounds what Rows allocates for a tensor of no elements, whose shape may say anything; it is more than
// anyone has use for.
const maxEmptyRows = 1 << 24

// Rows is the rows of a tensor of rank 2, each a view that copies nothing and has no room to append: shape (k, n) has k
// rows of n elements. T must be the type of t's elements. Another rank is an error, and so are more than 2^24 rows of
// nothing.
func Rows[T Element](t *Tensor) ([][]T, error) {
	all, err := Of[T](t)
	if err != nil {
		return nil, err
	}
	if t.Rank() != 2 {
		return nil, fmt.Errorf("tensor: shape %v has rank %d, rows are those of a tensor of rank 2", t.shape, t.Rank())
	}
	n := t.Dim(1)
	if n == 0 && t.Dim(0) > maxEmptyRows {
		return nil, fmt.Errorf("tensor: shape %v has %d rows of no elements, at most %d can be told apart",
			t.shape, t.Dim(0), maxEmptyRows)
	}
	rows := make([][]T, t.Dim(0))
	for i := range rows {
		rows[i] = all[i*n : (i+1)*n : (i+1)*n]
	}
	return rows, nil
}

// DType is the type of the elements.
func (t *Tensor) DType() DType {
	if t == nil {
		return 0
	}
	return t.dtype
}

// Shape is a copy of the shape. Rank and Dim tell of it without copying.
func (t *Tensor) Shape() Shape {
	if t == nil {
		return nil
	}
	return t.shape.Clone()
}

// Rank is the number of dimensions, 0 for a scalar.
func (t *Tensor) Rank() int {
	if t == nil {
		return 0
	}
	return len(t.shape)
}

// Dim is the extent of dimension i, 0 <= i < Rank.
func (t *Tensor) Dim(i int) int { return t.shape[i] }

// Len is the number of elements.
func (t *Tensor) Len() int {
	if t == nil || len(t.data) == 0 { // the zero Tensor's elements have no size
		return 0
	}
	return len(t.data) / t.dtype.Size()
}

// Bytes is the tensor's own memory, in the host's byte order.
func (t *Tensor) Bytes() []byte {
	if t == nil {
		return nil
	}
	return t.data
}

// Reshape is the same memory in another shape of as many elements. Without a shape it is a scalar. Another number of
// elements is an error.
func (t *Tensor) Reshape(shape ...int) (*Tensor, error) {
	if !t.DType().Valid() {
		return nil, fmt.Errorf("tensor: no tensor to give shape %v", Shape(shape))
	}
	n, err := Shape(shape).Elements()
	if err != nil {
		return nil, err
	}
	if n != t.Len() {
		return nil, fmt.Errorf("tensor: shape %v of %d elements does not fit shape %v of %d",
			Shape(shape), n, t.shape, t.Len())
	}
	return &Tensor{t.dtype, Shape(shape).Clone(), t.data}, nil
}

// Clone is a copy in memory of its own, which starts at a cache line; nil of nil.
func (t *Tensor) Clone() *Tensor {
	if t == nil {
		return nil
	}
	data := zeros(len(t.data))
	copy(data, t.data)
	return &Tensor{t.dtype, t.shape, data}
}

// Equal reports whether both have the same dtype, shape and bits: a NaN equals the same NaN, and 0 is not -0.
func (t *Tensor) Equal(u *Tensor) bool {
	return t.DType() == u.DType() && t.Rank() == u.Rank() && bytes.Equal(t.Bytes(), u.Bytes()) &&
		(t.Rank() == 0 || t.shape.Equal(u.shape))
}

// sizeOf is the number of bytes of a tensor.
func sizeOf(dtype DType, shape Shape) (int, error) {
	if !dtype.Valid() {
		return 0, fmt.Errorf("tensor: invalid dtype %v for shape %v", dtype, shape)
	}
	return shape.bytes(dtype.Size())
}
