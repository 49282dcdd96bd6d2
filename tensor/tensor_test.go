package tensor

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"
)

// TestMustFromSlice: it is FromSlice, and panics with its error.
func TestMustFromSlice(t *testing.T) {
	want, err := FromSlice([]int32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if got := MustFromSlice([]int32{1, 2, 3, 4, 5, 6}, 2, 3); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
	_, err = FromSlice([]int32{1, 2}, 3)
	defer func() {
		if p := recover(); p == nil || p.(error).Error() != err.Error() {
			t.Errorf("panic %v, want %v", p, err)
		}
	}()
	MustFromSlice([]int32{1, 2}, 3)
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, d := range DTypes() {
		for _, shape := range []Shape{{}, {0}, {1}, {3, 5}, {2, 0, 4}, {1021}} {
			x, err := New(d, shape...)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := shape.Elements()
			if x.DType() != d || !x.Shape().Equal(shape) || x.Len() != n || len(x.Bytes()) != n*d.Size() ||
				x.Rank() != len(shape) {
				t.Errorf("New(%v, %v) is %v of %v, %d elements in %d bytes",
					d, shape, x.DType(), x.Shape(), x.Len(), len(x.Bytes()))
			}
			if at := uintptr(unsafe.Pointer(unsafe.SliceData(x.Bytes()))); at%64 != 0 {
				t.Errorf("New(%v, %v) starts at %#x", d, shape, at)
			}
			if cap(x.Bytes()) != len(x.Bytes()) {
				t.Errorf("New(%v, %v) has room to append", d, shape)
			}
			for _, b := range x.Bytes() {
				if b != 0 {
					t.Fatalf("New(%v, %v) is not zero", d, shape)
				}
			}
			v, err := View(d, shape, append(x.Bytes(), make([]byte, 16)...)[:len(x.Bytes())])
			if err != nil || !v.Equal(x) || cap(v.Bytes()) != len(v.Bytes()) {
				t.Errorf("View(%v, %v): %v, %v", d, shape, v, err)
			}
		}
	}
}

// TestErrors: each names both sides of what disagrees.
func TestErrors(t *testing.T) {
	t.Parallel()
	x, err := New(F32, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	vector, err1 := New(I8, 6)
	cube, err2 := vector.Reshape(1, 2, 3)
	empty, err3 := New(I8, 1<<24+1, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err  func() error
		want string
	}{
		"new dtype": {func() error { _, err := New(0, 2); return err }, "invalid dtype DType(0) for shape (2,)"},
		"new shape": {func() error {
			_, err := New(F32, 2, -3)
			return err
		}, "shape (2, -3): dimension 1 is negative"},
		"slice length": {func() error {
			_, err := FromSlice([]int8{1, 2, 3}, 2, 2)
			return err
		}, "shape (2, 2) has 4 elements, the slice has 3"},
		"slice shape": {func() error {
			_, err := FromSlice([]int8{1}, -1, -1)
			return err
		}, "dimension 0 is negative"},
		"view dtype": {func() error { _, err := View(99, nil, nil); return err }, "invalid dtype DType(99)"},
		"view too short": {func() error {
			_, err := View(F16, Shape{2, 2}, make([]byte, 7))
			return err
		}, "float16 of shape (2, 2) takes 8 bytes, there are 7"},
		"view too long": {func() error {
			_, err := View(F16, Shape{}, make([]byte, 4))
			return err
		}, "float16 of shape () takes 2 bytes, there are 4"},
		"view shape": {func() error {
			_, err := View(F16, Shape{-1}, nil)
			return err
		}, "dimension 0 is negative"},
		"reshape": {func() error {
			_, err := x.Reshape(4)
			return err
		}, "shape (4,) of 4 elements does not fit shape (2, 3) of 6"},
		"reshape scalar": {func() error {
			_, err := x.Reshape()
			return err
		}, "shape () of 1 elements does not fit shape (2, 3) of 6"},
		"reshape minus":   {func() error { _, err := x.Reshape(-2, -3); return err }, "dimension 0 is negative"},
		"elements' type":  {func() error { _, err := Of[int32](x); return err }, "elements are float32, not int32"},
		"elements' width": {func() error { _, err := Of[float64](x); return err }, "elements are float32, not float64"},
		"rows' type":      {func() error { _, err := Rows[int32](x); return err }, "elements are float32, not int32"},
		"rows of rank 0": {func() error {
			_, err := Rows[int8](Scalar[int8](1))
			return err
		}, "shape () has rank 0, rows are those of a tensor of rank 2"},
		"rows of rank 1": {func() error {
			_, err := Rows[int8](vector)
			return err
		}, "shape (6,) has rank 1, rows are"},
		"rows of rank 3": {func() error {
			_, err := Rows[int8](cube)
			return err
		}, "shape (1, 2, 3) has rank 3, rows are"},
		"rows of nothing": {func() error {
			_, err := Rows[int8](empty)
			return err
		}, "16777217 rows of no elements, at most 16777216"},
	} {
		if err := c.err(); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "tensor: ") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestViewsAndCopies(t *testing.T) {
	t.Parallel()
	data := []int32{1, 2, 3, 4, 5, 6}
	shape := []int{2, 3}
	x, err := FromSlice(data, shape...)
	if err != nil {
		t.Fatal(err)
	}
	y, err := x.Reshape(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	z := x.Clone()
	if !z.Equal(x) || x.Equal(y) {
		t.Errorf("a clone equals: %v; another shape equals: %v", z.Equal(x), x.Equal(y))
	}
	if data[4] = 50; elements[int32](x.Bytes())[4] != 50 || elements[int32](y.Bytes())[4] != 50 ||
		elements[int32](z.Bytes())[4] != 5 {
		t.Errorf("after a write: %v, %v, %v", x, y, z)
	}
	if z.Equal(x) {
		t.Error("other elements are equal")
	}
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(z.Bytes()))); at%64 != 0 {
		t.Errorf("a clone starts at %#x", at)
	}
	shape[0] = 100
	x.Shape()[1] = 100
	if got := x.Shape(); !got.Equal(Shape{2, 3}) || x.Dim(0) != 2 || x.Dim(1) != 3 {
		t.Errorf("the caller's hand is in the shape: %v", got)
	}

	u, err := FromSlice([]uint32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if u.Equal(z) {
		t.Error("another dtype equals")
	}
}

// TestRows: each is the tensor's memory, and its own part only.
func TestRows(t *testing.T) {
	t.Parallel()
	data := []int32{1, 2, 3, 4, 5, 6}
	x, err1 := FromSlice(data, 3, 2)
	rows, err2 := Rows[int32](x)
	empty, err3 := New(I32, 4, 0)
	none, err4 := Rows[int32](empty)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || len(none) != 4 {
		t.Fatalf("%d rows of %v, %d of %v", len(rows), x.Shape(), len(none), empty.Shape())
	}
	for i, row := range rows {
		if len(row) != 2 || cap(row) != 2 || &row[0] != &data[2*i] {
			t.Errorf("row %d is %v, room for %d", i, row, cap(row))
		}
	}
	for i, row := range none {
		if len(row) != 0 {
			t.Errorf("row %d of nothing is %v", i, row)
		}
	}
}

// TestEqualBits: bits, not values.
func TestEqualBits(t *testing.T) {
	t.Parallel()
	nan, zero, minus := Scalar(math.NaN()), Scalar(0.0), Scalar(math.Copysign(0, -1))
	if !nan.Equal(nan.Clone()) {
		t.Error("a NaN does not equal itself")
	}
	if zero.Equal(minus) {
		t.Error("0 equals -0")
	}
	if zero.Equal(Scalar(float32(0))) {
		t.Error("a float64 equals a float32")
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	of := func(x *Tensor, err error) *Tensor {
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, c := range []struct {
		x    *Tensor
		want string
	}{
		{Scalar(true), "bool()[true]"},
		{of(FromSlice([]float32{1, 2.5, -3})), "float32(3,)[1 2.5 -3]"},
		{of(FromSlice([]int8{1, 2, 3, 4, 5, 6}, 2, 3)), "int8(2, 3)[[1 2 3] [4 5 6]]"},
		{of(FromSlice([]uint8{1, 2, 3, 4}, 2, 2, 1)), "uint8(2, 2, 1)[[[1] [2]] [[3] [4]]]"},
		{of(FromSlice([]uint16{7}, 1, 1)), "uint16(1, 1)[[7]]"},
		{of(FromSlice([]Float16{0x3c00, 0xfc00})), "float16(2,)[1 -Inf]"},
		{of(FromSlice([]BFloat16{0x3f80, 0x7fc0})), "bfloat16(2,)[1 NaN]"},
		{of(FromSlice([]int16{-1})), "int16(1,)[-1]"},
		{of(FromSlice([]int32{-1})), "int32(1,)[-1]"},
		{of(FromSlice([]int64{-1})), "int64(1,)[-1]"},
		{of(FromSlice([]uint32{1 << 31})), "uint32(1,)[2147483648]"},
		{of(FromSlice([]uint64{1 << 63})), "uint64(1,)[9223372036854775808]"},
		{of(New(F64, 0)), "float64(0,)[]"},
		{of(New(F64, 2, 0)), "float64(2, 0)[]"},
		{of(New(F64, 65)), "float64(65,)[...]"},
		{of(New(Bool, 3)), "bool(3,)[false false false]"},
	} {
		if got := c.x.String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// TestNewTooLarge: what Go has no room for is an error that says how much it is.
func TestNewTooLarge(t *testing.T) {
	t.Parallel()
	if math.MaxInt == math.MaxInt32 {
		t.Skip("no shape is too large")
	}
	_, err := New(F32, math.MaxInt/8192)
	if err == nil || !strings.Contains(err.Error(), "takes 4503599627370492 bytes, want at most 17592186044416") {
		t.Errorf("error %v, want one with the bytes", err)
	}
}
