package tensor

import (
	"gogcl.dev/internal/enum"
	"gogcl.dev/internal/kernel"
)

// DType is the type of a tensor's elements. The zero DType is invalid, so that a forgotten one is noticed.
//
// The constants are short because [Float16] and [BFloat16] are Go types: F16 is the DType of a []Float16. The text form
// is the long name, such as "float16".
//
// Within this module, kernel.Type(d) is the same type for the element-wise loops: the numbers are equal.
type DType uint8

// The element types.
const (
	Bool = DType(kernel.Bool)     // bool
	I8   = DType(kernel.Int8)     // int8
	I16  = DType(kernel.Int16)    // int16
	I32  = DType(kernel.Int32)    // int32
	I64  = DType(kernel.Int64)    // int64
	U8   = DType(kernel.Uint8)    // uint8
	U16  = DType(kernel.Uint16)   // uint16
	U32  = DType(kernel.Uint32)   // uint32
	U64  = DType(kernel.Uint64)   // uint64
	F16  = DType(kernel.Float16)  // float16
	BF16 = DType(kernel.BFloat16) // bfloat16
	F32  = DType(kernel.Float32)  // float32
	F64  = DType(kernel.Float64)  // float64
)

// DTypes lists all element types in the order of their numbers.
func DTypes() []DType {
	all := make([]DType, 0, F64)
	for d := Bool; d.Valid(); d++ {
		all = append(all, d)
	}
	return all
}

// Valid reports whether d is one of the element types.
func (d DType) Valid() bool { return kernel.Type(d).Valid() }

// Size is the number of bytes of one element, 0 for an invalid DType.
func (d DType) Size() int { return kernel.Type(d).Size() }

// IsInteger reports whether d is a signed or unsigned integer.
func (d DType) IsInteger() bool { return d >= I8 && d <= U64 }

// IsSigned reports whether d can hold a negative number: the signed integers and all floats.
func (d DType) IsSigned() bool { return d >= I8 && d <= I64 || d.IsFloat() }

// IsFloat reports whether d is a floating point type.
func (d DType) IsFloat() bool { return d >= F16 && d <= F64 }

// IsNumber reports whether d is an integer or floating point type: all but Bool.
func (d DType) IsNumber() bool { return d.IsInteger() || d.IsFloat() }

// dtypeNames are the names of the element types, none of number 0.
var dtypeNames = enum.New[DType]("dtype", namesOfDTypes()...)

func namesOfDTypes() []string {
	names := []string{""}
	for _, d := range DTypes() {
		names = append(names, kernel.Type(d).String())
	}
	return names
}

// String is the name of the type, such as "float32"; of an invalid one, "DType(0)".
func (d DType) String() string { return dtypeNames.String(d) }

// ParseDType is the DType that String gives the name of, case and all. The error lists the names.
func ParseDType(name string) (DType, error) { return dtypeNames.Parse(name) }

// MarshalText is the name of the type; an invalid DType is an error.
func (d DType) MarshalText() ([]byte, error) { return dtypeNames.MarshalText(d) }

// UnmarshalText is ParseDType. After an error d is what it was.
func (d *DType) UnmarshalText(text []byte) error { return dtypeNames.UnmarshalText(d, text) }
