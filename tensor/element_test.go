package tensor

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// elementTest holds what is to be true of one element type.
type elementTest[T Element] struct {
	dtype DType
	one   T
}

func (c elementTest[T]) run(t *testing.T) {
	t.Run("dtype="+c.dtype.String(), func(t *testing.T) {
		if got := DTypeOf[T](); got != c.dtype {
			t.Fatalf("DTypeOf is %v, want %v", got, c.dtype)
		}
		if n := testing.AllocsPerRun(100, func() { sink = DTypeOf[T]() }); n != 0 {
			t.Errorf("DTypeOf: %v allocations", n)
		}
		var zero T
		if got := int(unsafe.Sizeof(zero)); got != c.dtype.Size() {
			t.Errorf("an element takes %d bytes, the dtype says %d", got, c.dtype.Size())
		}
		if got := dtypeAlign(c.dtype); got != unsafe.Alignof(zero) {
			t.Errorf("dtypeAlign is %d, Go's is %d", got, unsafe.Alignof(zero))
		}

		s := make([]T, 5, 9)
		b := Bytes(s)
		if len(b) != 5*c.dtype.Size() || cap(b) != len(b) {
			t.Fatalf("5 elements are %d bytes with room for %d", len(b), cap(b))
		}
		back, err := FromBytes[T](b)
		if err != nil || len(back) != 5 || cap(back) != 5 {
			t.Fatalf("5 elements come back as %d with room for %d, %v", len(back), cap(back), err)
		}
		if back[3] = c.one; s[3] != c.one || b[3*c.dtype.Size()] == 0 && b[4*c.dtype.Size()-1] == 0 {
			t.Error("a view is not the same memory")
		}

		for _, empty := range [][]byte{nil, {}, b[1:1]} {
			if got, err := FromBytes[T](empty); err != nil || got == nil || len(got) != 0 {
				t.Errorf("no bytes are %v, %v", got, err)
			}
		}
		if got := Bytes[T](nil); len(got) != 0 {
			t.Errorf("no elements are bytes %v", got)
		}
		if size := c.dtype.Size(); size > 1 {
			if _, err := FromBytes[T](b[:size+1]); err == nil || !strings.Contains(err.Error(), c.dtype.String()) {
				t.Errorf("%d bytes: %v", size+1, err)
			}
			if _, err := FromBytes[T](b[1 : size+1]); err == nil ||
				!strings.Contains(err.Error(), "alignment of "+c.dtype.String()) {
				t.Errorf("bytes at an odd address: %v", err)
			}
			if _, err := View(c.dtype, Shape{1}, b[1:size+1]); err == nil ||
				!strings.Contains(err.Error(), "alignment of "+c.dtype.String()) {
				t.Errorf("a view at an odd address: %v", err)
			}
		}

		x, err := FromSlice(s)
		if err != nil || x.DType() != c.dtype || x.Len() != 5 {
			t.Fatalf("FromSlice: %v, %v", x, err)
		}
		if got, err := Of[T](x); err != nil || &got[0] != &s[0] || len(got) != 5 {
			t.Errorf("Of: %v, %v", got, err)
		}
		if got := Scalar(c.one); got.Rank() != 0 || got.Len() != 1 || elements[T](got.Bytes())[0] != c.one {
			t.Errorf("Scalar: %v", got)
		}
		if c.dtype != F32 {
			_, err := Of[float32](x)
			if err == nil || !strings.Contains(err.Error(), "float32") ||
				!strings.Contains(err.Error(), c.dtype.String()) {
				t.Errorf("as float32: %v", err)
			}
		}
	})
}

var sink DType

func TestElements(t *testing.T) {
	for _, c := range []interface{ run(*testing.T) }{
		elementTest[bool]{Bool, true},
		elementTest[int8]{I8, 1}, elementTest[int16]{I16, 1}, elementTest[int32]{I32, 1}, elementTest[int64]{I64, 1},
		elementTest[uint8]{U8, 1}, elementTest[uint16]{U16, 1}, elementTest[uint32]{U32, 1},
		elementTest[uint64]{U64, 1},
		elementTest[Float16]{F16, 1}, elementTest[BFloat16]{BF16, 1}, elementTest[float32]{F32, 1},
		elementTest[float64]{F64, 1},
	} {
		c.run(t)
	}
	t.Run("derived", func(t *testing.T) {
		type (
			flag      bool
			id        uint8
			celsius   float32
			seconds   float64
			offset    int16
			signedID  int8
			colour    uint32
			checksum  uint64
			character int32
		)
		for _, c := range []interface{ run(*testing.T) }{
			elementTest[flag]{Bool, true}, elementTest[signedID]{I8, 1}, elementTest[offset]{I16, 1},
			elementTest[character]{I32, 1}, elementTest[time.Duration]{I64, 1}, elementTest[id]{U8, 1},
			elementTest[colour]{U32, 1}, elementTest[checksum]{U64, 1}, elementTest[celsius]{F32, 1},
			elementTest[seconds]{F64, 1},
		} {
			c.run(t)
		}
	})
	t.Run("int", func(t *testing.T) { // as wide as the system has it
		wide := map[uintptr][2]DType{4: {I32, U32}, 8: {I64, U64}}[unsafe.Sizeof(0)]
		type rank int
		for _, c := range []interface{ run(*testing.T) }{
			elementTest[int]{wide[0], 1}, elementTest[rank]{wide[0], 1}, elementTest[uint]{wide[1], 1},
		} {
			c.run(t)
		}
	})
}

// TestNoElements: what is derived from a uint16 is no Element, since it could be derived from Float16, and would be
// added up as integers. So it does not compile.
func TestNoElements(t *testing.T) {
	files := token.NewFileSet()
	const made = "type Float16 uint16; type BFloat16 uint16; type half Float16; type port uint16; type name string; " +
		"type feet float32; func want[T Element]() {}; func f() { want[%s]() }"
	for name, want := range map[string]bool{
		"uint16": true, "Float16": true, "BFloat16": true, "feet": true, "int": true, "uint": true,
		"half": false, "port": false, "name": false, "uintptr": false, "complex64": false, "[]int": false,
	} {
		file, err := parser.ParseFile(files, "element.go", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		rest, err := parser.ParseFile(files, "made.go", "package tensor\n"+fmt.Sprintf(made, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		file.Decls = slices.DeleteFunc(file.Decls, func(d ast.Decl) bool {
			types, ok := d.(*ast.GenDecl)
			return !ok || types.Tok != token.TYPE
		})
		_, err = new(types.Config).Check("tensor", files, []*ast.File{file, rest}, nil)
		if (err == nil) != want {
			t.Errorf("%s: %v, want an element: %v", name, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), name+" does not satisfy Element") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBoolBytes(t *testing.T) {
	if got, err := FromBytes[bool]([]byte{0, 1, 1}); err != nil || got[0] || !got[1] || !got[2] {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := FromBytes[bool]([]byte{0, 1, 2}); err == nil || !strings.Contains(err.Error(), "byte 2 is 2") {
		t.Errorf("a bool of 2: %v", err)
	}
	if _, err := View(Bool, Shape{3}, []byte{0, 255, 1}); err == nil ||
		!strings.Contains(err.Error(), "byte 1 is 255") {
		t.Errorf("a bool of 255: %v", err)
	}
}

func BenchmarkDTypeOf(b *testing.B) {
	b.Run("dtype=bool", benchmarkDTypeOf[bool])
	b.Run("dtype=bfloat16", benchmarkDTypeOf[BFloat16])
	b.Run("dtype=float32", benchmarkDTypeOf[float32])
	type celsius float32
	b.Run("dtype=celsius", benchmarkDTypeOf[celsius])
	b.Run("dtype=int", benchmarkDTypeOf[int])
}

func benchmarkDTypeOf[T Element](b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sink = DTypeOf[T]()
	}
}
