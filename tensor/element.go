package tensor

// Element is any of the Go types that a DType stands for, and no type derived from one.
type Element interface {
	bool |
		int8 | int16 | int32 | int64 |
		uint8 | uint16 | uint32 | uint64 |
		Float16 | BFloat16 | float32 | float64
}

// DTypeOf is the DType of T. It costs about a nanosecond and allocates nothing.
func DTypeOf[T Element]() DType {
	switch any((*T)(nil)).(type) { // a pointer goes into an interface as it is
	case *bool:
		return Bool
	case *int8:
		return I8
	case *int16:
		return I16
	case *int32:
		return I32
	case *int64:
		return I64
	case *uint8:
		return U8
	case *uint16:
		return U16
	case *uint32:
		return U32
	case *uint64:
		return U64
	case *Float16:
		return F16
	case *BFloat16:
		return BF16
	case *float32:
		return F32
	case *float64:
		return F64
	}
	return 0 // no Element is left
}
