package tensor

import (
	"reflect"
	"strconv"
)

// Element is any of the Go types that a DType stands for, and types derived from them, but from no uint16, Float16 or
// BFloat16: to the compiler these three are of one kind, and a half would be taken for an integer. An int or a uint has
// as many bits as the system gives it, and the DType of that: where some replicas have 32 bits and others 64, the two
// do not go together.
type Element interface {
	~bool |
		~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | uint16 | ~uint32 | ~uint64 |
		Float16 | BFloat16 | ~float32 | ~float64
}

// DTypeOf is the DType of T. It allocates nothing.
func DTypeOf[T Element]() DType {
	var zero T
	kind := reflect.ValueOf(zero).Kind() // calls nothing, as that of a reflect.Type would
	if kind == reflect.Uint16 {
		switch any(zero).(type) {
		case Float16:
			return F16
		case BFloat16:
			return BF16
		}
	}
	return ofKind[kind]
}

// ofKind is the DType of a type by its kind, unless that is Float16 or BFloat16.
var ofKind = [...]DType{
	reflect.Bool: Bool,
	reflect.Int:  [...]DType{32: I32, 64: I64}[strconv.IntSize],
	reflect.Int8: I8, reflect.Int16: I16, reflect.Int32: I32, reflect.Int64: I64,
	reflect.Uint:  [...]DType{32: U32, 64: U64}[strconv.IntSize],
	reflect.Uint8: U8, reflect.Uint16: U16, reflect.Uint32: U32, reflect.Uint64: U64,
	reflect.Float32: F32, reflect.Float64: F64,
}
