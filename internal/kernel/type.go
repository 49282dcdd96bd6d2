package kernel

import "fmt"

// Type is the type of an element. The zero Type is no type. tensor.DType has the same numbers (a test there keeps it
// so), so that a conversion leads from one to the other.
type Type uint8

// The element types.
const (
	Bool Type = iota + 1
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16  // IEEE binary16: 1 sign, 5 exponent, 10 fraction bits
	BFloat16 // the upper half of a Float32: 1 sign, 8 exponent, 7 fraction bits
	Float32
	Float64

	typeEnd // one past the last
)

var typeSizes = [typeEnd]uint8{
	Bool: 1, Int8: 1, Int16: 2, Int32: 4, Int64: 8, Uint8: 1, Uint16: 2, Uint32: 4, Uint64: 8,
	Float16: 2, BFloat16: 2, Float32: 4, Float64: 8,
}

var typeNames = [typeEnd]string{
	Bool: "bool", Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64",
	Uint8: "uint8", Uint16: "uint16", Uint32: "uint32", Uint64: "uint64",
	Float16: "float16", BFloat16: "bfloat16", Float32: "float32", Float64: "float64",
}

// Valid reports whether t is one of the element types.
func (t Type) Valid() bool { return t > 0 && t < typeEnd }

// Size is the number of bytes of one element, 0 for an invalid Type.
func (t Type) Size() int {
	if t >= typeEnd {
		return 0
	}
	return int(typeSizes[t])
}

// String is the type's name in lower case, such as "float32".
func (t Type) String() string {
	if !t.Valid() {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return typeNames[t]
}

// integer lists the element types that are integers.
type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// float lists the element types that Go can calculate with as they are.
type float interface{ float32 | float64 }

// number is what the generic loops calculate with. The 16-bit floats go through float32.
type number interface{ integer | float }
